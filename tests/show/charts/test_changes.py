"""The chart of a comparison: every judged row, distinguished by more than colour, whatever their number."""

from pathlib import Path

import numpy as np
import pytest

from bench.show.charts.catalogue import draw_comparison as draw
from bench.show.charts.changes import MARKS, pictures
from bench.show.charts.sheet import Picture
from bench.show.comparison.report import STAMP, Report
from bench.stats.limits import Limits
from tests.make.comparisons import NOISY, compare, every_verdict
from tests.make.records import case
from tests.make.rows import failed, row, table
from tests.make.rows import drawn as drawn_rows
from tests.refusals import refusal
from tests.show.charts.drawn import made, series, words

UNLIKE = ("cpu: 'Intel(R) Xeon(R) Processor @ 2.50GHz' against 'AMD EPYC 7B13 64-Core Processor'", "cores: 2 against 8")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *((name, "must end in .png or .svg") for name in ("changes", "changes.csv", "changes.jpg")),
        ("nowhere/changes.png", "changes.png can't be written: No such file"),
    ],
)
def test_what_is_no_picture_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    """The refusal says what is one, or why the file can't be written; if nothing was judged, there is no file."""
    assert reason in refusal(draw, Report(every_verdict()), tmp_path / name)
    assert not draw(Report(compare(table(failed(case("sdpa"))), table(failed(case("sdpa"))))), tmp_path / "none.png")
    assert not [*tmp_path.iterdir()]


def test_every_judged_row_has_its_mark_at_its_change() -> None:
    """Slowest at the top, of each verdict with a marker and a colour of its own; what was not judged is counted below."""
    of = picture(Report(every_verdict()))
    at = series(of.figure.axes[0])
    assert {*at} == {f"1 {name}" for name in MARKS}
    assert (at["1 slower"][0], at["1 faster"][0]) == (pytest.approx((0.8, 0)), pytest.approx((1.2, 3)))
    assert "not drawn: 1 newly failing, 1 missing, 1 not measured, 1 new, 1 fixed, 1 baseline" in words(of)
    assert len({mark.colour for mark in MARKS.values()}) == len({mark.marker for mark in MARKS.values()}) == len(MARKS)
    assert len(picture(many(40)).figure.axes[0].get_yticks()) == 40
    one, two = case("sdpa", num_tokens=1), case("sdpa", num_tokens=2)
    of = picture(Report(compare(table(row(one, NOISY), row(two, [0.0])), table(row(one, NOISY), row(two, [0.3])))))
    assert "mark without a bar: too few processes for an interval" in words(of)


def test_what_was_forced_is_stamped_with_its_reasons() -> None:
    """Above the facts; the margin is said."""
    assert all(each in words(picture(many(5, unlike=UNLIKE))) for each in (STAMP, *UNLIKE))
    assert STAMP not in words(picture(many(5)))
    assert "shaded: the margin of 3%" in words(picture(Report(every_verdict(), Limits(margin=0.03))))


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
    (of,) = made(pictures(report))
    return of
