"""`python -m pytest bench` measures as `python -m bench run` does; then each case is a test of pytest-benchmark."""

import argparse
from pathlib import Path

import pytest

from bench.commands import options
from bench.machine.signals import forget, interrupt, on_end, restore
from bench.plan.errors import WrongRequest
from bench.plan.statuses import INTERRUPTED
from bench.plan.sweep import Sweep

SWEEP = pytest.StashKey[Sweep]()
"""The sweep that the options ask for."""

FOLDER = pytest.StashKey[Path]()
"""The run's folder; missing if cases are only listed."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of a sweep."""
    options.add(lambda title: parser.getgroup(f"attention-bench: {title}").addoption)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse pytest-xdist, because each of its processes would measure."""
    if getattr(config.option, "numprocesses", None):
        raise pytest.UsageError("-n must be left out, because cases are measured one after the other")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Measure before the tests of cases are collected; with --collect-only or --list they are only named."""
    option = session.config.option
    option.collectonly |= option.list
    try:
        session.config.stash[SWEEP] = sweep = options.sweep(option)
        if not option.collectonly:
            session.config.stash[FOLDER] = _measured(sweep, option)
    except WrongRequest as error:
        raise pytest.UsageError(*str(error).splitlines()) from None


def _measured(sweep: Sweep, option: argparse.Namespace) -> Path:
    """Measure a run and return its folder; after Ctrl-C pytest ends with its own status."""
    from bench.commands import run  # slow to import

    handlers = on_end(interrupt)
    try:
        status, folder = run.measured(sweep, option)
    finally:
        restore(handlers)
        forget()
    if status == INTERRUPTED:
        pytest.exit("interrupted", returncode=pytest.ExitCode.INTERRUPTED)
    return folder
