"""A panel of a picture on a page: Vega-Lite, made by Altair.

The page's script gives a chart its rows, by the name of its data, and its ticks, as parameters. Colours are CSS
variables, so that a chart follows the page into the dark and onto paper.
"""

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt
from altair.utils import schemapi
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path
from matplotlib.transforms import Affine2D

from bench.show.figures.marks import style_of
from bench.show.figures.page import text_width
from bench.show.palette import PAGE_COLOURS, of_page, style
from bench.show.picture import Kind, Marks, Panel, Place, Scale, Shape
from bench.store.units import TIME_UNITS
from impls.catalogue import Style

# Altair would check each part of a chart as it is made, which takes seconds; a test checks whole charts
schemapi.disable_debug_mode()

Spec = dict[str, Any]
"""A specification of Vega-Lite."""

ROWS = alt.NamedData(name="rows")
"""The data that a page gives to a chart."""

PARAMETERS = ("places", "values", "labels")
"""What a page's script gives a chart: the ticks at its places and of its values, and the labels of these."""

SEGMENTS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C", Path.CLOSEPOLY: "Z"}
"""The letters of Matplotlib's segments of a path in SVG."""

INCH_PX, POINT_PX = 86, 4 / 3
"""The pixels of an inch of a panel's height, and of a point."""

CONFIG: Spec = {
    "view": {"stroke": None},
    "axis": {"labelColor": "var(--ink)", "titleColor": "var(--quiet)", "gridColor": "var(--rule)",
        "domainColor": "var(--quiet)", "tickColor": "var(--quiet)", "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "gridOpacity": 0.7},
    "legend": {"labelColor": "var(--ink)", "labelFontSize": 12},
    "text": {"color": "var(--ink)"},
}  # fmt: skip
"""The style of all charts."""

LABEL_CHARACTERS, LABEL_LINE_PX, LABEL_LINES = 18, 12, 5
"""The longest line of a row's label, the height of a line, and how many of them a row has room for."""

CELL_TEXT_PX = 15
"""The height of a line of text in a cell."""

BAND_OPACITY = 0.13
"""The opacity of a band."""


def variable(number: int) -> str:
    """Return the CSS variable that holds the colour of the implementation with this number."""
    return f"var(--i{number})"


def variables(names: Sequence[str]) -> dict[str, str]:
    """Return the CSS variables of a page with these implementations, with their colours."""
    colours = {f"i{number}": style(name).colour for number, name in enumerate(names)}
    return {name: of_page(colour) for name, colour in ({name: name for name in PAGE_COLOURS} | colours).items()}


@functools.cache
def outline(marker: str) -> str:
    """Return the path in SVG of a marker of Matplotlib; from -1.1 to 1.1 it is a square of its size."""
    drawn = MarkerStyle(marker)
    path = drawn.get_path().transformed(drawn.get_transform() + Affine2D().scale(2.2, -2.2))
    segments = path.iter_segments(simplify=False)
    return "".join(
        SEGMENTS[code] + ("" if code == Path.CLOSEPOLY else ",".join(f"{round(each, 2) + 0:g}" for each in ends))
        for ends, code in segments
    )


def swatch(name: str) -> tuple[str, str, str]:
    """Return an implementation with how it is drawn in SVG: the path of its mark, and its dashes."""
    own = style(name)
    return name, outline(own.marker), " ".join(f"{1.6 * each:g}" for each in own.dash)


def spec(
    panel: Panel, description: str, names: Sequence[str], shown: Mapping[str, str] | None = None, *, brush: bool = False
) -> Spec:
    """Return the chart of a panel, as wide as its place; `names` are the implementations, whose colours have numbers.

    Pointing at a mark says what is `shown`: fields of the rows with their titles. With a brush one can mark a part.
    """
    chart = _Chart(panel, names, [alt.Tooltip(f"{field}:N", title=title) for field, title in (shown or {}).items()])
    layers = [layer for marks in panel.marks for layer in chart.layers(marks)]
    if brush:
        along: Any = "y" if panel.y.given == "rows" else "x"
        layers[-1] = layers[-1].add_params(alt.selection_interval(name="brush", encodings=[along]))
    high = round(panel.height * INCH_PX)
    height = alt.Step(high, **{"for": "position"}) if panel.y.given == "rows" else high
    whole = alt.LayerChart(layer=layers, data=ROWS, height=height).to_dict(validate=False)
    # not by Altair, which would copy the chart for each of them
    whole["params"] = [*whole.get("params", []), *({"name": name, "value": []} for name in PARAMETERS)]
    whole |= {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}, "description": description}
    return {key: value for key, value in whole.items() if key not in ("$schema", "config", "usermeta")}


