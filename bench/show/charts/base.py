"""What all charts share: Vega-Lite, made by Altair, and their files, a PNG or an SVG with text around the chart.

A page, or a file, gives a chart its rows, by the name of its data, and the values of its parameters. Colours are CSS
variables, so that a chart follows a page into the dark and onto paper; `bench.show.palette` has their values for files.
"""

import functools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import altair as alt
import matplotlib as mpl
import vl_convert
from altair.utils import schemapi

from bench.show.figures.page import ALARM, FONT, LARGEST_PIXELS, POINTS, text_width, wrapped
from bench.show.palette import PAGE_COLOURS, in_the_dark, mix, style
from bench.store.units import TIME_UNITS
from impls.catalogue import Style

# Altair would check each part of a chart as it is made, which takes seconds; a test checks whole charts
schemapi.disable_debug_mode()

Spec = dict[str, Any]
"""A specification of Vega-Lite."""

VERSION = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
"""The version of Vega-Lite that Altair writes."""

ROWS = alt.NamedData(name="rows")
"""The data that a page or a file gives to a chart."""

PARAMETERS = ("shown", "chosen", "kept", "at", "xs", "ys", "labels")
"""What a page or a file gives a chart: what is shown, chosen and kept, the point, and the ticks with their labels."""

SHAPES = {
    "o": "M-1.1,0A1.1,1.1 0 1,1 1.1,0A1.1,1.1 0 1,1 -1.1,0Z",
    "s": "M-1,-1H1V1H-1Z",
    "^": "M0,-1L1.1,0.9H-1.1Z",
    "v": "M0,1L1.1,-0.9H-1.1Z",
    "<": "M-1,0L0.9,-1.1V1.1Z",
    ">": "M1,0L-0.9,-1.1V1.1Z",
    "D": "M0,-1.2L1.2,0L0,1.2L-1.2,0Z",
    "d": "M0,-1.2L0.7,0L0,1.2L-0.7,0Z",
    "P": "M-0.4,-1.1H0.4V-0.4H1.1V0.4H0.4V1.1H-0.4V0.4H-1.1V-0.4H-0.4Z",
    "X": "M-1,-0.6L-0.6,-1L0,-0.4L0.6,-1L1,-0.6L0.4,0L1,0.6L0.6,1L0,0.4L-0.6,1L-1,0.6L-0.4,0Z",
    "*": "M0,-1.2L0.28,-0.38L1.14,-0.38L0.44,0.14L0.7,0.98L0,0.46L-0.7,0.98L-0.44,0.14L-1.14,-0.38L-0.28,-0.38Z",
    "h": "M0,-1.1L0.96,-0.56L0.96,0.56L0,1.1L-0.96,0.56L-0.96,-0.56Z",
    "H": "M-1.1,0L-0.56,-0.96L0.56,-0.96L1.1,0L0.56,0.96L-0.56,0.96Z",
    "8": "M-0.44,-1.04L0.44,-1.04L1.04,-0.44L1.04,0.44L0.44,1.04L-0.44,1.04L-1.04,0.44L-1.04,-0.44Z",
    "p": "M0,-1.1L1.04,-0.34L0.64,0.9L-0.64,0.9L-1.04,-0.34Z",
}
"""The path of each marker of matplotlib that the catalogue uses; from -1 to 1 it is a square of its size."""

SIZE, THIN = 70, 1.6
"""The area of a mark in square pixels, and the width of a line."""

LINES_PX, WIDTH_PX = 300, 620
"""The height of a chart of lines, and in a file the width of a chart, without what stands beside it."""

HEADING_PX, TEXT_PX, SMALL_PX = 17, 13, 11
"""The sizes of text in a file."""

