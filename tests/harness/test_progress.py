"""What is said while a sweep runs."""

import dataclasses
import re
import sys
import time
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console
from rich.text import Text

from bench.analyse.standing import Answer
from bench.analyse.summary import summarise
from bench.engine.run import Run
from bench.harness import progress
from bench.harness.progress import LEAST_S, LOG_LINE, LOG_WIDTH, Progress, TimeLeft, moving, shortened
from bench.plan.case import Case
from bench.plan.sweep import Effort, Sweep
from bench.show.terminal.console import THEME
from bench.store.record import Record
from tests.clock import Clock
from tests.make.points import point
from tests.make.records import record, samples

REWRITE = "\r\x1b[2K"
"""The codes that move to the beginning of a line of a terminal and clear it."""

POINTS = (point(num_tokens=5), point(num_tokens=7))
SWEEP = Sweep("tiny", POINTS, ("eager", "sdpa", "mha"), effort=Effort(processes=2))
RACE = dataclasses.replace(SWEEP, effort=Effort(processes=2, race=True, bound=0.05, within_s=90))


def records(at: int) -> list[Record]:
    """Return what two processes measured at a point: sdpa takes half the time, mha can't."""
    measured = [
        record(case=Case(POINTS[at], name), process=process, samples=samples(value))
        for process in range(2)
        for name, value in {"eager": 2e-3, "sdpa": 1e-3 + process * 1e-6}.items()
    ]
    refused: dict[str, Any] = {"status": "unsupported", "samples": samples(), "detail": "needs more heads"}
    return [*measured, record(case=Case(POINTS[at], "mha"), **refused)]


def on(width: int = 80, height: int = 0) -> Console:
    """Return a console whose text `written` returns; a height makes it a terminal."""
    return Console(file=StringIO(), force_terminal=height > 0, width=width, height=height, highlight=False, theme=THEME)


def written(out: Console) -> str:
    """Return what was written since the last call."""
    file = cast(StringIO, out.file)
    text = file.getvalue()
    file.truncate(file.seek(0))
    return text


def run(warnings: Sequence[str] = (), end_s: float = 0.0) -> Run:
    """Return what the progress uses of a run that has all records of both points."""
    folder = SimpleNamespace(rows=lambda point: summarise(records(POINTS.index(point)), "eager"))
    return cast(Run, SimpleNamespace(records=folder, warnings=warnings, end_s=lambda _: end_s))


def said(clock: Clock, detail: int = 0, *, height: int = 0, width: int = 80, folder: str = "there") -> str:
    """Return all that is written in a sweep of two points that take a minute each; a height makes it a terminal."""
    out = on(width, height)
    display = Progress(SWEEP, POINTS, out, detail=detail)
    display.opened(Path(folder))
    display.follow(run(["the machine is busy"]))
    for each in POINTS:
        clock.now_s += 20
        display.heard(each, 1, "sdpa", "rounds")
        clock.now_s += 40
        display.told(each)
    display.close(keep=True)
    return written(out)


def opening(sweep: Sweep) -> str:
    """Return what a log begins with."""
    out = on()
    Progress(sweep, sweep.points, out).opened(Path("there"))
    return " ".join(written(out).split())


def test_it_opens_with_the_size_of_the_sweep_and_where_results_go(clock: Clock) -> None:
    """The reader knows what is about to happen before the first worker is there; a long path stays in one piece."""
    folder = "/a/path/with-many-parts" * 6
    first, *rest = said(clock).splitlines()
    assert first.startswith("sweep tiny: 2 points × 3 implementations, 2 processes, vit")
    assert {
        "results go to there",
        "starting worker processes: they import torch …",
        "warning: the machine is busy",
    } <= {*rest}
    assert f"\n{folder}\n" in said(clock, folder=folder)


def test_the_first_line_says_control_and_over_which_time_replicates_are_spread() -> None:
    """The control is counted beside the implementations, not among them."""
    effort = dataclasses.replace(SWEEP.effort, spread_s=3600.0)
    text = opening(dataclasses.replace(SWEEP, control=True, effort=effort))
    assert text.startswith("sweep tiny: 2 points × 3 implementations and control, 2 processes over 1h00m")


