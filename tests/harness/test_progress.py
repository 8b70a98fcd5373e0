"""What is said while a sweep runs."""

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.text import Text

from bench.analyse.race import Look
from bench.analyse.summary import summarise
from bench.harness import live, time_left
from bench.harness import progress as module
from bench.harness.live import LiveProgress
from bench.harness.progress import (
    LOG_LINE,
    LOG_WIDTH,
    REWRITE,
    LogProgress,
    Progress,
    QuietProgress,
    Screen,
    failed,
    fitted,
    shortened,
)
from bench.plan.case import Case
from bench.plan.sweep import Effort, Sweep
from bench.store.record import Record
from tests.clock import Clock
from tests.examples import record, timed
from tests.points import point

POINTS = (point(num_tokens=5), point(num_tokens=7))
SWEEP = Sweep("tiny", POINTS, ("eager", "sdpa", "mha"), effort=Effort(processes=2))
RACE = dataclasses.replace(SWEEP, effort=Effort(processes=2, race=True, bound=0.05, within_s=90))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock that a point's time is taken by."""
    made = Clock()
    for at in (module, time_left, live):
        monkeypatch.setattr(at, "time", made)
    return made


def records(at: int) -> list[Record]:
    """Return what two processes measured at a point: sdpa takes half the time, mha can't."""
    measured = [
        record(case=Case(POINTS[at], name), process=process, samples=timed(value))
        for process in range(2)
        for name, value in {"eager": 2e-3, "sdpa": 1e-3 + process * 1e-6}.items()
    ]
    refused: dict[str, Any] = {"status": "unsupported", "samples": timed(), "detail": "needs more heads"}
    return [*measured, record(case=Case(POINTS[at], "mha"), **refused)]


def said(clock: Clock, *, is_terminal: bool, width: int = 80, folder: str = "there") -> str:
    """Return all that is written in a sweep of two points that take a minute each, with a sign of life in each."""
    written: list[str] = []
    progress = Progress(SWEEP, 2, Screen(written.append, is_terminal=is_terminal, width=width), colour=is_terminal)
    progress.opened(Path(folder))
    progress.started(["the machine is busy"])
    for at in range(2):
        clock.now_s += 20
        progress.heard(POINTS[at], 1, "sdpa", "rounds")
        clock.now_s += 40
        progress.finished(summarise(records(at), "eager"))
    return "".join(written)


def test_it_opens_with_the_size_of_the_sweep_and_where_results_go(clock: Clock) -> None:
    """The reader knows what is about to happen before the first worker is there; a long path stays in one piece."""
    folder = "/a/path/with-many-parts" * 6
    first, *rest = said(clock, is_terminal=False).splitlines()
    assert first.startswith("sweep tiny: 2 points × 3 implementations, 2 processes, vit")
    assert {"results go to there", "starting worker processes …", "warning: the machine is busy"} <= {*rest}
    assert f"\n{folder}\n" in said(clock, is_terminal=False, folder=folder)


