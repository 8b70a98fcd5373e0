"""The package by itself: what it offers, and that a worker doesn't pay for it."""

import subprocess
import sys
from pathlib import Path

import pytest

import bench
from bench.analyse.analysed_run import load
from bench.analyse.comparison import compare
from bench.engine.run import run

ROOT = Path(__file__).parents[1]


def test_the_library_is_three_names() -> None:
    """The names are those of the functions of the packages; a typo is an AttributeError that names it."""
    assert (bench.compare, bench.load, bench.run) == (compare, load, run)
    assert bench.__all__ == ["compare", "load", "run"]
    with pytest.raises(AttributeError, match="module 'bench' has no attribute 'laod'"):
        bench.laod  # noqa: B018 - asking is the deed


def test_importing_the_package_imports_no_table() -> None:
    """Every worker process imports it, and none needs pandas."""
    done = subprocess.run(
        [sys.executable, "-c", "import bench, sys; print({'pandas', 'scipy', 'numpy', 'torch'} & set(sys.modules))"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "set()"