def test_a_terminal_that_cannot_rewrite_is_a_log(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """It has a line for each point, as wide as it is, and no codes that move the cursor."""
    monkeypatch.setenv("TERM", "dumb")
    text = said(clock, height=24)
    assert re.findall(r"^\[(\d)/2\]", text, re.MULTILINE) == ["1", "2"]
    assert "\x1b[2K" not in text


def test_the_time_left_is_that_of_the_points_that_are_measured(clock: Clock) -> None:
    """If `-k` selects one of two, the other one takes no time: after half of its processes as much is left."""
    out = on(height=24)
    display = Progress(SWEEP, POINTS[:1], out)
    display.opened(Path("there"))
    display.follow(run())
    display.heard(POINTS[0], 0, "sdpa", "rounds")
    clock.now_s += 60
    display.heard(POINTS[0], 1, "sdpa", "rounds")
    display.close()
    assert "about 1m00s left" in Text.from_ansi(written(out)).plain


def test_a_log_has_one_short_line_for_each_point_and_none_that_moves(clock: Clock) -> None:
    """It says the point, what to use, its speed-up, what failed, and the time left."""
    text = said(clock)
    lines = text.splitlines()
    first, second = [line for line in lines if line.startswith("[")]
    assert re.match(r"\[1/2\] N=5: fastest: sdpa.*, 2\.00?x \[.*\]; 1 not timed \(~1m\d\ds left\)$", first)
    assert re.match(r"\[2/2\] N=7: fastest: sdpa", second)
    assert "left" not in second
    assert max(map(len, (line for line in lines if line not in (first, second)))) <= LOG_WIDTH
    assert max(map(len, lines)) <= LOG_LINE
    assert "\r" not in text


@pytest.mark.parametrize("height", [0, 24])
def test_who_asks_for_detail_reads_each_implementations_time(clock: Clock, height: int) -> None:
    """Below the line of the point, in a log and above the display of a terminal."""
    text = Text.from_ansi(said(clock, 1, height=height, width=100)).plain
    assert re.search(r"^\[1/2\] N=5: fastest: sdpa", text, re.MULTILINE)
    assert text.count("  sdpa 1.00 ms 2.00x; eager 2.00 ms baseline; mha unsupported") == 2


def test_cases_that_cannot_fit_are_foretold_once(clock: Clock) -> None:
    """Before a worker is started one sentence says how many cases will be skipped, and why the first will be."""
    text = opening(Sweep("huge", (point(num_tokens=10_000_000), point(num_tokens=5)), ("eager", "sdpa", "mha")))
    assert "3 of 6 cases can't fit into memory and will be skipped. At N=10000000, eager, sdpa, mha: the ref" in text
    assert text.count("no implementation can be checked here") == 1
    assert "skipped" not in said(clock)


def test_the_moving_line_of_a_terminal_is_rewritten(clock: Clock) -> None:
    """The line has the time since the beginning, is cut to the width, and goes at the end; a log has none."""
    for height in (0, 24):
        out = on(20, height)
        with moving(out) as move:
            clock.now_s += 20
            move("looking: at the model")
            text = written(out)
            assert ("20s looking: at …" in text) == bool(height)
        assert (REWRITE in written(out)) == bool(height)


def test_what_is_written_beside_a_moving_line_has_a_line_of_its_own(clock: Clock) -> None:
    """A warning of torch begins where the moving line began."""
    out = on(40, 24)
    with moving(out) as move:
        clock.now_s += 1
        move("looking: at the model")
        sys.stderr.write("UserWarning: prototype\n")
        assert f"{REWRITE}UserWarning: prototype\n" in written(out)


def comes(out: Console, text: str) -> bool:
    """Return whether this is written within ten seconds."""
    end_s, so_far = time.monotonic() + 10, ""
    while text not in so_far and time.monotonic() < end_s:
        time.sleep(0.005)
        so_far += written(out)
    return text in so_far


def test_a_silent_log_says_for_what_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start of processes, and an import that takes long."""
    monkeypatch.setattr(progress, "LOG_SILENT_S", 0.01)
    out = on()
    display = Progress(SWEEP, POINTS, out)
    display.opened(Path("there"))
    assert comes(out, "still waiting for the worker processes to start")
    display.heard(POINTS[0], 0, "many:b", "import")
    assert comes(out, "still waiting for many:b: import (N=5)")
    display.close()


@pytest.mark.parametrize(
    ("height", "silent_s", "stage"), [(24, 0.001, "import"), (0, 60.0, "import"), (0, 0.001, "rounds")]
)
def test_what_is_seen_or_short_has_no_line(
    height: int, silent_s: float, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A display has it already, and rounds end with the line of their point."""
    monkeypatch.setattr(progress, "LOG_SILENT_S", silent_s)
    out = on(height=height)
    display = Progress(SWEEP, POINTS, out)
    display.opened(Path("there"))
    display.heard(POINTS[0], 0, "many:b", stage)
    time.sleep(0.1)
    display.close()
    assert f"many:b: {stage} (" not in written(out)


def test_a_silent_log_has_the_latest_text_of_a_moving_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once none, and later what the command is at."""
    monkeypatch.setattr(progress, "LOG_SILENT_S", 0.01)
    out = on()
    with moving(out) as move:
        move("looking: first call")
        assert comes(out, "still looking: first call")


@pytest.mark.parametrize(
    ("width", "expected"), [(20, "one two three"), (13, "one two three"), (12, "one two …"), (5, "one …"), (3, " …")]
)
def test_a_text_is_cut_between_words(width: int, expected: str) -> None:
    """A cut shows; a first word that is too long goes as a whole."""
    assert shortened("one two three", width) == expected


def test_who_asks_for_silence_hears_warnings_alone(clock: Clock) -> None:
    """The end of the run says what it found."""
    texts = [Text.from_ansi(said(clock, -1, height=height)).plain.strip() for height in (0, 24)]
    assert texts == ["warning: the machine is busy"] * 2


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 50), (60, 8)])
def test_the_display_fits_the_terminal(clock: Clock, width: int, height: int) -> None:
    """It shows the point at work, the time left and the points that are done, and no line is wrapped."""
    text = said(clock, width=width, height=height)
    plain = [Text.from_ansi(line).plain for line in re.split(r"\r|\n", text)]
    assert max(map(len, plain)) <= max(width, len("results go to there"))
    assert any("point 2 of 2: N=7 · sdpa: rounds · process 2 of 2" in line for line in plain)
    assert any(re.search(r"about \d+s left", line) for line in plain)
    assert [("sdpa" in line, line.split()[0]) for line in plain[-3:-1]] == [(True, "N=5"), (True, "N=7")]
    assert "the machine is busy" in text
    assert "answered" not in text, "only a race has answers"


def test_the_display_goes_when_the_end_repeats_its_lines(clock: Clock) -> None:
    """Without `keep` nothing is printed after it."""
    out = on(height=24)
    display = Progress(SWEEP, POINTS, out)
    display.opened(Path("there"))
    display.follow(run())
    display.told(POINTS[0])
    written(out)
    display.close()
    assert re.search(r"(\x1b\[1A\x1b\[2K)+$", written(out)), "every line of the display is cleared at the end"
    display.close(keep=True)
    assert written(out) == ""


# A race

OPEN = Answer("sdpa", 0.2, ("sdpa", "eager"), (2.0, 2.0), 2)
CLOSER = dataclasses.replace(OPEN, bound=0.1, replicates=3)
GOOD = Answer("sdpa", 0.01, replicates=4)


class Raced:
    """A race over two points; `written` is what its progress wrote since it was last read."""

    def __init__(self, *, height: int = 0, detail: int = 0) -> None:
        self._out = on(110, height)
        self.progress = Progress(RACE, POINTS, self._out, detail=detail)
        self.progress.opened(Path("there"))
        self.progress.follow(run(end_s=90.0))

    def written(self) -> str:
        """Return what was written since the last call, without colours."""
        return Text.from_ansi(written(self._out)).plain

    def judged(self, at: int, answer: Answer | None) -> list[str]:
        """Tell what is known of a point, and return the lines of points."""
        self.written()
        self.progress.told(POINTS[at], answer)
        return [line for line in self.written().splitlines() if re.search(r"\bN=[57]\b.*sdpa", line)]

    def finished(self, at: int) -> list[str]:
        """Tell of the end of a point, and return the lines of points."""
        return self.judged(at, None)


def test_a_point_of_a_race_has_a_line_after_its_base_and_another_once_its_answer_is_good(clock: Clock) -> None:
    """Replicates in between have no line, and no line comes twice. A point keeps the number of its first line."""
    race = Raced()
    lines = [*race.judged(0, OPEN), *race.judged(1, OPEN)]
    assert [race.judged(0, CLOSER), race.judged(1, CLOSER)] == [[], []]
    lines += [*race.judged(1, GOOD), *race.judged(0, GOOD)]
    assert [line[:9] for line in lines] == ["[1/2] N=5", "[2/2] N=7", "[2/2] N=7", "[1/2] N=5"]
    assert [race.judged(0, GOOD), race.finished(0), race.finished(1)] == [[], [], []]


@pytest.mark.parametrize(
    ("answers", "before_the_end", "at_the_end"),
    [
        ([(0, GOOD), (1, GOOD)], ["[1/2] N=5", "[2/2] N=7"], []),
        ([(0, OPEN), (1, OPEN), (0, CLOSER)], ["[1/2] N=5", "[2/2] N=7"], ["[1/2] N=5", "[2/2] N=7"]),
        ([(1, OPEN)], ["[1/2] N=7"], ["[2/2] N=5", "[1/2] N=7"]),
    ],
    ids=["answered at once", "never answered", "one point measured by itself"],
)
def test_the_end_of_a_race_has_a_line_for_each_point_without_an_answer(
    clock: Clock, answers: list[tuple[int, Answer]], before_the_end: list[str], at_the_end: list[str]
) -> None:
    """It says what all replicates say together. A point that was not judged is counted when it ends."""
    race = Raced()
    assert [line[:9] for answer in answers for line in race.judged(*answer)] == before_the_end
    assert [line[:9] for at in (0, 1) for line in race.finished(at)] == at_the_end


def test_the_first_line_of_a_race_says_how_sure_and_how_long(clock: Clock) -> None:
    """The bound and the time take the place of the number of processes; without a time it is that of all points."""
    text = " ".join(Raced().written().split())
    assert "a race to 5% within 1m30s" in text
    assert "2 processes" not in text
    assert "within 1m00s" in opening(dataclasses.replace(RACE, effort=dataclasses.replace(RACE.effort, within_s=None)))


def test_a_line_of_a_race_has_the_time_until_its_end(clock: Clock) -> None:
    """It doesn't depend on how long the points took, and stands there until all of them are answered."""
    race = Raced()
    clock.now_s = 30.0
    lines = [*race.judged(0, GOOD), *race.judged(1, OPEN), *race.judged(1, GOOD)]
    assert ["(~1m00s left)" in line for line in lines] == [True, True, False]


def test_a_terminal_says_who_is_named_so_far_and_who_is_left(clock: Clock) -> None:
    """Before the base and after a good answer it says the process; the number never exceeds that of the points."""
    race = Raced(height=24)

    def now(at: int) -> str:
        race.written()
        clock.now_s += 1.0
        race.progress.heard(POINTS[at], 1, "sdpa", "rounds")
        return race.written()

    assert "point 1 of 2: N=5 · sdpa: rounds · process 2 of 2" in (text := now(0))
    assert "about 1m29s left" in text
    race.judged(0, OPEN)
    assert "point 2 of 2: N=7 · sdpa: rounds · process 2 of 2" in now(1)
    race.judged(1, OPEN)
    assert "answered 0 of 2: N=5 · sdpa: rounds · sdpa so far, 2 left, within 20%" in now(0)
    race.judged(0, GOOD)
    assert "process 2 of 2" in now(0)


def test_the_display_has_one_line_for_each_point_of_a_race_which_every_replicate_renews(clock: Clock) -> None:
    """What stays in the end are the latest answers, in the order of the first ones; meanwhile it counts the answers."""
    race = Raced(height=24)
    assert [len(race.judged(at, OPEN)) > 0 for at in (1, 0)] == [True, True]
    assert race.judged(1, CLOSER) != []
    race.judged(0, GOOD)
    clock.now_s += 1.0
    race.progress.heard(POINTS[1], 3, "sdpa", "rounds")
    text = race.written()
    assert "answered 1 of 2: N=7 · sdpa: rounds · sdpa so far, 2 left, within 10%" in text
    race.finished(1)
    race.progress.close(keep=True)
    kept = race.written().rpartition("point ")[2]
    assert re.findall(r"^N=[57]", kept, re.MULTILINE) == ["N=7", "N=5"]


def test_who_asks_for_silence_hears_nothing_of_a_race(clock: Clock) -> None:
    """The end of the run says what to use."""
    race = Raced(detail=-1)
    assert [race.judged(*answer) for answer in ((0, OPEN), (0, GOOD), (1, OPEN))] == [[], [], []]
    assert (race.finished(1), race.written()) == ([], "")


# The time that is left

MEASURED_S = {50: 23, 197: 30, 577: 76, 1024: 151}
"""The seconds of points by their tokens, as the published run of `quick` took them: batch 8, 384 channels, 6 heads."""

SHAPES = [point(batch=8, num_tokens=tokens, channels=384, num_heads=6) for tokens in MEASURED_S]


def test_no_time_is_left_or_unknown_before_anything_was_measured() -> None:
    """Not at the beginning, nor from points that were there already, nor from a process that took no time."""
    left = TimeLeft(SHAPES, 2)
    assert (left.left_s(), left.left_s(SHAPES[0], 5.0)) == (None, None)
    left.finished(SHAPES[0], 0.01)
    assert left.left_s() is None
    assert (left.left_s(SHAPES[1], 0.0, 0), left.left_s(SHAPES[1], 0.0, 1)) == (None, None)


@pytest.mark.parametrize(("processes", "first", "left_s"), [(2, 0, 10.0), (5, 2, 20.0)])
def test_processes_of_this_session_say_how_long_the_others_take(processes: int, first: int, left_s: float) -> None:
    """One of two took ten seconds, so the other takes as long; a run that goes on with its third of five has two left.

    So it is before the first point is done.
    """
    left = TimeLeft(SHAPES[:1], processes)
    assert left.left_s(SHAPES[0], 0.1, first) is None
    assert left.left_s(SHAPES[0], 10.0, first + 1) == pytest.approx(left_s)


@pytest.mark.parametrize("is_reversed", [False, True])
def test_larger_points_take_longer(is_reversed: bool) -> None:
    """From a third of the time on, the estimate is within a quarter of the truth, though sizes differ widely."""
    order = SHAPES[::-1] if is_reversed else SHAPES
    left, whole_s, passed_s = TimeLeft(order, 2), sum(MEASURED_S.values()), 0.0
    for each in order[:-1]:
        took_s = MEASURED_S[each.num_tokens]
        left.finished(each, took_s)
        passed_s += took_s
        if passed_s > whole_s / 3:
            assert left.left_s() == pytest.approx(whole_s - passed_s, rel=0.25)


def test_it_ends_with_nothing_left() -> None:
    """When every point is done no time is left; a point that takes longer than expected is never below zero."""
    left = TimeLeft(SHAPES[:2], 2)
    left.finished(SHAPES[0], 10.0)
    assert left.left_s(SHAPES[1], 1e6) == 0
    left.finished(SHAPES[1], 10.0)
    assert left.left_s() == 0


def test_precisions_of_a_point_count_once_and_an_own_layer_takes_as_long_as_the_others() -> None:
    """Precisions are measured together, so the second is done with the first; no work is known of an own layer."""
    pair = [point(num_tokens=50, dtype=dtype) for dtype in ("float32", "bfloat16")]
    left = TimeLeft([*pair, *SHAPES[1:2]], 2)
    left.finished(pair[0], 30.0)
    before = left.left_s()
    left.finished(pair[1], 0.0)
    assert left.left_s() == before
    own = [point(layer="my.layer:Layer", num_tokens=tokens) for tokens in MEASURED_S]
    left = TimeLeft(own, 2)
    left.finished(own[0], 10.0)
    left.finished(own[1], 20.0)
    assert left.left_s() == pytest.approx(2 * 15)


def test_a_race_has_as_long_as_its_clock_says_and_at_least_its_base(clock: Clock) -> None:
    """Points that are done don't change the clock. The base goes on when the time is up, and nothing is ever 0."""
    left = TimeLeft(SHAPES[:2], 2)
    left.end_s = 100.0
    assert left.left_s() == 100
    clock.now_s = 30.0
    left.finished(SHAPES[0], 30.0)
    assert left.left_s(SHAPES[1], 0.1, 0) == 70
    clock.now_s = 95.0
    assert 20 < (left.left_s(SHAPES[1], 0.1, 0) or 0) < 60
    clock.now_s = 130.0
    assert left.left_s(SHAPES[1], 1e6, 3) == LEAST_S
    left.finished(SHAPES[1], 100.0)
    assert left.left_s() == LEAST_S
    unknown = TimeLeft(SHAPES, 2)
    unknown.end_s = 100.0
    assert unknown.left_s() is None


def test_what_may_wait_is_not_waited_for(clock: Clock) -> None:
    """With a time that was asked for, only the base at work counts beside the clock."""
    left = TimeLeft(SHAPES, 2)
    left.end_s, left.may_wait = 40.0, True
    clock.now_s = 30.0
    left.finished(SHAPES[0], 30.0)
    assert left.left_s() == 10
    assert 10 < (left.left_s(SHAPES[1], 0.1, 0) or 0) < 60


@pytest.mark.parametrize(("now_s", "is_said"), [(20.0, False), (60.0, True)])
@pytest.mark.parametrize("height", [0, 24])
def test_a_base_that_takes_longer_than_the_time_is_said_once(
    clock: Clock, height: int, now_s: float, is_said: bool
) -> None:
    """As soon as the first replicate is taken: two points of two replicates of 60 s don't end in 90 s."""
    race = Raced(height=height)
    race.written()
    clock.now_s = now_s
    for process in (0, 1, 1):
        race.progress.heard(POINTS[0], process, "sdpa", "rounds")
    said = re.findall("base of 2 points: about (\\S+), longer than --within 1m30s", " ".join(race.written().split()))
    assert said == ["4m00s"] * is_said
