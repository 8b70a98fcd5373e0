"""Measures attention layers: from sweep files to verdicts and pictures."""

from bench.analyse.compare import compare
from bench.engine.run import run
from bench.store.table import load

__all__ = ["compare", "load", "run"]