def of_one(chart: Spec, field: str, labels: Mapping[int, str]) -> Spec:
    """Return a chart of the rows with one value of a field, which the reader chooses by its label."""
    values = [*labels]
    select = {"input": "select", "options": values, "labels": [*labels.values()], "name": f"{field} "}
    param = {"name": field, "value": values[len(values) // 2], "bind": select}
    return {**chart, "params": [*chart["params"], param], "transform": [{"filter": f"datum.{field} == {field}"}]}


def seconds(value: str = "datum.value") -> str:
    """Return the expression that writes the value of another one, in seconds, with its unit."""
    texts = [f"format({value} / {scale:g}, '.3~f') + ' {name}'" for name, scale in TIME_UNITS]
    limits = [scale for _, scale in TIME_UNITS[1:]]
    tests = (f"{value} < {limit:g} ? {text} : " for limit, text in zip(limits, texts, strict=False))
    return f"{value} == 0 ? '0' : {''.join(tests)}{texts[-1]}"


class _Chart:
    """A panel as layers of charts."""

    def __init__(self, panel: Panel, names: Sequence[str], tooltip: Sequence[alt.Tooltip]) -> None:
        self._panel, self._names, self._tooltip = panel, names, tooltip

    def layers(self, of: Marks) -> Iterator[alt.Chart]:
        """Yield the layers of some marks; texts beside the panel are in files alone."""
        data = self._data(of)
        place = self._place(of)
        line: dict[str, Any] = {"strokeWidth": of.width, "opacity": of.opacity}
        if of.shape is Shape.BAND:
            yield data.mark_area(opacity=BAND_OPACITY).encode(**place, color=self._colour(of))
        elif of.shape is Shape.LINE:
            dashes = {"strokeDash": self._dash(of)} if of.by else {}
            yield data.mark_line(**line).encode(**place, color=self._colour(of), **dashes)
            if of.has_points:
                yield self._points(of, data, place)
        elif of.shape is Shape.RULE:
            dash: dict[str, Any] = {"strokeDash": [*of.dash]} if of.dash else {}
            yield data.mark_rule(clip=of.has_caps, **line, **dash).encode(**place, **self._stroke(of))
        elif of.shape is Shape.POINT:
            yield self._points(of, data, place)
        elif of.shape is Shape.CELL:
            edge: dict[str, Any] = {"stroke": "var(--surface)", "strokeWidth": of.width} if of.width else {}
            drawn = data.mark_rect(opacity=of.opacity, cursor="pointer", **edge)
            yield drawn.encode(**place, color=self._colour(of), **self._on_pointing(of))
        elif not of.beside:
            yield self._texts(of, data).encode(**place, text=f"{of.text}:N", color=self._colour(of))

    def _data(self, of: Marks) -> alt.Chart:
        """Return a chart of the rows of marks that have all values."""
        own: alt.Chart = alt.Chart() if of.rows is None else alt.Chart(alt.InlineData(values=[*of.rows]))
        if of.kind:
            own = own.transform_filter(f"datum.kind === '{of.kind}'")
        if of.fields and of.rows is None:
            own = own.transform_filter(" && ".join(f"isValid(datum.{name})" for name in of.fields))
        if of.strength:
            number = f"indexof({json.dumps([*self._names])}, datum.{of.fill})"
            share = f"round(100 * datum.{of.strength}) + '%, var(--surface))'"
            mixed = f"'color-mix(in srgb, var(--i' + {number} + ') ' + {share}"
            own = own.transform_calculate(own_colour=f"datum.{of.fill} ? {mixed} : 'var(--open)'")
        if self._panel.y.given == "seconds" and self._tooltip:
            own = own.transform_calculate(time=seconds(f"datum.{of.y}"))
        return own

    def _place(self, of: Marks) -> dict[str, Any]:
        """Return the places of marks on both axes."""
        place = {
            name: _end(end, alt.X2 if name == "x2" else alt.Y2)
            for name, end in (("x2", of.x2), ("y2", of.y2))
            if end is not None
        }
        for name, at, scale in (("x", of.x, self._panel.x), ("y", of.y, self._panel.y)):
            if at is not None:
                place[name] = _at(name, at, scale)
        if of.side_by_side:
            place["yOffset"] = alt.YOffset(f"{of.by}:N", sort=[*self._names])
        return place

    def _points(self, of: Marks, data: alt.Chart, place: Mapping[str, Any]) -> alt.Chart:
        size: dict[str, Any] = {"size": 1.25 * of.size**2, "opacity": of.opacity, "strokeWidth": 1.4}
        drawn = data.mark_point(cursor="pointer", **size)
        if not of.by:
            colour = self._colour(of)
            looks: dict[str, Any] = {"stroke": colour, "shape": alt.value(outline(of.marker or "o"))}
            looks |= {"fill": alt.value("transparent") if of.is_hollow else self._colour(of, alt.Fill)}
        else:
            looks = self._looks(of)
        encoded: alt.Chart = drawn.encode(**place, **looks, **self._on_pointing(of))
        return encoded

    def _on_pointing(self, of: Marks) -> dict[str, Any]:
        return {"tooltip": [*self._tooltip]} if self._tooltip and of.rows is None else {}

    def _texts(self, of: Marks, data: alt.Chart) -> alt.Chart:
        """Return texts; those in a place of its own are as small as the widest needs."""
        size, texts = of.size * POINT_PX, [row[of.text] for row in of.drawn(self._panel.rows)]
        options: dict[str, Any] = {"fontSize": size, "dy": -POINT_PX * of.shift[1]}
        if self._panel.x.kind is Kind.PLACES:
            lines = [line for text in texts for line in ([text] if isinstance(text, str) else text)]
            widest = 96 * max((text_width(line, of.size, bold=of.is_bold) for line in lines), default=1.0)
            options["fontSize"] = alt.ExprRef(f"{size:g} * min(1, (bandwidth('x') - 4) / {widest:.0f})")
            lines_up = f"(isArray(datum.{of.text}) ? length(datum.{of.text}) - 1 : 0)"
            options["dy"] = alt.ExprRef(f"-{CELL_TEXT_PX / 2} * {lines_up}")
        options |= {"align": of.align, "baseline": "middle", "dx": POINT_PX * of.shift[0], "lineHeight": CELL_TEXT_PX}
        drawn: alt.Chart = data.mark_text(fontWeight="bold" if of.is_bold else "normal", **options)
        return drawn

    def _colour(self, of: Marks, channel: Any = alt.Color) -> Any:
        """Return the colour of each row, of its series, or of all."""
        if of.fill:
            return channel("own_colour:N" if of.strength else f"{of.fill}:N", scale=None, legend=None)
        if not of.by:
            return alt.value(_css(of.colour))
        return channel(f"{of.by}:N", scale=_scale(self._colours(of)), legend=None)

    def _stroke(self, of: Marks) -> dict[str, Any]:
        """Return the colour of rules, as points of the same styles have it, with which they share a legend."""
        return {"stroke": self._looks(of)["stroke"]} if of.styles else {"color": self._colour(of)}

    def _dash(self, of: Marks) -> alt.StrokeDash:
        dashes = {name: [1.6 * each for each in own.dash] or [1, 0] for name, own in self._styles(of).items()}
        return alt.StrokeDash(f"{of.by}:N", scale=_scale(dashes), legend=None)

    def _styles(self, of: Marks) -> dict[str, Style]:
        return {name: style_of(of, name) for name in (of.styles or self._names)}

    def _colours(self, of: Marks) -> dict[str, str]:
        if of.styles:
            return {name: _css(own.colour) for name, own in of.styles.items()}
        return {name: variable(number) for number, name in enumerate(self._names)}

    def _looks(self, of: Marks) -> dict[str, Any]:
        """Return colour, marker, and whether it is hollow, of each series, with a legend of the marks' own styles."""
        legend = alt.Legend(title=None, orient="bottom", symbolOpacity=1, labelLimit=400) if of.styles else None
        styles, colours = self._styles(of), self._colours(of)
        fills = {name: "var(--surface)" if styles[name].hollow else colour for name, colour in colours.items()}
        shapes = {name: outline(own.marker) for name, own in styles.items()}
        looks = {"stroke": (alt.Stroke, colours), "fill": (alt.Fill, fills), "shape": (alt.Shape, shapes)}
        scaled: dict[str, Any] = {
            name: on(f"{of.by}:N", scale=_scale(each), legend=legend) for name, (on, each) in looks.items()
        }
        scaled |= {"shape": alt.value(outline(of.marker))} if of.marker else {}
        return scaled | ({"fill": alt.value("var(--surface)")} if of.is_hollow else {})


def _at(name: str, at: Place, scale: Scale) -> Any:
    """Return the place of marks on an axis."""
    options: dict[str, Any] = {"scale": _of_axis(scale), "axis": _axis(name, scale), "title": scale.title or None}
    if not isinstance(at, str):
        return (alt.XDatum if name == "x" else alt.YDatum)(at, **options)
    if scale.kind is Kind.PLACES:
        sort = alt.EncodingSortField("id") if scale.given else [*scale.ticks]
        options = {"axis": options["axis"], "title": _lines(scale.title), "sort": sort}
    channel: Any = alt.X if name == "x" else alt.Y
    return channel(f"{at}:{'N' if scale.kind is Kind.PLACES else 'Q'}", **options)


def _lines(title: str) -> list[str] | None:
    return title.split("\n") if title else None


def _end(end: Place, channel: Any) -> Any:
    return channel(f"{end}:Q") if isinstance(end, str) else alt.datum(end)


def _of_axis(scale: Scale) -> alt.Scale:
    if scale.ends:
        return alt.Scale(type=scale.kind.value, domain=[*scale.ends], nice=False)  # type: ignore[arg-type]
    if scale.given == "places":
        ends = {"domainMin": alt.ExprRef("places[0]"), "domainMax": alt.ExprRef("places[length(places) - 1]")}
        return alt.Scale(type="log", nice=False, padding=16, **ends)
    if scale.kind is Kind.LOG:
        return alt.Scale(type="log", nice=False, padding=16)
    return alt.Scale(zero=scale.given != "seconds", nice=False, padding=8 if scale.given == "seconds" else 0)


def _axis(name: str, scale: Scale) -> alt.Axis:
    side: Any = {"orient": "top"} if name == "x" and scale.given == "values" else {}
    if scale.given == "places":
        number = ",d" if scale.kind is Kind.LOG else ".0%"
        return alt.Axis(values=alt.ExprRef("places"), labelOverlap="greedy", format=number)
    if scale.given == "values":
        return alt.Axis(values=alt.ExprRef("values"), labelExpr="labels[indexof(values, datum.value)]", **side)
    if scale.given == "rows":
        return alt.Axis(grid=True, **_in_lines())
    if scale.given == "seconds":
        return alt.Axis(labelExpr=seconds(), tickCount=6)
    if scale.kind is Kind.PLACES:
        return alt.Axis(labelAngle=0, grid=False)
    if scale.ticks:
        at = f"indexof({json.dumps([*scale.ticks])}, datum.value)"
        labels = json.dumps([*scale.labels], ensure_ascii=False)
        return alt.Axis(values=[*scale.ticks], labelExpr=f"{labels}[{at}]")
    return alt.Axis(tickCount=6)


def _in_lines() -> dict[str, Any]:
    """Return the properties of an axis whose labels have their words in lines, whose middle stands at the row."""
    joined = rf"replace(datum.value, regexp('(.{{1,{LABEL_CHARACTERS}}})( +|$)', 'g'), '$1|')"
    lines = rf"split(replace({joined}, regexp('[|]$'), ''), '|')"
    offsets = [
        {"test": f"length({lines}) === {number}", "value": -LABEL_LINE_PX * (number - 1) / 2}
        for number in range(2, LABEL_LINES + 1)
    ]
    return {"labelExpr": lines, "labelLineHeight": LABEL_LINE_PX, "labelOffset": {"condition": offsets, "value": 0}}


def _css(colour: str) -> str:
    return colour if colour.startswith("#") else f"var(--{colour})"


def _scale(values: Mapping[str, Any]) -> alt.Scale:
    return alt.Scale(domain=[*values], range=[*values.values()])
