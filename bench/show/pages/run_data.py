"""What a run's page shows: its machines, the points that fit into a page, its sections with charts, and their data."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Any

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.axes import AXES, PADDING, SERIES, SIZES, TOKENS, Axis, groups, places
from bench.analyse.growth import scalings
from bench.analyse.rows import point_of
from bench.analyse.standing import by_rank
from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.plan.grid import machine_columns, without_columns
from bench.show import answer
from bench.show.answer import At
from bench.show.blocks import Column, Table
from bench.show.charts import growth, interactive
from bench.show.charts.quantity import POINTS, Quantity, on_page, quantities
from bench.show.charts.winners import SURENESS, maps, panel
from bench.show.columns import complete
from bench.show.pages import shell, vega
from bench.show.pages.shell import ANY, Figure
from bench.show.rows import Row, is_measured, measured, unmeasured
from bench.show.text import capital, differences, order, parts, varying
from bench.store import units
from bench.store.saved_run import runs_of

NOTES = {
    "speedup": "How many times as fast as {baseline}; above 1 is faster. Bands and bars are 99 % intervals. What to "
    "use stands in the table Point by point. A speed-up is paired within rounds, so it is not the quotient of the two "
    "latencies. Drag over the chart to mark some points, click on a mark to see its samples.",
    "latency_s": "Time per call, with 95 % intervals.",
    "memory_bytes": "The most that one call holds at once, beyond its input and weights. A horizontal tick is the peak "
    "that follows from the shapes by a formula.",
    "roofline_share": "How near a call comes to the highest rates that this device has shown. Above 100 % the data fit "
    "into a cache.",
}
"""What is said under the title of a metric's charts; of others it is the metric's meaning."""

MOST_CASES = 1_500
"""The most cases in a page; of more it has the first points, and says so."""


@dataclass(frozen=True)
class Shown:
    """A point of the page: the number of its machine, and what the run says of it.

    Of several machines the name of a point ends with that of its machine.
    """

    machine: int
    at: At


@dataclass(frozen=True)
class View:
    """What a page shows of the runs of some machines, by their names: of each all points, and those that the page has.

    Points of one series may differ in the columns `ignored`, which distinguish machines.
    `refused` has a sentence for each machine that is left out.
    """

    machines: Mapping[str, AnalysedRun]
    points: Mapping[str, Sequence[At]]
    shown: Sequence[Shown]
    ignored: frozenset[str]
    refused: Sequence[str]

    @property
    def first(self) -> AnalysedRun:
        """The run of the first machine."""
        return next(iter(self.machines.values()))

    @property
    def baseline(self) -> str | None:
        """The baseline of all runs."""
        return self.first.baseline

    @property
    def several(self) -> bool:
        """Whether there are several machines."""
        return len(self.machines) > 1

    def of(self, machine: str, text: str) -> str:
        """Return a sentence, with the machine of which it is true if the page has several."""
        return f"{machine}: {text}" if self.several else text

    @cached_property
    def names(self) -> list[str]:
        """The implementations."""
        return list(dict.fromkeys(str(row["implementation"]) for each in self.shown for row in each.at.rows))

    @cached_property
    def rows(self) -> list[Row]:
        """The rows with the numbers of their points and machines, of each point the one to use first, failures last."""
        rows = []
        for number, each in enumerate(self.shown):
            complete(each.at.rows, self.baseline)
            ranked = (*by_rank(measured(each.at.rows)), *unmeasured(each.at.rows))
            rows += [{**row, "number": number, "machine": each.machine} for row in ranked]
        return rows

    @cached_property
    def series(self) -> list[tuple[Axis, list[Row]]]:
        """The rows of each series along an axis, of all machines."""
        return [(axis, rows) for axis in AXES for rows in groups(self.rows, axis, self.ignored) if measured(rows)]

    @property
    def axes(self) -> list[Axis]:
        """The axes of the series."""
        return list(dict.fromkeys(axis for axis, _ in self.series))

    @cached_property
    def quantities(self) -> list[Quantity]:
        """The quantities that some row has: ratios to the baseline first, then in the order of the table."""
        rows = measured(self.rows)
        drawn = [each for each in quantities(self.baseline) if any(row[each.column] for row in rows)]
        return sorted(drawn, key=lambda each: (not each.axis.relative, each.heading.place))


def view_of(saved: AnalysedRun) -> View:
    """Return what the page of a run shows, a merged one with each of its machines.

    Raises WrongRequest if it has no rows.
    """
    machines, refused = _machines(saved)
    points = {name: answer.points_of(run.whole, run.planned) for name, run in machines.items()}
    ignored: frozenset[str] = frozenset()
    if len(points) > 1:  # no name of a point has the columns that distinguish machines
        ignored = machine_columns([at.point for at in of] for of in points.values())
        different = varying({without_columns(at.point, ignored) for of in points.values() for at in of})
        points = {
            name: [replace(at, label=differences(at.point, different) or "the only point") for at in of]
            for name, of in points.items()
        }
    return View(machines, points, _that_fit(points, ignored), ignored, refused)


def _machines(saved: AnalysedRun) -> tuple[dict[str, AnalysedRun], list[str]]:
    """Return the runs of the machines by the names that the page gives them, and a sentence for each without rows.

    A machine has the name that its user gave it, or that of its device. Raises WrongRequest if none has rows.
    """
    runs, refused = {}, []
    for folder, run in runs_of(saved).items():
        try:
            devices = run.table["device_name"].dropna().unique()
        except WrongRequest as error:
            refused.append(error)
            continue
        given = run.environment.context.get("machine_name") if run.environment else None
        runs[folder] = str(given or " and ".join(map(str, devices))), run
    if not runs:
        raise refused[0]
    names = [name for name, _ in runs.values()]
    named = {f"{name} ({folder})" if names.count(name) > 1 else name: run for folder, (name, run) in runs.items()}
    return named, [f"A machine is left out: {error}." for error in refused]


def _that_fit(by_machine: Mapping[str, Sequence[At]], ignored: frozenset[str]) -> list[Shown]:
    """Return the first points whose cases fit into a page, one at least; of several machines, point by point."""
    several = len(by_machine) > 1
    every = [
        Shown(number, replace(at, label=f"{at.label} ({name})") if several else at)
        for number, (name, points) in enumerate(by_machine.items())
        for at in points
        if at.rows
    ]
    if several:
        every.sort(key=lambda each: (order(without_columns(each.at.point, ignored)), each.machine))
    kept: list[Shown] = []
    cases = 0
    for each in every:
        cases += len(each.at.rows)
        if kept and cases > MOST_CASES:
            break
        kept.append(each)
    return kept


def figures(view: View) -> list[Figure]:
    """Return the sections with charts, from top to bottom."""
    kinds = (_quantities, _winners, _growth, _compilation)
    return [figure for kind in kinds for figure in kind(view)]


def data(view: View) -> dict[str, Any]:
    """Return what the page's script reads; rows of the table are in the same order as here."""
    series = [_series(view, axis, rows) for axis, rows in view.series]
    rows = [
        {
            "point": row["number"],
            "implementation": str(row["implementation"]),
            "machine": row["machine"],
            **{axis.column: row[axis.column] for axis in view.axes},
            **{name: _short(value) if is_measured(row) else None for name, value in _numbers(view, row).items()},
        }
        for row in view.rows
    ]
    return {
        "points": [each.at.label for each in view.shown],
        "machines": list(view.machines),
        "rows": shell.columns(rows),
        "series": series,
        "first": _first_view(series),
        **_samples(view),
    }


