"""The package's own interface."""

import pytest

import bench
from bench.analyse.analysed_run import load
from bench.analyse.comparison import compare
from bench.engine.run import run


def test_the_library_is_three_names() -> None:
    """The names are those of functions in the packages; a typo raises an AttributeError that names it."""
    assert (bench.compare, bench.load, bench.run) == (compare, load, run)
    assert bench.__all__ == ["compare", "load", "run"]
    with pytest.raises(AttributeError, match="module 'bench' has no attribute 'laod'"):
        bench.laod  # noqa: B018 - asking is the deed