CONFIG: Spec = {
    "view": {"stroke": None},
    "axis": {"labelColor": "var(--ink)", "titleColor": "var(--quiet)", "gridColor": "var(--rule)",
        "domainColor": "var(--quiet)", "tickColor": "var(--quiet)", "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "gridOpacity": 0.7},
    "legend": {"labelColor": "var(--ink)", "labelFontSize": 12},
    "text": {"color": "var(--ink)"},
    "title": {"anchor": "start", "frame": "bounds", "color": "var(--quiet)", "fontWeight": "normal"},
}  # fmt: skip
"""The style of all charts."""

LABEL_LINE_PX, LABEL_LINES = 12, 5
"""The height of a line of a row's label, and how many lines of it the row has room for."""

IN_RANGE = "length(chosen) == 0 || indexof(chosen, datum.point) >= 0"
"""Keeps the points that are marked; all if none is."""

PNG_SCALE = 2
"""The pixels of a PNG for each of the chart's."""

VARIABLE = re.compile(r"var\(--(\w+)\)")
MIXED = re.compile(r"color-mix\(in srgb, (#\w{6}) (\d+)%, (#\w{6})\)")
LIGHT = re.compile(r"light-dark\((#\w{6}), #\w{6}\)")
CLIP = re.compile(r"\bclip\d+\b")
SVG_SIZE = re.compile(r'width="(\d+)[\d.]*" height="(\d+)')


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


def chart(kind: str = "") -> alt.Chart:
    """Return a chart of the rows, or of those of a kind."""
    whole = alt.Chart(ROWS)
    return whole.transform_filter(f"datum.kind === '{kind}'") if kind else whole


def inline(rows: Iterable[Mapping[str, Any]]) -> alt.Chart:
    """Return a chart of rows of its own."""
    return alt.Chart(alt.InlineData(values=[*rows]))


def spec(description: str, *layers: alt.Chart, height: Any = LINES_PX, **options: Any) -> Spec:
    """Return the specification of charts on top of each other, of the same rows, that are as wide as their place."""
    whole = alt.LayerChart(layer=[*layers], data=ROWS, height=height, **options).to_dict(validate=False)
    # not by Altair, which would copy the chart for each of them
    whole["params"] = [*whole.get("params", []), *({"name": name, "value": []} for name in PARAMETERS)]
    whole |= {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}, "description": description}
    return {key: value for key, value in whole.items() if key not in ("$schema", "config", "usermeta")}


def variable(number: int) -> str:
    """Return the CSS variable that holds the colour of the implementation with this number."""
    return f"var(--i{number})"