def _numbers(view: View, row: Row) -> dict[str, float | None]:
    """Return the numbers of a row that charts draw or the script reads."""
    drawn = [each.drawn(row) for each in view.quantities]
    numbers = {name: value for of in drawn for name, value in of.items()}
    return numbers | {name: row[name] for name in ("latency_s", "latency_low_s", "latency_high_s")}


def _short(value: float | None) -> float | None:
    """Return a number with six digits, which is more than a picture shows."""
    return None if value is None else float(f"{float(value):.6g}")


def _series(view: View, axis: Axis, group: Sequence[Row]) -> dict[str, Any]:
    """Return the words of a series, its places, and the place of each of its points."""
    return {
        "axis": axis.name,
        "label": _label(view, axis, group),
        "at": {row["number"]: row[axis.column] for row in group},
        "xs": places(group, axis),
    }


def _label(view: View, axis: Axis, group: Sequence[Row]) -> str:
    """Return the places of a series, and what is constant in it but varies in the run."""
    different = varying(dict.fromkeys(map(point_of, view.rows))) - view.ignored
    fixed = different - varying(dict.fromkeys(map(point_of, group))) - {axis.column}
    at = " ".join(parts(point_of(group[0]), fixed))
    of_places = map(units.percent if axis.is_share else str, places(group, axis))
    return f"{axis.name} {', '.join(of_places)}{f' at {at}' if at else ''}"