def test_it_says_if_the_sweep_has_a_control(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is counted beside the implementations, not among them."""
    monkeypatch.setattr(f"{__name__}.SWEEP", dataclasses.replace(SWEEP, control=True))
    assert said(clock, is_terminal=False).startswith(
        "sweep tiny: 2 points × 3 implementations and control, 2 processes"
    )


def test_a_log_has_one_line_for_each_point_and_none_that_moves(clock: Clock) -> None:
    """A line has the position, what varies, what to use, how many cases failed and how; none is too long."""
    lines = said(clock, is_terminal=False).splitlines()
    points = [line for line in lines if line.startswith("[")]
    assert [line.split()[0] for line in points] == ["[1/2]", "[2/2]"]
    assert re.search(r"~1m\d\ds left N=5 \| fastest: sdpa", points[0])
    assert "| 1 unsupported" in points[0]
    assert max(map(len, lines)) <= LOG_WIDTH
    assert "\r" not in "".join(lines)


def test_a_terminal_shows_what_is_measured_in_a_line_that_is_rewritten(clock: Clock) -> None:
    """The moving line says point, implementation, stage, process and the time left, and goes when the point ends."""
    written = said(clock, is_terminal=True, width=100)
    moving = [text.split("\n")[0] for text in written.split(REWRITE)]
    assert "starting worker processes …" in moving
    assert any(text.startswith("[1/2] N=5 | sdpa: rounds | process 2 of 2") for text in moving)
    assert any(re.fullmatch(r"\[2/2\] N=7 \| sdpa: rounds \| process 2 of 2 \| ~\d+s left", text) for text in moving)
    last = Text.from_ansi(written.splitlines()[-1].rpartition(REWRITE)[2]).plain
    assert last.startswith("[2/2]")
    assert "~0s left N=7" in last


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_broken(clock: Clock, width: int) -> None:
    """Every word of a narrow terminal stands in a wide one too."""

    def words(width: int) -> tuple[set[str], int]:
        shown = [
            part for line in said(clock, is_terminal=True, width=width).splitlines() for part in line.split(REWRITE)
        ]
        plain = [Text.from_ansi(part).plain for part in shown]
        return {word.strip(",:") for line in plain for word in line.split()}, max(map(len, plain))

    narrow, longest = words(width)
    assert longest <= width
    assert narrow - {"…"} <= words(1000)[0]


def test_cases_that_cannot_fit_are_foretold_once(clock: Clock) -> None:
    """Before a worker is started one sentence says how many cases will be skipped, and why the first will be."""
    written: list[str] = []
    sweep = Sweep("huge", (point(num_tokens=10_000_000), point(num_tokens=5)), ("eager", "sdpa", "mha"))
    Progress(sweep, 2, Screen(written.append, is_terminal=False, width=80), colour=False).opened(Path("there"))
    text = "".join(written).replace("\n", " ")
    assert "3 of 6 cases can't fit into memory and will be skipped. At N=10000000, eager, sdpa, mha: the ref" in text
    assert text.count("no implementation can be checked here") == 1
    assert "skipped" not in said(clock, is_terminal=False)


def test_a_time_left_is_not_told_by_points_that_were_there(clock: Clock) -> None:
    """Points of an earlier session take no time; only what was measured says how long the rest takes."""
    written: list[str] = []
    progress = Progress(SWEEP, 2, Screen(written.append, is_terminal=False, width=80), colour=False)
    progress.started()
    progress.finished(summarise(records(0), "eager"))
    assert "left" not in "".join(written)


LINE = (
    "[ 1/12] N=577 | use sdpa: mha or eager may be up to 3.4% faster | sdpa 1.00 ms 2.00x | mha 1.01 ms 1.98x | x oom"
)


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (200, LINE.replace(" | sdpa 1.00", " | 1 oom | sdpa 1.00")),
        (100, "[ 1/12] N=577 | use sdpa: mha or eager may be up to 3.4% faster | 1 oom | sdpa 1.00 ms 2.00x"),
        (80, "[ 1/12] N=577 | use sdpa: mha or eager may be up to 3.4% faster | 1 oom"),
        (60, "[ 1/12] N=577 | use sdpa: mha or eager may be up … | 1 oom"),
    ],
)
def test_details_give_way_to_what_matters(width: int, expected: str) -> None:
    """Implementations' times go first, then the end of the sentence; point, what to use and failures stay."""
    assert fitted(LINE, "1 oom", width) == expected
    assert len(expected) <= width


def test_colours_stay_with_their_words() -> None:
    """A line with ANSI codes is as wide as its words, and keeps its codes."""
    line = "\x1b[2m[1/2] N=5\x1b[0m | \x1b[32mfastest: sdpa\x1b[0m | sdpa 1.00 ms"
    assert Text.from_ansi(fitted(line, "", 80)).plain == "[1/2] N=5 | fastest: sdpa | sdpa 1.00 ms"
    short = fitted(line, "", 30)
    assert Text.from_ansi(short).plain == "[1/2] N=5 | fastest: sdpa"
    assert re.search(r"\x1b\[32mfastest: sdpa\x1b\[0m", short)


def test_failures_are_counted_by_status() -> None:
    """What is ok is not counted."""
    assert failed(["ok", "oom", "unsupported", "oom"]) == "2 oom, 1 unsupported"
    assert failed(["ok"]) == ""


@pytest.mark.parametrize(
    ("width", "expected"), [(20, "one two three"), (13, "one two three"), (12, "one two …"), (5, "one …"), (3, " …")]
)
def test_a_text_is_cut_between_words(width: int, expected: str) -> None:
    """A cut shows; a first word that is too long goes as a whole."""
    assert shortened("one two three", width) == expected


def test_the_first_line_says_over_which_time_the_replicates_are_spread(clock: Clock) -> None:
    """A run that takes an hour says so."""
    written: list[str] = []
    sweep = dataclasses.replace(SWEEP, effort=dataclasses.replace(SWEEP.effort, spread_s=3600.0))
    Progress(sweep, 2, Screen(written.append, is_terminal=False, width=80), colour=False).opened(Path("there"))
    assert "2 processes over 1h00m" in " ".join("".join(written).split())


def lines_of(kind: type[Progress], clock: Clock, **options: Any) -> str:
    """Return all that a kind of progress writes in a sweep of two points, of which the first was interrupted once."""
    written: list[str] = []
    screen = Screen(written.append, is_terminal="height" in options, width=options.pop("width", 80))
    progress = kind(SWEEP, 2, screen, colour=False, **options)
    progress.opened(Path("there"))
    progress.started(["the machine is busy"])
    for at in range(2):
        clock.now_s += 20
        progress.heard(POINTS[at], 1, "sdpa", "rounds")
        clock.now_s += 40
        progress.finished(summarise(records(at), "eager"))
    progress.close(keep=True)
    return "".join(written)


def test_a_log_has_one_short_line_for_each_point(clock: Clock) -> None:
    """It says the point, what to use, its speed-up, what failed, and the time left."""
    lines = lines_of(LogProgress, clock).splitlines()
    first, second = [line for line in lines if line.startswith("[")]
    assert re.match(r"\[1/2\] N=5: fastest: sdpa.*, 2\.00x \[.*\]; 1 not timed \(~1m\d\ds left\)$", first)
    assert "left" not in second
    assert max(map(len, lines)) <= LOG_LINE


def test_who_asks_for_silence_hears_warnings_alone(clock: Clock) -> None:
    """The end of the run says what it found."""
    assert lines_of(QuietProgress, clock) == "warning: the machine is busy\n"


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 50), (60, 8)])
def test_the_display_fits_the_terminal(clock: Clock, width: int, height: int) -> None:
    """It shows the point at work, the time left and the points that are done, and no line is wrapped."""
    text = lines_of(LiveProgress, clock, width=width, height=height)
    plain = [Text.from_ansi(line).plain for line in re.split(r"\r|\n", text)]
    assert max(map(len, plain)) <= max(width, len("results go to there"))
    assert any("point 2 of 2: N=7 · sdpa: rounds · process 2 of 2" in line for line in plain)
    assert any(re.search(r"about \d+s left", line) for line in plain)
    assert [("sdpa" in line, line.split()[0]) for line in plain[-3:-1]] == [(True, "N=5"), (True, "N=7")]
    assert "the machine is busy" in text
    assert "answered" not in text, "only a race has answers"


