"""Settings of all tests."""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from bench.store import ceilings

settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")


def pytest_collection_finish() -> None:
    """Take what was collected out of garbage collection, which each visit of a point waits for."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take out what pytest-xdist tells its workers: they and what they start behave as in a suite of one process."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


@pytest.fixture(autouse=True)
def _forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep nothing of what made-up workers see of this machine, where real runs would find it."""
    monkeypatch.setattr(ceilings, "PATH", Path(os.devnull) / "ceilings.json")