def _first_view(series: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of the series that a page shows first: the longest, along padding or tokens if it has one.

    It is -1, a row for each point, if no series has three places.
    """
    long = [number for number, one in enumerate(series) if len(one["xs"]) >= SERIES]

    def place(number: int) -> tuple[bool, bool, int]:
        axis, xs = series[number]["axis"], series[number]["xs"]
        return axis != PADDING.name, axis != TOKENS.name, -len(xs)

    return min(long, key=place, default=-1)


def _shown(view: View) -> dict[str, str]:
    """Return what is shown of a case on pointing at it."""
    return {
        "implementation": "implementation",
        "label": "point",
        **{f"{each.column}_text": each.heading.text for each in view.quantities},
    }


def _quantities(view: View) -> Iterator[Figure]:
    most = max(Counter(each.machine for each in view.shown).values(), default=0)
    for each in view.quantities:
        meaning = each.metric.meaning.replace("`", "")
        label, is_relative = each.filled(each.axis.label), each.axis.relative
        yield Figure(
            kind=each.name,
            title=each.filled(each.axis.title),
            note=each.filled(NOTES.get(each.column, f"{meaning[:1].upper()}{meaning[1:]}.")),
            is_wide=is_relative,
            charts={
                name: vega.spec(of, f"{label} {_against(name)}", view.names, _shown(view), brush=is_relative)
                for name, of in on_page(each, view.axes, most, len(view.names)).items()
            },
            column=each.column,
            ticks=[_ticks(each, rows) for rows in [*(own for _, own in view.series), view.rows]],
        )


def _against(axis: str) -> str:
    return "in a row for each point" if axis == POINTS else f"against {axis}"


def _ticks(of: Quantity, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the ticks of a quantity's axis and their labels."""
    drawn = [values for values in map(of.drawn, measured(rows)) if any(values.values())]
    scale = of.scale(drawn) if drawn else of.given_scale()
    return {"values": scale.ticks, "labels": scale.labels}


def _winners(view: View) -> Iterator[Figure]:
    if drawn := list(_maps(view)):
        yield Figure(
            kind="winners",
            title="What to use where",
            note=f"A cell names what to use and what that can cost at most. {capital(SURENESS)}.",
            parts=drawn,
        )


def _maps(view: View) -> Iterator[dict[str, Any]]:
    """Yield each map of winners whose points are in the page: its words, its chart, and its cells."""
    for machine, (name, saved) in enumerate(view.machines.items()):
        number_of = {each.at.point: number for number, each in enumerate(view.shown) if each.machine == machine}
        for each in maps(saved.table):
            points = {
                (row[each.along.column], row[each.axis.column]): number_of.get(point_of(row)) for row in each.rows
            }
            if None in points.values():
                continue
            words = parts(each.point, without=each.varying)
            drawn = panel(each)
            description = f"What to use, over {each.along.name} and {each.axis.name}"
            yield {
                "title": " · ".join([*([name] if view.several else []), *words]),
                "chart": vega.spec(drawn, description, view.names, {"label": "point", "words": "what to use"}),
                "rows": [{**row, "point": points[row["x"], row["y"]]} for row in drawn.rows],
            }


def _growth(view: View) -> Iterator[Figure]:
    rows = list(_exponents(view))
    labels = [_label(view, *each) for each in view.series]
    along = Column("along", lambda row: labels[row["series"]])
    shown = {"machine_name": "machine"} if view.several else {}
    shown |= {"implementation": "implementation", "from_to": "between", "text": "exponent"}
    note = "The exponent between two adjacent values: 1 is linear, 2 is quadratic."
    slow = " If the machine was slow for a while, it shows here too."
    for what, title, more in (("latency", "Growth of latency", slow), ("memory", "Growth of peak memory", "")):
        if own := [row for row in rows if row["kind"] == what]:
            charts = {
                axis.name: vega.spec(growth.exponents_on_page(what, axis),
                    f"Local exponents of {what} against {axis.name}", view.names, shown)
                for axis in view.axes
                if axis in SIZES
            }  # fmt: skip
            columns = [along, *(Column(heading, itemgetter(name)) for name, heading in shown.items())]
            kind = f"growth-{what}"
            yield Figure(
                kind=kind, title=title, note=f"{note}{more}", charts=charts, rows=own, table=Table(columns, own)
            )


def _exponents(view: View) -> Iterator[dict[str, Any]]:
    """Yield the local exponents of latency and memory along each series on each machine."""
    for number, (axis, rows) in enumerate(view.series):
        for machine, name in enumerate(view.machines):
            place = {"series": number, "machine": machine, "machine_name": name}
            for each in scalings(row for row in measured(rows) if row["machine"] == machine):
                if each.axis == axis:
                    for row in growth.exponent_rows(each):
                        yield {**place, **row, **{name: _short(row[name]) for name in ("at", "slope", "low", "high")}}


def _compilation(view: View) -> Iterator[Figure]:
    at = {row["number"]: view.shown[row["number"]].at.label for row in view.rows if row["compile_cold_s"]}
    if at:
        chart = vega.spec(interactive.compilation(), "Time per call against calls", view.names)
        yield Figure(
            kind="compile",
            title="What compilation costs",
            note="Time per call if the first compilation is shared by all calls. Right of a crossing the compiled "
            "implementation costs less in all. It uses measured means, whether or not the difference is shown.",
            charts={ANY: vega.of_one(chart, "at", at)},
            rows=[row for row in interactive.compilation_rows(view.rows) if row["at"] in at],
        )


def _samples(view: View) -> dict[str, Any]:
    """Return the samples of the cases of the page, and the command that measures each row again.

    Those of points that it leaves out are not read.
    """
    shown = {(each.machine, each.at.point) for each in view.shown}
    runs = [*view.machines.values()]
    records = [
        shell.by_case(run.contents.load(entry) for entry in run.contents.entries if (number, entry.case.point) in shown)
        for number, run in enumerate(runs)
    ]
    cases = [Case.from_columns(row) for row in view.rows]
    rows = {number: row for number, row in enumerate(view.rows) if is_measured(row)}
    return shell.cases(
        [{number: (row, records[row["machine"]].get(cases[number], [])) for number, row in rows.items()}],
        [runs[row["machine"]].again.command(case) for case, row in zip(cases, view.rows, strict=True)],
    )