def test_the_display_goes_when_the_end_repeats_its_lines(clock: Clock) -> None:
    """Without `keep` nothing is printed after it."""
    written: list[str] = []
    progress = LiveProgress(SWEEP, 2, Screen(written.append, is_terminal=True, width=80), colour=False, height=24)
    progress.opened(Path("there"))
    progress.finished(summarise(records(0), "eager"))
    del written[:]
    progress.close()
    assert re.search(r"(\x1b\[1A\x1b\[2K)+$", "".join(written)), "every line of the display is cleared at the end"
    del written[:]
    progress.close(keep=True)
    assert written == []


# A race

OPEN = Look("sdpa", 0.2, ("sdpa", "eager"), (2.0, 2.0), 2)
CLOSER = dataclasses.replace(OPEN, bound=0.1, replicates=3)
ANSWERED = Look("sdpa", 0.01, replicates=4)

KINDS = (Progress, LogProgress, LiveProgress)


class Raced:
    """A race over two points that a kind of progress shows; `written` is what it wrote since it was last read."""

    def __init__(self, kind: type[Progress], *, is_terminal: bool | None = None) -> None:
        self._written: list[str] = []
        is_live = kind is LiveProgress
        screen = Screen(self._written.append, is_terminal=is_live if is_terminal is None else is_terminal, width=110)
        options: dict[str, Any] = {"height": 24} if is_live else {}
        self.progress = kind(RACE, 2, screen, colour=False, **options)
        self.progress.opened(Path("there"))
        self.progress.started()
        self.progress.races(90.0)

    def written(self) -> str:
        """Return what was written since the last call, without colours."""
        text = Text.from_ansi("".join(self._written)).plain
        self._written.clear()
        return text

    def looked(self, at: int, look: Look) -> list[str]:
        """Tell of a look, and return the lines of points."""
        return self._lines(lambda rows: self.progress.looked(POINTS[at], look, rows), at)

    def finished(self, at: int) -> list[str]:
        """Tell of the end of a point, and return the lines of points."""
        return self._lines(self.progress.finished, at)

    def _lines(self, tell: Callable[[pd.DataFrame], None], at: int) -> list[str]:
        self.written()
        tell(summarise(records(at), "eager"))
        return [line for line in self.written().splitlines() if re.search(r"\bN=[57]\b.*sdpa", line)]


@pytest.mark.parametrize("kind", [Progress, LogProgress])
def test_a_point_of_a_race_has_a_line_after_its_first_look_and_another_once_it_is_answered(
    kind: type[Progress], clock: Clock
) -> None:
    """Looks between them are not told, and none is told again. First the looked at are counted, then the answered."""
    race = Raced(kind)
    lines = [*race.looked(0, OPEN), *race.looked(1, OPEN)]
    assert [race.looked(0, CLOSER), race.looked(1, CLOSER)] == [[], []]
    lines += [*race.looked(1, ANSWERED), *race.looked(0, ANSWERED)]
    assert [(line[:5], "N=5" in line) for line in lines] == [
        ("[1/2]", True), ("[2/2]", False), ("[1/2]", False), ("[2/2]", True),
    ]  # fmt: skip
    assert [race.looked(0, ANSWERED), race.finished(0), race.finished(1)] == [[], [], []]


