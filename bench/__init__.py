"""Measure attention layers: from sweep files to verdicts and pictures.

`run` measures a sweep, `load` reads its results, `compare` judges two of them. Each is imported when first used, so
that a worker process, which also imports this package, doesn't load the engine.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.analyse.analysed_run import load
    from bench.analyse.comparison import compare
    from bench.engine.run import run

__all__ = ["compare", "load", "run"]

_HOMES = {"compare": "analyse.comparison", "load": "analyse.analysed_run", "run": "engine.run"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
