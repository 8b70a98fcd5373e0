"""Measure a sweep, as `pytest bench` does and with its options."""

import argparse
import contextlib
import os
from pathlib import Path

import pytest

from bench.commands import FINE
from bench.harness import options
from bench.plan.invocation import short

FOLDER = Path(__file__).parents[1]
"""The folder of the test that measures a point."""

WITHOUT_SETTINGS = (
    "-c", os.devnull, "--rootdir", str(FOLDER), "--confcutdir", str(FOLDER), "--import-mode", "importlib",
    "-p", "no:cacheprovider", "-p", "pytest_benchmark.plugin",
)  # fmt: skip
"""Options by which no file of the folder in which the command runs is pytest's: no settings and no conftest.py."""


def run(arguments: argparse.Namespace) -> int:
    """Run the test that measures, without settings and plugins of the user's own tests; return pytest's exit status.

    With `-h` or `--help` print the options of a sweep instead.
    """
    if {"-h", "--help"} & {*arguments.words}:
        _help().print_help()
        return FINE
    os.environ.pop("PYTEST_ADDOPTS", None)
    os.environ.pop("PYTEST_PLUGINS", None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    benchmarks = Path(".benchmarks")  # pytest-benchmark makes it, also if nothing is saved there
    is_new = not benchmarks.exists()
    status = int(pytest.main([*WITHOUT_SETTINGS, str(FOLDER / "test_sweep.py"), *arguments.words], plugins=[Alone()]))
    with contextlib.suppress(OSError):
        if is_new:
            benchmarks.rmdir()
    return status


def _help() -> argparse.ArgumentParser:
    """Return what prints the options of a sweep, and where those of pytest are."""
    parser = argparse.ArgumentParser(
        prog=f"{short()} run",
        usage="%(prog)s [options]",
        description=options.EXAMPLES,
        epilog="All options of pytest work too, as -k, -x and --maxfail: `python -m pytest --help` lists them.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add(lambda title: parser.add_argument_group(title).add_argument)
    return parser


class Alone:
    """What pytest is told of this command: how it is called, and that it takes options alone."""

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        """Name the command in usage lines."""
        parser.prog = f"{short()} run"

    def pytest_configure(self, config: pytest.Config) -> None:
        """Refuse files of tests."""
        if others := config.args[1:]:
            raise pytest.UsageError(f"run takes options alone, got {' '.join(others)}")
