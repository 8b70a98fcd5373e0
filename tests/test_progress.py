"""What is said while a sweep runs."""

from pathlib import Path

from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.plan.sweep import Effort, Sweep
from bench.progress import Progress
from bench.store.record import Origin, Record, Slots
from tests.points import point

ORIGIN = Origin("env", "a processor", "2.13.0", "abc", "2026-01-01T00:00:00+00:00")
POINTS = (point(num_tokens=5), point(num_tokens=7))
SWEEP = Sweep("tiny", POINTS, ("eager", "sdpa"), effort=Effort(processes=2, target=0.02))


def said() -> list[str]:
    """Return the lines of a sweep of two points in which sdpa takes half the time."""
    lines: list[str] = []
    progress = Progress(SWEEP, 2, lines.append, colour=False)
    progress.opened(Path("there"))
    progress.started()
    for at in POINTS:
        records = [
            Record(Case(at, name), process, "ok", ORIGIN, slots=Slots((0,), ((value,),), (0,), (0,)))
            for process in range(2)
            for name, value in {"eager": 2e-3, "sdpa": 1e-3 + process * 1e-6}.items()
        ]
        progress.finished(summarise(records, "eager"))
    return lines


def test_it_opens_with_the_size_of_the_sweep_and_where_results_go() -> None:
    """The reader knows what is about to happen before the first point is done."""
    lines = said()
    assert "sweep tiny: 2 points x 2 implementations, 2 processes, target ±2.0%" in lines[0]
    assert lines[1] == "results go to there"


def test_every_point_is_one_line_with_position_winner_times_and_ratios() -> None:
    """A line says where the sweep is, what varies, and how each implementation did."""
    *_, first, second = said()
    assert first.startswith("[1/2]")
    assert second.startswith("[2/2]")
    assert "left N=5 | winner: sdpa" in first
    assert "sdpa 1.00 ms 2.00x" in second
    assert "eager 2.00 ms baseline" in second
    assert "\n" not in first
