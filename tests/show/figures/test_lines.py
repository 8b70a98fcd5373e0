"""Pictures of a table of results."""

import functools
import itertools
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

import bench.show
from bench.plan.case import Case
from bench.show.figures import catalogue
from bench.show.figures.line_data import Picture, pictures
from bench.show.figures.lines import figure
from bench.show.figures.page import LABEL_GAP
from bench.show.palette import style
from tests.examples import point
from tests.show.example_results import Fate, results
from tests.show.figures.legible import assert_legible, texts

NAMES = ("eager", "manual", "stepwise", "online", "sdpa", "compiled_eager", "compiled_sdpa", "mha")
FEW = ("eager", "online")
TOKENS = [point(num_tokens=number) for number in (50, 197, 577, 1024)]
FATES: dict[Case, Fate] = {
    Case(TOKENS[3], "eager"): ("oom", ""),
    Case(TOKENS[2], "online"): ("timeout", ""),
    **{Case(at, "mha"): ("unsupported", "") for at in TOKENS},
}


def table(fates: dict[Case, Fate] | None = None, names: tuple[str, ...] = NAMES) -> pd.DataFrame:
    """Return results along the tokens."""
    return results([Case(at, name) for at in TOKENS for name in names], fates)


def draw(table: pd.DataFrame, folder: Path) -> list[Path]:
    """Write the pictures of this kind, and return the files."""
    return catalogue.draw(folder, ["lines"], results=table)


@functools.cache
def sheets(*, failing: bool) -> list[tuple[Picture, Figure]]:
    """Return the pictures along the tokens with their figures."""
    return [(picture, figure(picture)) for picture in pictures(table(FATES if failing else None))]


def drawn(made: Figure, kind: str) -> dict[str, Line2D]:
    """Return the lines of a kind by what they show."""
    found = [line for axes in made.axes for line in axes.lines if str(line.get_gid()).startswith(kind)]
    return {str(line.get_gid()).removeprefix(f"{kind} "): line for line in found}


def labels(made: Figure) -> list[Text]:
    """Return the labels of lines."""
    return [text for text in texts(made) if str(text.get_gid()).startswith("label ")]


def test_a_png_and_an_svg_are_written_for_each_picture(tmp_path: Path) -> None:
    """The folder is made, and every file that is returned is there."""
    files = draw(table(names=FEW), tmp_path / "run" / "plots")
    assert {path.suffix for path in files} == {".png", ".svg"}
    assert sorted(files) == sorted((tmp_path / "run" / "plots").iterdir())
    assert {path.stem.split("-")[0] for path in files} == {"latency", "speedup", "memory"}


@pytest.mark.parametrize("fates", [{Case(at, name): ("oom", "") for at in TOKENS for name in NAMES}])
def test_nothing_measured_writes_nothing(tmp_path: Path, fates: dict[Case, Fate]) -> None:
    """A table in which all failed leaves no folder behind."""
    assert draw(table(fates), tmp_path / "plots") == []
    assert not (tmp_path / "plots").exists()


def test_a_single_point_writes_nothing(tmp_path: Path) -> None:
    """One place on every axis is no picture, and no error."""
    assert draw(results([Case(point(), name) for name in NAMES]), tmp_path / "plots") == []


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_a_single_implementation_is_drawn(tmp_path: Path, processes: int) -> None:
    """One line, with or without intervals, is a picture."""
    made = results([Case(at, "eager") for at in TOKENS[:2]], processes=processes)
    assert len(draw(made, tmp_path)) == 4


def test_a_line_that_was_measured_in_one_place_only_is_drawn(tmp_path: Path) -> None:
    """What failed everywhere else is a mark without a line."""
    fates: dict[Case, Fate] = {Case(at, name): ("oom", "") for at in TOKENS[1:] for name in FEW}
    assert draw(table(fates, FEW), tmp_path)


def test_svg_files_are_the_same_for_the_same_table(tmp_path: Path) -> None:
    """Nothing of the time, the folder or chance is in an SVG."""
    one, other = (draw(table(FATES, FEW[1:]), tmp_path / name) for name in ("one", "other"))
    for first, second in zip(one, other, strict=True):
        if first.suffix == ".svg":
            assert first.read_bytes() == second.read_bytes()


def test_every_series_is_drawn() -> None:
    """Eight implementations are eight lines, also where they lie on top of each other."""
    for picture, made in sheets(failing=False):
        expected = set(NAMES) - ({"eager"} if picture.quantity.name == "speedup" else set())
        assert set(drawn(made, "line")) == expected
        assert {text.get_text() for text in labels(made)} >= expected


