"""Measure a sweep, as `pytest bench` does and with its options."""

import argparse
import contextlib
import os
from pathlib import Path

import pytest

from bench.plan.invocation import short

FOLDER = Path(__file__).parents[1]
"""The folder of the test that measures a point."""

ALONE = (
    "-c", os.devnull, "--rootdir", str(FOLDER), "--confcutdir", str(FOLDER), "--import-mode", "importlib",
    "-p", "no:cacheprovider", "-p", "pytest_benchmark.plugin",
)  # fmt: skip
"""Options by which no file of the folder in which the command runs is pytest's: no settings and no conftest.py."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Leave all words to pytest, `-h` too."""
    parser.prefix_chars = "\0"
    parser.add_argument("words", nargs="*")


def run(arguments: argparse.Namespace) -> int:
    """Run the test that measures, without settings and plugins of the user's own tests; return pytest's exit status."""
    os.environ.pop("PYTEST_ADDOPTS", None)
    os.environ.pop("PYTEST_PLUGINS", None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    benchmarks = Path(".benchmarks")  # pytest-benchmark makes it, also if nothing is saved there
    is_new = not benchmarks.exists()
    status = int(pytest.main([*ALONE, str(FOLDER / "test_sweep.py"), *arguments.words], plugins=[Alone()]))
    with contextlib.suppress(OSError):
        if is_new:
            benchmarks.rmdir()
    return status


class Alone:
    """What pytest is told of this command: how it is called, and that it takes options alone."""

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        """Name the command in usage lines."""
        parser.prog = f"{short()} run"

    def pytest_configure(self, config: pytest.Config) -> None:
        """Refuse files of tests."""
        if others := config.args[1:]:
            raise pytest.UsageError(f"run takes options alone, got {' '.join(others)}")
