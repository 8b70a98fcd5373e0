"""The picture of a comparison: every judged row, told apart by more than colour, legible whatever their number."""

import itertools
import struct
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.analyse.comparison.compare import compare
from bench.show.comparison.report import STAMP, Report
from bench.show.figures import page
from bench.show.figures.catalogue import draw_comparison as draw
from bench.show.figures.changes import MARKS, figure
from bench.stats.limits import Limits
from tests.analyse import tables
from tests.analyse.tables import at, failed, row, table
from tests.examples import case
from tests.refusals import refusal
from tests.show.comparison.example_comparisons import NOISY, every_verdict
from tests.show.figures.legible import assert_legible, drawn, texts

UNLIKE = ("cpu: 'Intel(R) Xeon(R) Processor @ 2.50GHz' against 'AMD EPYC 7B13 64-Core Processor'", "cores: 2 against 8")


@pytest.mark.parametrize("name", ["changes.png", "changes.svg"])
def test_a_picture_is_written(tmp_path: Path, name: str) -> None:
    """Into the file that was asked for, if anything was judged."""
    assert draw(Report(every_verdict()), tmp_path / name)
    assert (tmp_path / name).stat().st_size > 1000
    nothing = Report(compare(table(failed(case("sdpa"))), table(failed(case("sdpa")))))
    assert not draw(nothing, tmp_path / f"nothing-{name}")
    assert [path.name for path in tmp_path.iterdir()] == [name]


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
    """Slowest at the top, whatever the verdict; what was not judged is counted below."""
    made = picture(Report(every_verdict()))
    places = {name: np.asarray(line.get_data()).T.tolist() for name, line in marks(made).items()}
    assert places["slower"] == [pytest.approx([0.8, 0])]
    assert sorted(places[name][0][1] for name in MARKS) == [0, 1, 2, 3]
    assert places["faster"] == [pytest.approx([1.2, 3])]
    assert "not drawn: 1 newly failing, 1 missing, 1 not measured, 1 new, 1 fixed, 1 baseline" in said(made)
    changes = sorted((y, x) for line in marks(picture(many(40))).values() for x, y in np.asarray(line.get_data()).T)
    assert [y for y, _ in changes] == list(range(40))
    assert all(above <= below for (_, above), (_, below) in itertools.pairwise(changes))


def test_verdicts_are_told_by_colour_and_by_marker() -> None:
    """No two share either, and the words beside the rows say it a third time."""
    assert len({mark.colour for mark in MARKS.values()}) == len({mark.marker for mark in MARKS.values()}) == len(MARKS)
    made = picture(Report(every_verdict()))
    for name, line in marks(made).items():
        assert to_hex(line.get_color()) == MARKS[name].colour
        assert line.get_marker() == MARKS[name].marker
        assert any(words.startswith(f"{name} ") for words in said(made))


def test_intervals_reach_as_far_as_they_do() -> None:
    """The bar of a row is its interval, and a row without one has none."""
    one, two = case("sdpa", num_tokens=1), case("sdpa", num_tokens=2)
    report = Report(compare(table(row(one, NOISY), row(two, [0.0])), table(row(one, NOISY), row(two, [0.3]))))
    made = picture(report)
    (bars,) = [each for each in made.axes[0].collections if isinstance(each, LineCollection)]
    low, high = report.comparison["change_low"][0], report.comparison["change_high"][0]
    lengths = [segment[:, 0].tolist() for segment in bars.get_segments() if len(segment)]
    assert [length for length in lengths if np.isfinite(length).all()] == [pytest.approx([low, high])]
    assert any("mark without a bar: too few processes for an interval" in words for words in said(made))


