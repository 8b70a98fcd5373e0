"""What the page of any picture has."""

import dataclasses
from pathlib import Path

import pytest
from matplotlib.image import imread

from bench.show.figures import page
from bench.show.rows import origins
from tests.make.profiles import profile, stepwise


def test_text_and_panels_stand_below_each_other(tmp_path: Path) -> None:
    """The heading, the facts, the panels with their gaps, the footnotes; the same figure is the same file.

    The file has a white edge, so nothing is cut off.
    """
    words = ["first " * 16, "second " * 16], ["note " * 20, "last note " * 20]
    figure = page.new_figure("Heading", *words, [3.0, 1.0], 0.25)
    heading, facts, notes = (text.get_window_extent() for text in figure.texts)
    main, strip = (axes.get_window_extent() for axes in figure.axes)
    assert heading.y0 > facts.y1 > facts.y0 > main.y1
    assert notes.y1 < strip.y0
    assert [text.get_text().count("\n") for text in figure.texts] == [0, 1, 1]
    inches = [main.width, main.height, strip.height, main.y0 - strip.y1]
    assert [inch / figure.dpi for inch in inches] == pytest.approx([page.AXES_WIDTH, 3.0, 1.0, 0.25])
    for name in ("one.svg", "other.svg", "one.png"):
        page.save_as(figure, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()
    pixels = imread(tmp_path / "one.png")
    assert pixels.shape[1] > (facts.x1 - facts.x0) / figure.dpi * page.PNG_DPI
    edge = int(0.9 * page.EDGE * page.PNG_DPI)
    assert all((strip == 1).all() for strip in (pixels[:edge], pixels[-edge:], pixels[:, :edge], pixels[:, -edge:]))


@pytest.mark.parametrize(
    ("places", "written"),
    [
        ((50, 51, 52, 577, 1024), ["50", "577", "1024"]),
        ((1000, 1001, 1002, 1300), ["1000", "1300"]),
        ((50, 10**5, 10**6, 10**6 + 1), ["50", "100000", "1000001"]),
    ],
)
def test_numbers_without_room_are_left_out_but_for_the_ends(places: tuple[int, ...], written: list[str]) -> None:
    """The least and the rightmost that fit are named, below the lowest panel alone, which share their axis."""
    figure = page.new_figure("Heading", [], [], [2.0, 1.0])
    page.set_places(figure, places, "tokens")
    above, lowest = figure.axes
    assert [label.get_text() for label in lowest.get_xticklabels() if label.get_visible()] == written
    assert not any(label.get_visible() for label in above.get_xticklabels())
    assert above.get_xlim() == lowest.get_xlim()


def test_facts_are_what_is_fixed_and_origins_how_it_was_profiled() -> None:
    """The device with its name, and no column that the picture shows; a range of calls, and each version once."""
    point = stepwise().case.point
    assert page.facts(point, page.origin_rows([stepwise(), profile()])) == [
        *("vit", "cpu (A CPU)", "float32", "inference", "B=8", "N=197", "C=384", "H=6", "1 thread"),
    ]
    assert "N=197" not in page.facts(point, page.origin_rows([stepwise()]), ["num_tokens"])
    other = dataclasses.replace(profile(), calls=7)
    assert page.calls([stepwise(), other]) == "means over 3 to 7 calls under the profiler"
    assert origins(page.origin_rows([stepwise(), other])) == ["torch 2.13.0", "commit 0123456789ab+"]
