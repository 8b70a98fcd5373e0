"""What the page of any picture has."""

import dataclasses
import struct
from pathlib import Path

import pytest
from matplotlib.image import imread

from bench.show.figures import page
from bench.show.figures.layout import padded
from bench.show.picture import Panel, Picture, Scale


def picture(*heights: float, places: tuple[int, ...] = (50, 577)) -> Picture:
    """Return a picture of panels of these heights, with words that fill more than a line."""
    x, y = Scale.log("tokens", padded(places[0], places[-1]), places), Scale.log("time", (1.0, 2.0), ())
    panels = [Panel(x=x, y=y, marks=(), height=height) for height in heights]
    facts, notes = ["first " * 16, "second " * 16], ["note " * 20, "last note " * 20]
    return Picture(name="one", heading="Heading", facts=facts, notes=notes, stacks=[panels], alarm=["Alarm"], gap=0.25)


def test_text_and_panels_stand_below_each_other(tmp_path: Path) -> None:
    """The heading, the alarm, the facts, the panels with their gaps, the footnotes.

    The file has a white edge, so nothing is cut off.
    """
    figure = page.figure(picture(3.0, 1.0))
    facts, alarm, heading, notes = (text.get_window_extent() for text in figure.texts)
    main, strip = (axes.get_window_extent() for axes in figure.axes)
    assert heading.y0 > alarm.y1 > alarm.y0 > facts.y1 > facts.y0 > main.y1
    assert notes.y1 < strip.y0
    assert [text.get_text().count("\n") for text in figure.texts] == [1, 0, 0, 1]
    inches = [main.width, main.height, strip.height, main.y0 - strip.y1]
    assert [inch / figure.dpi for inch in inches] == pytest.approx([5.4, 3.0, 1.0, 0.25])
    page.save_as(picture(3.0, 1.0), tmp_path / "one.png")
    pixels = imread(tmp_path / "one.png")
    assert pixels.shape[1] > (facts.x1 - facts.x0) / figure.dpi * page.PNG_DPI
    edge = int(0.9 * page.EDGE * page.PNG_DPI)
    assert all((strip == 1).all() for strip in (pixels[:edge], pixels[-edge:], pixels[:, :edge], pixels[:, -edge:]))


def test_stacks_stand_beside_each_other_and_begin_a_new_row() -> None:
    """Three stacks, of which two have room beside each other; below the first stands the last."""
    (stack,) = picture(1.0, 0.5).stacks
    figure = page.figure(dataclasses.replace(picture(), stacks=[stack] * 3, across=2, width=2.0))
    first, second, third = (axes.get_window_extent() for axes in figure.axes[::2])
    assert (first.y0, first.x0) == pytest.approx((second.y0, third.x0))
    assert second.x0 > first.x1
    assert third.y1 < figure.axes[1].get_window_extent().y0


@pytest.mark.parametrize(
    ("places", "written"),
    [
        ((50, 51, 52, 577, 1024), ["50", "577", "1024"]),
        ((1000, 1001, 1002, 1300), ["1000", "1300"]),
        ((50, 10**5, 10**6, 10**6 + 1), ["50", "100000", "1000001"]),
    ],
)
def test_numbers_without_room_are_left_out_but_for_the_ends(places: tuple[int, ...], written: list[str]) -> None:
    """The least and the rightmost that fit are named, below the lowest panel alone."""
    above, lowest = page.figure(picture(2.0, 1.0, places=places)).axes
    assert [label.get_text() for label in lowest.get_xticklabels() if label.get_visible()] == written
    assert not any(tick.label1.get_visible() for tick in above.xaxis.get_major_ticks())
    assert above.get_xlim() == lowest.get_xlim()


def test_a_picture_that_grows_too_large_is_drawn_coarser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PNG has a largest size; thousands of rows keep within it, and are not refused."""
    monkeypatch.setattr(page, "LARGEST_PIXELS", 500)
    page.save_as(picture(3.0), tmp_path / "one.png")
    assert 500 < max(struct.unpack(">II", (tmp_path / "one.png").read_bytes()[16:24])) < 1000