def test_colours_are_the_same_in_all_pictures() -> None:
    """An implementation keeps its colour whatever is shown of it, and whatever else is in the picture."""
    alone = [figure(picture) for picture in pictures(table(names=("mha",)))]
    for made in (*alone, *(each for failing in (False, True) for _, each in sheets(failing=failing))):
        for name, line in drawn(made, "line").items():
            assert to_hex(line.get_color()) == style(name).colour


def test_lines_that_coincide_share_one_line_in_stripes() -> None:
    """The memory of four implementations is the same to the byte, and each shows a stripe of its own."""
    (memory,) = [made for picture, made in sheets(failing=False) if picture.quantity.name == "memory"]
    lines = drawn(memory, "line")
    offsets = {lines[name]._dash_pattern[0] for name in ("eager", "manual", "stepwise", "compiled_eager")}  # type: ignore[attr-defined]
    assert len(offsets) == 4


@pytest.mark.parametrize("failing", [False, True])
def test_labels_do_not_touch(failing: bool) -> None:
    """Labels of lines that end close together are a line of text apart."""
    for _, made in sheets(failing=failing):
        boxes = [text.get_window_extent() for text in labels(made)]
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
        main = [text.get_position()[1] for text in labels(made) if text.axes is made.axes[0]]
        tall = made.axes[0].get_position().height * made.get_size_inches()[1]
        assert all(above - below >= LABEL_GAP / tall - 1e-9 for below, above in itertools.pairwise(sorted(main)))


def test_all_words_are_on_the_sheet() -> None:
    """Nothing is cut off at an edge, however long a name or a device's name is, and no two words overlap."""
    long = "my_package.attention.kernels:the_one_with_a_long_name"
    made = table(FATES, (*NAMES, long))
    made["device_name"] = "An accelerator whose maker likes long names, with 141 GB of memory, revision 2"
    for picture in pictures(made):
        sheet = figure(picture)
        assert_legible(sheet)


def test_failures_are_marked_at_their_place() -> None:
    """Each failure has a mark at its x, and its status in words."""
    _, latency = sheets(failing=True)[0]
    marks = drawn(latency, "failure")
    assert {name: [int(x) for x in np.asarray(line.get_xdata())] for name, line in marks.items()} == {
        "eager oom": [1024],
        "online timeout": [577],
        "mha unsupported": [50, 197, 577, 1024],
    }
    assert {"oom", "timeout", "unsupported"} <= {text.get_text() for text in texts(latency)}
    assert to_hex(marks["eager oom"].get_markerfacecolor()) == style("eager").colour


def test_without_failures_there_is_no_place_for_them() -> None:
    """The strip for failures is there only where something failed."""
    assert [len(made.axes) for _, made in sheets(failing=False)] == [1, 1, 1]


def test_titles_say_what_is_fixed() -> None:
    """Layer, device, type, mode and the fixed values stand over the picture, and what varies doesn't."""
    titles = [text.get_text() for text in texts(sheets(failing=False)[0][1])]
    assert "Latency against tokens" in titles
    assert (
        "vit · cpu (AMD EPYC 7B13 64-Core Processor) · float32 · inference · B=8 · C=384 · H=6 · 1 thread"
    ) in titles


def test_ticks_stand_at_what_was_measured() -> None:
    """The horizontal axis names the token counts of the sweep, the vertical one round values with their unit."""
    latency, speedup, memory = (made.axes[0] for _, made in sheets(failing=False))
    assert [text.get_text() for text in latency.get_xticklabels()] == ["50", "197", "577", "1024"]
    assert {text.get_text().split()[1] for text in latency.get_yticklabels()} == {"ms"}
    assert {text.get_text()[-1] for text in speedup.get_yticklabels()} == {"x"}
    assert {text.get_text().split()[1] for text in memory.get_yticklabels()} <= {"MiB", "GiB"}


@pytest.mark.slow
def test_a_users_settings_change_nothing(tmp_path: Path) -> None:
    """What stands in matplotlib's own settings is for other pictures."""
    before = draw(table(names=FEW[:1]), tmp_path / "before")[1].read_bytes()
    with mpl.rc_context({"font.size": 30, "lines.linewidth": 9, "axes.facecolor": "red", "svg.fonttype": "none"}):
        assert draw(table(names=FEW[:1]), tmp_path / "after")[1].read_bytes() == before


def test_drawing_needs_no_global_state() -> None:
    """No module of bench.show imports pyplot, which would look for a window system."""
    sources = Path(bench.show.__file__).parent.rglob("*.py")
    assert not [path.name for path in sources if "pyplot" in path.read_text(encoding="utf-8")]
