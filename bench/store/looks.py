"""The looks at the models of a run, in its look.json."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, to_builtins

from bench.plan.case import Point
from bench.plan.core import Core, Softmax
from bench.plan.errors import CannotWrite, refusing
from bench.store import files

LOOK = "look.json"
"""The file with what each process reported about the model at each point; nothing in it is derived."""


class Times(Struct, frozen=True):
    """The seconds of a plain call, and of a profiled one: in total, in each core and other softmax, and in layers."""

    plain_s: float
    total_s: float = 0.0
    cores: tuple[float, ...] = ()
    others: tuple[float, ...] = ()
    layers: float = 0.0


class Tried(Struct, frozen=True):
    """The result of trying a setting on a model: the status, the reason, and how the core was replaced."""

    status: str
    detail: str = ""
    by: str = ""


class Seen(Struct, frozen=True):
    """The report of one process on a model.

    `untraced` says why there is no graph, and so no core. `kernels` are the attention operators in a plain call;
    `has_whole` says that one of them computes a whole layer. `paste` has the lines that set the library's switch.
    """

    cores: tuple[Core, ...] = ()
    others: tuple[Softmax, ...] = ()
    untraced: str = ""
    calls: tuple[Times, ...] = ()
    kernels: tuple[str, ...] = ()
    has_whole: bool = False
    settings: dict[str, Tried] = {}
    paste: dict[str, tuple[str, ...]] = {}


def save_looks(looks: Mapping[Point, Sequence[Seen]], run: Path) -> None:
    """Write look.json of a run, and have git ignore a new folder; raises CannotWrite if that fails."""
    is_new = not run.is_dir() or not any(run.iterdir())
    content = [{"point": dataclasses.asdict(point), "processes": to_builtins(seen)} for point, seen in looks.items()]
    with refusing(f"{run / LOOK} can't be written", CannotWrite):
        files.replace_json(run / LOOK, {"looks": content})
    if is_new:
        files.hide(run)
