"""The look before a run."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from bench.engine import preflight
from bench.engine.preflight import Preflight

pytestmark = pytest.mark.slow


@pytest.fixture
def neighbour() -> Iterator[None]:
    """Keep a core busy."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield
    process.kill()
    process.wait()


@pytest.mark.usefixtures("neighbour")
def test_a_busy_neighbour_is_seen() -> None:
    """A process that keeps a core busy shows as most of a core."""
    assert preflight.watch(0.5).others_cores > 0.5


def test_all_cores_on_a_busy_machine_warn_and_say_what_to_do() -> None:
    """With a neighbour, a run on every core is warned about, with the option that helps."""
    (said,) = preflight.warnings(Preflight(others_cores=1.0, switches=0, spread=0.01), threads=2, cores=2)
    assert "other processes use 1.0 cores" in said
    assert "--threads 1" in said


def test_fewer_threads_are_advised_only_if_there_are_two() -> None:
    """On a single core a single thread can't become fewer."""
    said, _ = preflight.warnings(Preflight(others_cores=1.0, switches=0, spread=0.01), threads=1, cores=1)
    assert "quiet the machine" in said
    assert "--threads" not in said


@pytest.mark.parametrize(
    ("others", "threads", "count"),
    [(0.1, 2, 0), (0.1, 1, 0), (0.3, 1, 1), (1.5, 1, 1), (0.3, 2, 1)],
)
def test_others_on_a_quarter_of_the_free_cores_are_worth_a_warning(others: float, threads: int, count: int) -> None:
    """On two cores a neighbour may be the other half of ours, whether we use one or both."""
    assert len(preflight.warnings(Preflight(others, 0, 0.01), threads, cores=2)) == count


def test_on_many_cores_a_busy_one_is_no_news() -> None:
    """One busy core of the sixty that we leave free disturbs nobody."""
    assert preflight.warnings(Preflight(1.0, 0, 0.01), threads=4, cores=64) == []


def test_an_unsteady_clock_is_said() -> None:
    """A fixed product whose time varies by a fifth is worth a line."""
    (said,) = preflight.warnings(Preflight(0.0, 0, 0.2), threads=1, cores=2)
    assert "varies by 20%" in said


def test_a_single_core_is_said() -> None:
    """The run goes on with it."""
    (said,) = preflight.warnings(Preflight(0.0, 0, 0.01), threads=1, cores=1)
    assert "one core" in said
