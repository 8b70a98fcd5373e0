"""Charts as files: a PNG or an SVG, with a title and notes around the chart."""

import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import altair as alt
import matplotlib as mpl
import vl_convert

from bench.show.charts.base import CONFIG, ROWS, Spec, variable
from bench.show.figures.page import ALARM, FONT, LARGEST_PIXELS, POINTS, text_width, wrapped
from bench.show.palette import PAGE_COLOURS, mix, style

WIDTH_PX = 620
"""The width of a chart, without what stands beside it."""

HEADING_PX, TEXT_PX, SMALL_PX = 17, 13, 11
"""The sizes of text."""

PNG_SCALE = 2
"""The pixels of a PNG for each of the chart's."""

VARIABLE = re.compile(r"var\(--(\w+)\)")
MIXED = re.compile(r"color-mix\(in srgb, (#\w{6}) (\d+)%, (#\w{6})\)")
LIGHT = re.compile(r"light-dark\((#\w{6}), #\w{6}\)")
SIZE = re.compile(r'width="(\d+)[\d.]*" height="(\d+)')


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A chart with its rows and the text around it; `names` are the implementations, whose colours have numbers.

    `width` is that of the chart in pixels, or of one of its steps; text is wrapped at `across` pixels.
    `parameters` have the values of the chart's. The heading comes first, then the alarm and the facts; notes stand
    below.
    """

    heading: str
    facts: Sequence[str]
    notes: Sequence[str]
    spec: Spec
    rows: Sequence[Mapping[str, Any]]
    names: Sequence[str] = ()
    width: int | Mapping[str, int] = WIDTH_PX
    across: float = WIDTH_PX + 150
    parameters: Mapping[str, Any] = field(default_factory=dict)
    alarm: Sequence[str] = ()


def text_px(text: str, size: float = TEXT_PX, *, bold: bool = False) -> float:
    """Return the width of a text in a file, in pixels."""
    return POINTS * text_width(text, size, bold=bold)


def save_as(of: Sheet, file: Path) -> None:
    """Write a chart in the format that the file's name ends with; raises OSError if it can't be written.

    The same chart gives the same file, byte for byte.
    """
    _add_fonts()
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    svg = vl_convert.vegalite_to_svg(specification(of), vl_version=version)
    if file.suffix == ".svg":
        file.write_text(svg, encoding="utf-8")
        return
    found = SIZE.search(svg)
    largest = max(map(int, found.groups())) if found else 1
    file.write_bytes(vl_convert.svg_to_png(svg, scale=min(PNG_SCALE, LARGEST_PIXELS / largest)))


def specification(of: Sheet) -> Spec:
    """Return the specification of a file: that of the chart, with its text and in the colours of a light page."""
    inside = {
        key: value for key, value in of.spec.items() if key not in ("autosize", "datasets", "params", "description")
    }
    notes = _lines(of.notes, of.across, SMALL_PX)
    below = {"text": notes, "orient": "bottom", "fontSize": SMALL_PX, "lineHeight": 17, "offset": 14}
    facts = {"text": _lines(of.facts, of.across, TEXT_PX), "fontSize": TEXT_PX, "lineHeight": 18, "offset": 14}
    heading = {"text": of.heading, "fontSize": HEADING_PX, "fontWeight": "bold", "color": "var(--ink)", "offset": 9}
    if of.alarm:
        words = {"": _lines(of.alarm, of.across, TEXT_PX, bold=True), "Color": ALARM, "FontWeight": "bold",
            "FontSize": TEXT_PX, "LineHeight": 18}  # fmt: skip
        heading |= {**{f"subtitle{name}": value for name, value in words.items()}}
    params = [
        {**each, "value": of.parameters[each["name"]]} if each["name"] in of.parameters else each
        for each in of.spec.get("params", [])
    ]
    whole = {
        "$schema": alt.SCHEMA_URL,
        "background": "var(--surface)",
        "padding": 16,
        "config": {**CONFIG, "font": f"{FONT}, Verdana, sans-serif"},
        "params": params,
        "datasets": {**of.spec.get("datasets", {}), ROWS: [*of.rows]},
        "title": heading,
        "vconcat": [{"title": facts, "vconcat": [{**inside, "width": of.width, "title": below}]}],
    }
    return _in_colours(whole, of.names)


def _lines(words: Sequence[str], across: float, size: float, *, bold: bool = False) -> list[str]:
    return wrapped(words, across / POINTS, size, bold=bold)


def _in_colours(whole: Spec, names: Sequence[str]) -> Spec:
    """Return a specification with the colours of a light page in place of its variables."""
    colours = {name: light for name, (light, _) in PAGE_COLOURS.items()}
    colours |= {variable(number)[6:-1]: style(name).colour for number, name in enumerate(names)}
    text = VARIABLE.sub(lambda found: colours[found[1]], json.dumps(whole, ensure_ascii=False))
    text = MIXED.sub(lambda found: mix(found[3], found[1], int(found[2]) / 100), text)
    return dict(json.loads(LIGHT.sub(lambda found: found[1], text)))


@functools.cache
def _add_fonts() -> None:
    """Make the font that comes with matplotlib known to vl-convert, so that a file looks the same everywhere."""
    vl_convert.register_font_directory(f"{mpl.get_data_path()}/fonts/ttf")