def test_the_margin_is_shaded() -> None:
    """As far as the comparison that is shown let a change go, in both directions."""
    made = picture(Report(every_verdict(), Limits(margin=0.03)))
    (shade,) = [patch for patch in made.axes[0].patches if patch.get_gid() == "margin"]
    ends = made.axes[0].transData.inverted().transform(shade.get_extents().get_points())
    assert ends[:, 0].tolist() == pytest.approx([1 / 1.03, 1.03])
    assert any("shaded: the margin of 3%" in words for words in said(made))


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 5, 80])
@pytest.mark.parametrize("unlike", [(), UNLIKE])
def test_all_words_are_on_the_sheet(rows: int, unlike: tuple[str, ...]) -> None:
    """Nothing is cut off at an edge, and no two words overlap."""
    made = picture(many(rows, unlike=unlike))
    assert_legible(made)


def test_every_row_is_labelled() -> None:
    """With its implementation, its point, its verdict and its change."""
    base, new = (table(*(at(case("sdpa", num_tokens=n), level) for n in (50, 197))) for level in (1.0, 0.9))
    words = said(picture(Report(compare(base, new))))
    assert {"N=50", "N=197"} <= set(words)
    assert words.count("sdpa") == 2
    assert sum(word.startswith("slower -10.0% ±") for word in words) == 2


def test_what_was_forced_is_stamped_in_the_picture() -> None:
    """With its reasons, under the title."""
    words = " ".join(said(picture(many(5, unlike=UNLIKE))))
    assert STAMP in words
    assert "cores: 2 against 8" in words
    assert STAMP not in " ".join(said(picture(many(5))))


def test_a_wild_change_has_ticks_too() -> None:
    """Ten times as fast and half as fast on one axis."""
    names = {"one": 10.0, "two": 0.5, "three": 1.0}
    report = Report(compare(*(table(*(at(case(n), c**power) for n, c in names.items())) for power in (0, 1))))
    axes = picture(report).axes[0]
    inside = [tick for tick in axes.get_xticks() if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]]
    assert len(inside) >= 3
    assert "0" in [text.get_text() for text in axes.get_xticklabels()]


def test_a_picture_that_grows_too_tall_is_drawn_coarser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PNG has a largest size; thousands of rows keep within it, and are not refused."""
    monkeypatch.setattr(page, "LARGEST_PIXELS", 900)
    assert draw(many(40), tmp_path / "changes.png")
    width, height = struct.unpack(">II", (tmp_path / "changes.png").read_bytes()[16:24])
    assert 880 < max(width, height) <= 900


def test_a_users_settings_change_nothing(tmp_path: Path) -> None:
    """What stands in matplotlib's own settings is for other pictures, and the same comparison is the same file."""
    draw(many(5), tmp_path / "before.svg")
    with mpl.rc_context({"font.size": 30, "lines.linewidth": 9, "axes.facecolor": "red", "svg.fonttype": "none"}):
        draw(many(5), tmp_path / "after.svg")
    assert (tmp_path / "before.svg").read_bytes() == (tmp_path / "after.svg").read_bytes()


def many(rows: int, unlike: tuple[str, ...] = ()) -> Report:
    """Return a comparison of so many rows, some changed, some noisy, one with a long name."""
    rng = np.random.default_rng(3)
    names = ["sdpa", "a_package.of_somebody.kernels:the_function"] + ["compiled_sdpa"] * rows
    of = [case(names[number], num_tokens=1 << number % 14, batch=1 + number) for number in range(rows)]
    sds = [0.003 if number % 3 else 0.05 for number in range(rows)]
    base, new = (tables.drawn(rng, of, sd=sds) for _ in range(2))
    factor = [0.9 if number % 5 == 0 else 1.0 for number in range(rows)]
    changed = new.assign(speedup=new["speedup"] * factor)
    return Report(compare(base, changed), unlike=unlike)


def picture(report: Report) -> Figure:
    """Return the figure of a report that has one."""
    made = figure(report)
    assert made
    return made


def marks(made: Figure) -> dict[str, Line2D]:
    """Return the marks by their verdict."""
    return drawn(made, "verdict", Line2D)


def said(made: Figure) -> list[str]:
    """Return all that is written in a figure."""
    return [text.get_text() for text in texts(made)]
