"""What is drawn of a picture's panels."""

import dataclasses
import functools
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

import bench.show
from bench.plan.case import COLUMNS, HUGE, Case
from bench.show.charts.lines import pictures
from bench.show.figures.marks import LABEL_GAP
from bench.show.figures.page import figure
from bench.show.palette import style
from bench.show.picture import Picture
from tests.make.points import vit_s
from tests.make.results import Fate, results, timed
from tests.show.figures.legible import assert_legible, drawn, texts

NAMES = ("eager", "manual", "stepwise", "online", "sdpa", "compiled_eager", "compiled_sdpa", "mha")
FEW = ("eager", "online")
TOKENS = [vit_s(num_tokens=number) for number in (50, 197, 577, 1024)]
FATES: dict[Case, Fate] = {
    Case(TOKENS[3], "eager"): ("oom", ""),
    Case(TOKENS[2], "online"): ("timeout", ""),
    **{Case(at, "mha"): ("unsupported", "") for at in TOKENS},
}


def table(fates: dict[Case, Fate] | None = None, names: tuple[str, ...] = NAMES) -> pd.DataFrame:
    """Return results along the tokens."""
    return results([Case(at, name) for at in TOKENS for name in names], fates)


@functools.cache
def sheets(*, failing: bool) -> list[tuple[Picture, Figure]]:
    """Return the pictures along the tokens with their figures."""
    return [(picture, figure(picture)) for picture in pictures(table(FATES if failing else None))]


def lines(sheet: Figure) -> dict[str, Line2D]:
    """Return the lines of a figure by their labels."""
    return drawn(sheet, "line", Line2D)


def labels(sheet: Figure) -> list[Text]:
    """Return the labels of lines."""
    sheet.draw_without_rendering()
    return [text for text in drawn(sheet, "label", Text).values() if text.get_text() and text.get_visible()]


@pytest.mark.parametrize("processes", [1, 2])
def test_little_is_drawn_too(processes: int) -> None:
    """A line alone, with or without intervals, is a picture; what failed everywhere else is a mark without a line."""
    alone = results([Case(at, "eager") for at in TOKENS[:2]], processes=processes)
    assert [len(lines(figure(picture))) for picture in pictures(alone)] == [1, 1]
    fates: dict[Case, Fate] = {Case(at, name): ("oom", "") for at in TOKENS[1:] for name in FEW}
    latency, *_ = pictures(table(fates, FEW))
    assert set(lines(figure(latency))) == set(FEW)


def test_every_series_is_drawn() -> None:
    """Eight implementations are eight lines, also where they coincide; failures have no strip if there are none."""
    for picture, sheet in sheets(failing=False):
        expected = set(NAMES) - ({"eager"} if picture.name.startswith("speedup") else set())
        assert set(lines(sheet)) == expected
        assert {text.get_text() for text in labels(sheet)} >= expected
        assert len(sheet.axes) == 1


def test_colours_are_the_same_in_all_pictures() -> None:
    """An implementation keeps its colour whatever is shown of it, and whatever else is in the picture."""
    alone = [figure(picture) for picture in pictures(table(names=("mha",)))]
    for sheet in (*alone, *(each for failing in (False, True) for _, each in sheets(failing=failing))):
        for name, line in lines(sheet).items():
            assert to_hex(line.get_color()) == style(name).colour


def test_each_allocator_has_its_own_dash() -> None:
    """An implementation keeps its colour under all of them, and its usual line under the usual one."""
    allocators = [*COLUMNS["allocator"].choices, HUGE]
    points = [dataclasses.replace(at, allocator=name) for name in allocators for at in TOKENS]
    rows = timed(points, {"eager": lambda at: 0.01 * (1 + allocators.index(at.allocator))})
    (picture,) = (each for each in pictures(rows) if "-allocator-" in each.name)
    of = lines(figure(picture))
    dashes = {name: str(of[f"eager, {name}"]._dash_pattern[1]) for name in allocators}  # type: ignore[attr-defined]
    assert len({*dashes.values()}) == len(dashes) == 3
    assert dashes["retained"] == "None"
    assert {to_hex(line.get_color()) for line in of.values()} == {style("eager").colour}


def test_all_words_are_on_the_sheet_and_do_not_touch() -> None:
    """However long a name or a device's name is, no two words overlap.

    Labels of lines that end close together are a line of text from each other.
    """
    long = "my_package.attention.kernels:the_one_with_a_long_name"
    rows = table(FATES, (*NAMES, long))
    rows["device_name"] = "An accelerator whose maker likes long names, with 141 GB of memory, revision 2"
    for sheet in (*map(figure, pictures(rows)), *(each for _, each in sheets(failing=False))):
        assert_legible(sheet)
        main = [text.get_position()[1] for text in labels(sheet) if text.axes is sheet.axes[0]]
        gap = LABEL_GAP * sheet.dpi / sheet.axes[0].bbox.height
        assert all(above - below >= gap - 1e-9 for below, above in itertools.pairwise(sorted(main)))


def test_failures_are_marked_at_their_place() -> None:
    """Each failure has a mark at its x, and its status in words."""
    _, latency = sheets(failing=True)[0]
    (strip,) = latency.axes[1:]
    rows = [label.get_text() for label in strip.get_yticklabels()]
    marks = {
        (str(line.get_gid()).removeprefix("point "), rows[int(y)]): line
        for line in strip.lines
        if line.get_gid()
        for y in np.asarray(line.get_ydata())
    }
    assert {name: [int(x) for x in np.asarray(line.get_xdata())] for name, line in marks.items()} == {
        ("eager", "oom"): [1024],
        ("online", "timeout"): [577],
        ("mha", "unsupported"): [50, 197, 577, 1024],
    }
    assert to_hex(marks["eager", "oom"].get_markerfacecolor()) == style("eager").colour
    assert {"eager", "online", "mha"} == {text.get_text() for text in strip.texts}


def test_titles_say_what_is_fixed_and_ticks_what_was_measured() -> None:
    """Layer, device, type, mode and the fixed values stand over the picture, and what varies doesn't.

    The horizontal axis names the token counts of the sweep, the vertical one round values with their unit.
    """
    fixed = "vit · cpu (AMD EPYC 7B13 64-Core Processor) · float32 · inference · B=8 · C=384 · H=6 · 1 thread"
    assert {"Latency against tokens", fixed} <= {text.get_text() for text in texts(sheets(failing=False)[0][1])}
    latency, speedup, memory = (sheet.axes[0] for _, sheet in sheets(failing=False))
    assert [text.get_text() for text in latency.get_xticklabels()] == ["50", "197", "577", "1024"]
    assert {text.get_text().split()[1] for text in latency.get_yticklabels()} == {"ms"}
    assert {text.get_text()[-1] for text in speedup.get_yticklabels()} == {"x"}
    assert {text.get_text().split()[1] for text in memory.get_yticklabels()} <= {"MiB", "GiB"}


def test_drawing_needs_no_global_state() -> None:
    """No module of bench.show imports pyplot, which would look for a window system."""
    sources = Path(bench.show.__file__).parent.rglob("*.py")
    assert not [path.name for path in sources if "pyplot" in path.read_text(encoding="utf-8")]