@pytest.mark.parametrize("kind", [Progress, LogProgress])
def test_a_point_that_its_first_look_answers_has_one_line(kind: type[Progress], clock: Clock) -> None:
    """It is told as it is for good."""
    race = Raced(kind)
    (line,) = race.looked(0, ANSWERED)
    assert line.startswith("[1/2]")
    assert race.finished(0) == []


@pytest.mark.parametrize("kind", [Progress, LogProgress])
def test_a_point_that_has_no_answer_in_time_has_a_last_line(kind: type[Progress], clock: Clock) -> None:
    """It says what all of its looks say together, and its number is that of a point."""
    race = Raced(kind)
    assert [len(race.looked(at, look)) for at, look in ((0, OPEN), (1, OPEN), (0, CLOSER))] == [1, 1, 0]
    lines = [*race.finished(0), *race.finished(1)]
    assert [re.findall("N=.", line) for line in lines] == [["N=5"], ["N=7"]]
    assert all(re.match(r"\[[12]/2\]", line) for line in lines)


def test_a_point_without_a_look_is_counted_when_it_ends(clock: Clock) -> None:
    """So it is in a sweep of equal shares, and at a point of a race that was measured by itself."""
    race = Raced(LogProgress)
    assert [line[:9] for line in (*race.finished(0), *race.looked(1, OPEN))] == ["[1/2] N=5", "[2/2] N=7"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_line_of_a_race_says_how_sure_and_how_long(kind: type[Progress], clock: Clock) -> None:
    """The bound and the time take the place of the number of processes; without a time it is that of all points."""
    text = " ".join(Raced(kind).written().split())
    assert "a race to 5% within 1m30s" in text
    assert "2 processes" not in text
    written: list[str] = []
    usual = dataclasses.replace(RACE, effort=dataclasses.replace(RACE.effort, within_s=None))
    Progress(usual, 2, Screen(written.append, is_terminal=False, width=80), colour=False).opened(Path("there"))
    assert "within 1m00s" in " ".join("".join(written).split())


def test_a_line_of_a_race_tells_the_time_until_its_end(clock: Clock) -> None:
    """It doesn't depend on how long the points took, and is told until all of them are answered."""
    race = Raced(LogProgress)
    clock.now_s = 30.0
    lines = [*race.looked(0, ANSWERED), *race.looked(1, OPEN), *race.looked(1, ANSWERED)]
    assert ["(~1m00s left)" in line for line in lines] == [True, True, False]


def test_a_terminal_says_who_is_named_so_far_and_who_is_left(clock: Clock) -> None:
    """Before the first look and after the answer it says the process; the number never exceeds that of the points."""
    race = Raced(Progress, is_terminal=True)

    def moving(at: int) -> str:
        race.written()
        clock.now_s += 1.0
        race.progress.heard(POINTS[at], 1, "sdpa", "rounds")
        return race.written()

    assert "[1/2] N=5 | sdpa: rounds | process 2 of 2 | ~1m29s left" in moving(0)
    race.looked(0, OPEN)
    assert "[2/2] N=7 | sdpa: rounds | process 2 of 2" in moving(1)
    race.looked(1, OPEN)
    assert "[2/2] N=5 | sdpa: rounds | sdpa so far, 2 left, within 20% | ~1m27s left" in moving(0)
    race.looked(0, ANSWERED)
    assert "process 2 of 2" in moving(0)


def test_the_display_has_one_line_for_each_point_of_a_race_which_every_look_renews(clock: Clock) -> None:
    """What stays in the end are the latest looks, in the order of the first ones; meanwhile it counts the answers."""
    race = Raced(LiveProgress)
    assert [len(race.looked(at, OPEN)) > 0 for at in (1, 0)] == [True, True]
    assert race.looked(1, CLOSER) != []
    race.looked(0, ANSWERED)
    clock.now_s += 1.0
    race.progress.heard(POINTS[1], 3, "sdpa", "rounds")
    text = race.written()
    assert "answered 1 of 2: N=7 · sdpa: rounds · sdpa so far, 2 left, within 10%" in text
    race.finished(1)
    race.progress.close(keep=True)
    kept = race.written().rpartition("point ")[2]
    assert re.findall(r"^N=[57]", kept, re.MULTILINE) == ["N=7", "N=5"]


def test_who_asks_for_silence_hears_nothing_of_a_race(clock: Clock) -> None:
    """The end of the run says what it found."""
    race = Raced(QuietProgress)
    for at, look in ((0, OPEN), (0, ANSWERED), (1, OPEN)):
        assert race.looked(at, look) == []
    assert race.finished(1) == []
    assert race.written() == ""
