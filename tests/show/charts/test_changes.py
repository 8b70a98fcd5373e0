"""The chart of a comparison: every judged row, distinguished by more than colour, whatever their number."""

from pathlib import Path

import numpy as np
import pytest

from bench.analyse.comparison import compare
from bench.show.charts.catalogue import draw_comparison as draw
from bench.show.charts.changes import MARKS, pictures
from bench.show.comparison.report import STAMP, Report
from bench.show.picture import Panel, Picture
from bench.stats.limits import Limits
from tests.make.comparisons import NOISY, every_verdict
from tests.make.records import case
from tests.make.rows import at, failed, row, table
from tests.make.rows import drawn as drawn_rows
from tests.refusals import refusal

UNLIKE = ("cpu: 'Intel(R) Xeon(R) Processor @ 2.50GHz' against 'AMD EPYC 7B13 64-Core Processor'", "cores: 2 against 8")


def test_a_picture_is_written(tmp_path: Path) -> None:
    """Into the file that was asked for, if anything was judged."""
    for name in ("changes.png", "changes.svg"):
        assert draw(Report(every_verdict()), tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    nothing = Report(compare(table(failed(case("sdpa"))), table(failed(case("sdpa")))))
    assert not draw(nothing, tmp_path / "nothing.png")
    assert len([*tmp_path.iterdir()]) == 2


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *((name, "must end in .png or .svg") for name in ("changes", "changes.csv", "changes.jpg")),
        ("nowhere/changes.png", "changes.png can't be written: No such file"),
    ],
)
def test_what_is_no_picture_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    """The refusal says what is one, or why the file can't be written."""
    assert reason in refusal(draw, Report(every_verdict()), tmp_path / name)


def test_every_judged_row_has_its_mark_at_its_change() -> None:
    """Slowest at the top; a bar is an interval, which a row may lack; what was not judged is counted below."""
    of = picture(Report(every_verdict()))
    first, *_, last = panel(of).rows
    assert (first["verdict"], last["verdict"]) == ("slower", "faster")
    assert (first["change"], last["change"]) == pytest.approx((0.8, 1.2))
    assert "not drawn: 1 newly failing, 1 missing, 1 not measured, 1 new, 1 fixed, 1 baseline" in of.notes
    changes = [each["change"] for each in panel(picture(many(40))).rows]
    assert len(changes) == 40
    assert changes == sorted(changes)
    one, two = case("sdpa", num_tokens=1), case("sdpa", num_tokens=2)
    report = Report(compare(table(row(one, NOISY), row(two, [0.0])), table(row(one, NOISY), row(two, [0.3]))))
    of = picture(report)
    low, high = report.comparison["change_low"][0], report.comparison["change_high"][0]
    assert {(each["change_low"], each["change_high"]) for each in panel(of).rows} == {(low, high), (None, None)}
    assert "mark without a bar: too few processes for an interval" in of.notes


def test_verdicts_are_told_by_colour_and_by_marker_and_in_words() -> None:
    """No two share either; the legend counts them, and each row says its own, with its implementation and point."""
    assert len({mark.colour for mark in MARKS.values()}) == len({mark.marker for mark in MARKS.values()}) == len(MARKS)
    assert {*picture(Report(every_verdict())).legend} == {f"1 {name}" for name in MARKS}
    base, new = (table(*(at(case("sdpa", num_tokens=n), level) for n in (50, 197))) for level in (1.0, 0.9))
    rows = panel(picture(Report(compare(base, new)))).rows
    assert {each["label"] for each in rows} == {"sdpa N=50", "sdpa N=197"}
    assert all(each["text"].startswith("-10.0% ±") for each in rows)


def test_the_margin_is_shaded_and_the_bounds_are_dashed() -> None:
    """As far as the comparison let a change go, in both directions; what was forced is stamped with its reasons."""
    of = picture(Report(every_verdict(), Limits(margin=0.03)))
    shade, *lines = panel(of).marks[:3]
    assert (shade.x, shade.x2) == pytest.approx((1 / 1.03, 1.03))
    bound = 1 + Limits(margin=0.03).bound
    assert [line.x for line in lines] == pytest.approx([1 / bound, bound])
    assert "shaded: the margin of 3%" in of.notes
    assert picture(many(5, unlike=UNLIKE)).alarm == [STAMP, *UNLIKE]
    assert picture(many(5)).alarm == []


def test_a_wild_change_has_ticks_too() -> None:
    """Ten times as fast and half as fast on one axis."""
    names = {"one": 10.0, "two": 0.5, "three": 1.0}
    report = Report(compare(*(table(*(at(case(n), c**power) for n, c in names.items())) for power in (0, 1))))
    assert len(panel(picture(report)).x.ticks) >= 3
    assert "0" in panel(picture(report)).x.labels


def many(count: int, unlike: tuple[str, ...] = ()) -> Report:
    """Return a comparison of so many rows, some changed, some noisy, one with a long name."""
    rng = np.random.default_rng(3)
    names = ["sdpa", "a_package.of_somebody.kernels:the_function"] + ["compiled_sdpa"] * count
    of = [case(names[number], num_tokens=1 << number % 14, batch=1 + number) for number in range(count)]
    sds = [0.003 if number % 3 else 0.05 for number in range(count)]
    base, new = (drawn_rows(rng, of, sd=sds) for _ in range(2))
    factor = [0.9 if number % 5 == 0 else 1.0 for number in range(count)]
    changed = new.assign(speedup=new["speedup"] * factor)
    return Report(compare(base, changed), unlike=unlike)


def picture(report: Report) -> Picture:
    """Return the picture of a report that has one."""
    (of,) = pictures(report)
    return of


def panel(of: Picture) -> Panel:
    """Return the only panel of a picture."""
    return of.stacks[0][0]