def variables(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the CSS variables of a page with these implementations: their colours in the light and in the dark."""
    colours = [style(name).colour for name in names]
    return {**PAGE_COLOURS, **{f"i{number}": (each, in_the_dark(each)) for number, each in enumerate(colours)}}


def swatch(name: str) -> tuple[str, str, str]:
    """Return an implementation with how it is drawn in SVG: the path of its mark, and its dashes."""
    own = style(name)
    return name, SHAPES.get(own.marker, SHAPES["o"]), " ".join(f"{THIN * each:g}" for each in own.dash)


def colour(names: Sequence[str]) -> alt.Color:
    """Return the colours of implementations."""
    return alt.Color("implementation:N", scale=scale(names, map(variable, range(len(names)))), legend=None)


def own_colour(column: str = "fill") -> alt.Color:
    """Return the colours that the rows themselves have in a column."""
    return alt.Color(f"{column}:N", scale=None, legend=None)


def dash(names: Sequence[str]) -> alt.StrokeDash:
    """Return the dashes of implementations."""
    dashes = ([THIN * each for each in style(name).dash] or [1, 0] for name in names)
    return alt.StrokeDash("implementation:N", scale=scale(names, dashes), legend=None)


def shape(names: Sequence[str]) -> alt.Shape:
    """Return the markers of implementations."""
    return alt.Shape("implementation:N", scale=scale(names, (swatch(name)[1] for name in names)), legend=None)


def looks(names: Sequence[str]) -> dict[str, Any]:
    """Return colour, marker, and whether it is hollow, of implementations, with a legend of them all."""
    numbered = {name: replace(style(name), colour=variable(number)) for number, name in enumerate(names)}
    return marks("implementation:N", numbered, labelLimit=400)


def marks(column: str, styles: Mapping[str, Style], **options: Any) -> dict[str, Any]:
    """Return colour, marker, and whether it is hollow, of each value of a column, with a legend of them all."""
    legend = alt.Legend(title=None, symbolSize=SIZE, symbolOpacity=1, **options)
    values: list[tuple[Any, list[str]]] = [
        (alt.Stroke, [each.colour for each in styles.values()]),
        (alt.Fill, ["var(--surface)" if each.hollow else each.colour for each in styles.values()]),
        (alt.Shape, [SHAPES.get(each.marker, SHAPES["o"]) for each in styles.values()]),
    ]
    return {of.__name__.lower(): of(column, scale=scale(styles, each), legend=legend) for of, each in values}


def ticks(values: Sequence[float], labels: Iterable[str], **options: Any) -> alt.Axis:
    """Return an axis with these ticks alone."""
    at = f"indexof({json.dumps([*values])}, datum.value)"
    return alt.Axis(values=[*values], labelExpr=f"{json.dumps([*labels], ensure_ascii=False)}[{at}]", **options)


def page_ticks(**options: Any) -> alt.Axis:
    """Return an axis whose ticks and labels the page gives."""
    return alt.Axis(values=alt.ExprRef("ys"), labelExpr="labels[indexof(ys, datum.value)]", **options)


def log(ends: tuple[float, float]) -> alt.Scale:
    """Return a logarithmic scale with these ends."""
    return alt.Scale(type="log", domain=[*ends], nice=False)


def scale(names: Iterable[str], values: Iterable[Any]) -> alt.Scale:
    """Return a scale that gives each name its value."""
    return alt.Scale(domain=[*names], range=[*values])


def seconds(value: str = "datum.value") -> str:
    """Return the expression that writes the value of another one, in seconds, with its unit."""
    texts = [f"format({value} / {scale:g}, '.3~f') + ' {name}'" for name, scale in TIME_UNITS]
    limits = [scale for _, scale in TIME_UNITS[1:]]
    tests = (f"{value} < {limit:g} ? {text} : " for limit, text in zip(limits, texts, strict=False))
    return f"{value} == 0 ? '0' : {''.join(tests)}{texts[-1]}"


def in_lines(characters: int) -> dict[str, Any]:
    """Return the properties of an axis whose labels have their words in lines of at most so many characters.

    The middle of the lines stands at the row.
    """
    joined = rf"replace(datum.value, regexp('(.{{1,{characters}}})( +|$)', 'g'), '$1|')"
    lines = rf"split(replace({joined}, regexp('[|]$'), ''), '|')"
    offsets = [
        {"test": f"length({lines}) === {number}", "value": -LABEL_LINE_PX * (number - 1) / 2}
        for number in range(2, LABEL_LINES + 1)
    ]
    return {"labelExpr": lines, "labelLineHeight": LABEL_LINE_PX, "labelOffset": {"condition": offsets, "value": 0}}


def text_px(text: str, size: float = TEXT_PX, *, bold: bool = False) -> float:
    """Return the width of a text in a file, in pixels."""
    return POINTS * text_width(text, size, bold=bold)


def save_as(of: Sheet, file: Path) -> None:
    """Write a chart in the format that the file's name ends with; raises OSError if it can't be written.

    The same chart gives the same file, byte for byte.
    """
    _add_fonts()
    svg = vl_convert.vegalite_to_svg(specification(of), vl_version=VERSION)
    # Vega goes on counting clips from chart to chart
    clips = list(dict.fromkeys(CLIP.findall(svg)))
    svg = CLIP.sub(lambda match: f"clip{clips.index(match[0]) + 1}", svg)
    if file.suffix == ".svg":
        file.write_text(svg, encoding="utf-8")
        return
    size = SVG_SIZE.search(svg)
    largest = max(map(int, size.groups())) if size else 1
    file.write_bytes(vl_convert.svg_to_png(svg, scale=min(PNG_SCALE, LARGEST_PIXELS / largest)))


def specification(of: Sheet) -> Spec:
    """Return the specification of a file: that of the chart, with its text and in the colours of a light page."""

    def text(words: Sequence[str], size: int, **options: Any) -> dict[str, Any]:
        return {"text": wrapped(words, of.across / POINTS, size), "fontSize": size, "offset": 14, **options}

    notes = text(of.notes, SMALL_PX, lineHeight=17, orient="bottom")
    facts = text(of.facts, TEXT_PX, lineHeight=18)
    heading = {"text": of.heading, "fontSize": HEADING_PX, "fontWeight": "bold", "color": "var(--ink)", "offset": 9}
    if of.alarm:
        heading |= {"subtitle": wrapped(of.alarm, of.across / POINTS, TEXT_PX, bold=True), "subtitleColor": ALARM,
            "subtitleFontWeight": "bold", "subtitleFontSize": TEXT_PX, "subtitleLineHeight": 18}  # fmt: skip
    inside = {
        name: part for name, part in of.spec.items() if name not in ("autosize", "datasets", "params", "description")
    }
    whole = {
        "$schema": alt.SCHEMA_URL,
        "background": "var(--surface)",
        "padding": 16,
        "config": {**CONFIG, "font": f"{FONT}, Verdana, sans-serif"},
        "params": [{**each, "value": of.parameters.get(each["name"], each["value"])} for each in of.spec["params"]],
        "datasets": {**of.spec.get("datasets", {}), ROWS.name: [*of.rows]},
        "title": heading,
        "vconcat": [{"title": facts, "vconcat": [{**inside, "width": of.width, "title": notes}]}],
    }
    return _in_colours(whole, of.names)


def _in_colours(whole: Spec, names: Sequence[str]) -> Spec:
    """Return a specification with the colours of a light page in place of its variables."""
    colours = variables(names)
    text = VARIABLE.sub(lambda match: colours[match[1]][0], json.dumps(whole, ensure_ascii=False))
    text = MIXED.sub(lambda match: mix(match[3], match[1], int(match[2]) / 100), text)
    return dict(json.loads(LIGHT.sub(lambda match: match[1], text)))


@functools.cache
def _add_fonts() -> None:
    """Make the font that comes with matplotlib known to vl-convert, so that a file looks the same everywhere."""
    vl_convert.register_font_directory(f"{mpl.get_data_path()}/fonts/ttf")
