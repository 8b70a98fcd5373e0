"""Lines about two runs: each says its thing on one line."""

import math

import pytest

from bench.analyse.comparable import CommonShift, StateDifference
from bench.show.comparison import notes
from bench.stats.between_runs import BetweenRuns
from tests.analyse.tables import failed, row, table
from tests.examples import case


def test_commits_processes_and_baselines_of_both_runs_are_named() -> None:
    """Failed rows have no processes, results from no checkout no commit; a warning says who has no baseline."""
    base = table(row(case("sdpa"), [0.0, 0.1], commit="abc"), row(case("eager"), [0.0, 0.0, 0.0], commit="abc+"))
    new = table(failed(case("sdpa")))
    assert notes.origins(base, new) == "BASE is commit abc, abc+ in 2 to 3 processes; NEW is commit unknown"
    assert notes.rebased("sdpa", "eager").startswith("baseline: sdpa in place of eager; ")
    assert notes.rebased("sdpa", "").startswith("baseline: sdpa in place of that of the runs; ")
    sides = {(None, "eager"): "of BASE is", ("eager", None): "of NEW is", (None, None): "of BASE and NEW is"}
    assert all(words in notes.unknown_baseline(*baselines) for baselines, words in sides.items())
    assert notes.unknown_baseline("eager", "eager") == ""


@pytest.mark.parametrize(("verdict", "other"), [("slower", "faster"), ("faster", "slower")])
def test_the_hint_names_who_may_have_changed_and_another_baseline(verdict: str, other: str) -> None:
    """Where all ratios fell, their common baseline may have risen."""
    hint = notes.hint(CommonShift(verdict, 9, 10, 3, "mha"), "eager")
    words = ("9 of 10", "3 implementations", f"became {verdict} together", "eager", other, "--baseline mha")
    assert all(word in hint for word in words)


def test_another_state_is_a_warning_on_one_line() -> None:
    """All that differed in words with both values, and what to do; no name of a key of environment.json."""
    facts = {"load_1min": (0.4, 3.9), "preflight.spread": (0.28, 0.05), "preflight.others_cores": (1.04, 0.0)}
    others = {"gpu.clock_hz": (2e9, 1e9)}
    said = notes.state([StateDifference(name, *values) for name, values in {**facts, **others}.items()])
    assert said.startswith("warning: ")
    for words in ("load was 0.4 before BASE and 3.9 before NEW", "28%", "5%", "1.0 cores", "clock hz", "--rerun"):
        assert words in said
    assert not any(name in said for name in (*facts, *others))


def test_runs_that_were_asked_for_differently_say_so() -> None:
    """Sweep, baseline and effort are set side by side, as far as both runs know them."""
    base = {"sweep": "quick", "baseline": "eager", "effort": {"processes": 3, "budget_s": 4, "timeout_s": 300}}
    new = {"sweep": "full", "baseline": "eager", "effort": {"processes": 10, "budget_s": 4, "timeout_s": 60}}
    said = notes.plans(base, new)
    assert "quick against full" in said
    assert "3 against 10" in said
    assert all(word not in said for word in ("eager", "4 s", "300", "timeout"))
    assert notes.plans(base, base) == notes.plans(base, {}) == notes.plans({}, new) == ""


def test_another_speed_and_other_implementations_in_the_rounds_are_warnings() -> None:
    """A factor of speed, and the implementations that only one side measured in its rounds, if there are any."""
    line = notes.speed(1.493)
    assert line.startswith("warning: the median row takes 1.49 times as long in NEW as in BASE")
    assert "--rerun" in line
    line = notes.unshared(["mha", "online"], ["flex"])
    assert line.startswith("warning: ")
    assert "(mha, online in BASE alone; flex in NEW alone)" in line
    assert "(flex in NEW alone)" in notes.unshared([], ["flex"])
    assert notes.unshared([], []) == ""


def test_what_widened_the_intervals_is_said() -> None:
    """The standard deviation between two runs; nothing if it is 0 or not known."""
    assert "differ by 1.5% (standard deviation)" in notes.widened_by_rows(BetweenRuns(0.015, 20.0))
    assert {notes.widened_by_rows(BetweenRuns(sd, 20.0)) for sd in (0.0, math.nan)} == {""}
