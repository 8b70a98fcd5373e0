"""What all pages share: the template around them, Vega's JavaScript, packed data, samples, and the file."""

import base64
import hashlib
import json
import os
import statistics
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bench.analyse.rows import grouped
from bench.analyse.summary import flagged
from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.show.charts import interactive
from bench.show.pages import vega
from bench.show.rows import Row
from bench.store import files, units
from bench.store.record import Record

PAGE_PARTS = Path(__file__).parent / "parts"
CHECKOUT = Path(__file__).parents[3]

SAMPLE = {"process": "process", "round": "round", "time": "time", "remark": "sample"}
"""What is shown of a sample on pointing at it."""

ANY = "any"
"""The key of a chart that is the same whatever the axis is."""

STEPS = 1_000
"""A sample is written as its ratio to the case's latency, in steps of a thousandth, which no picture shows."""

MOST_SAMPLES = 250_000
"""The most samples in a page. Of more, each process keeps the same share, evenly spread."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A section with charts: its kind, its title, what it shows in words, and its charts by axis, by POINTS or by ANY.

    The rows are those of the table, unless it has `rows` of its own, or `parts`: charts with a title and rows each.
    Beside it stands a table: `columns` of the large one, or fields of its own rows with their `headings`.
    `ticks` are those of each series and of all points. A chart shows rows with a value in the column `needs`. The
    charts of one point let the reader choose a point that has a value in the column `at`.
    """

    kind: str
    title: str
    note: str
    is_wide: bool = False
    at: str = ""
    needs: str = ""
    charts: Mapping[str, vega.Spec]
    rows: Sequence[Mapping[str, Any]] | None = None
    parts: Sequence[Mapping[str, Any]] = ()
    columns: Sequence[str] = ()
    headings: Mapping[str, str] | None = None
    ticks: Sequence[Mapping[str, Any]] = ()

    @property
    def data(self) -> dict[str, Any]:
        """What the page's script reads of it."""
        rows = None if self.rows is None else columns(self.rows)
        own = {"rows": rows, "parts": self.parts, "headings": self.headings, "ticks": self.ticks, "at": self.at,
            "needs": self.needs}  # fmt: skip
        return {"charts": self.charts, "columns": self.columns, **{name: each for name, each in own.items() if each}}


def render(
    template: str,
    title: str,
    names: Sequence[str],
    data: Mapping[str, Any],
    *,
    figures: Sequence[Figure] = (),
    has_charts: bool = True,
    colours: Mapping[str, tuple[str, str]] | None = None,
    filters: Mapping[str, Callable[..., Any]] | None = None,
    **values: Any,
) -> str:
    """Return a page of a template; `names` are the implementations, whose colours are CSS variables by their number.

    `data` is what the page's script reads, `figures` are the sections with charts, `colours` more CSS variables, in the
    light and in the dark, and `filters` and `values` what the template uses. A page that has no charts needs no Vega.
    """
    loader = FileSystemLoader(PAGE_PARTS)
    shared = {"names": [*names], "figures": {each.kind: each.data for each in figures}, "config": vega.CONFIG}
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= filters or {}
    texts = scripts() if has_charts else scripts()[1:]
    return environment.get_template(template).render(
        title=title,
        variables={**vega.variables(names), **(colours or {})},
        swatches=[*map(vega.swatch, names)],
        figures=figures,
        data=as_data({**shared, **data}),
        scripts=[Markup(script) for script in texts],  # noqa: S704 # Vega's and our own
        hashes=[base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in texts],
        **values,
    )


def scripts() -> list[str]:
    """Return Vega with Vega-Lite and Vega-Embed, as npm has them, and our own script."""
    return [(PAGE_PARTS / name).read_text(encoding="utf-8") for name in ("vega.js", "page.js")]


def write(path: Path, text: str) -> Path:
    """Write a page, at once or not at all, and return its file; raises WrongRequest if it can't be written."""
    try:
        files.replace(path, text)
    except OSError as error:
        raise WrongRequest(f"cannot write {path} ({error.strerror})") from None
    return path


def as_data(values: Any) -> Markup:
    """Return values as JSON that can stand in a page."""
    text = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 # it holds no element


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return rows as columns, which repeat no name."""
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def packed(text: str) -> str:
    """Return a text compressed, in letters that can stand in a page."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def document(name: str, folder: Path) -> str:
    """Return the link from a page in a folder to a document of the checkout; empty if the folder lies elsewhere."""
    inside = folder.resolve().is_relative_to(CHECKOUT)
    return os.path.relpath(CHECKOUT / "docs" / name, folder.resolve()) if inside else ""


def by_case(records: Iterable[Record]) -> dict[Case, list[Record]]:
    """Return the records that are ok, by their case."""
    return grouped((record for record in records if record.status == "ok"), lambda record: record.case)


def samples(runs: Sequence[Mapping[int, tuple[Row, Sequence[Record]]]]) -> dict[str, Any]:
    """Return what the script reads of the samples: of each run the cases by number, and the chart of one case.

    A case comes as its row, which has a time, and its records. In the page it is a list of processes. A process is its
    number, its first round, its samples, the places of those that were disturbed, and the median as a ratio and in
    words. A list of rounds replaces the first if rounds are missing. Only one of `every` samples is in the page.
    """
    totals = [sum(len(record.samples.rounds) for _, own in run.values() for record in own) for run in runs]
    steps = [-(-total // MOST_SAMPLES) or 1 for total in totals]
    packs = [
        {number: [_process(each, row["latency_s"], every) for each in own] for number, (row, own) in run.items() if own}
        for run, every in zip(runs, steps, strict=True)
    ]
    strip = vega.spec(interactive.samples(), "Every sample of the case, process by process", [], SAMPLE)
    return {"samples": packed(as_data(packs)), "every": max(steps), "steps": STEPS, "strip": strip}


def _process(record: Record, latency_s: float, every: int) -> list[Any]:
    rounds = record.samples.rounds[::every]
    values = [round(STEPS * value / latency_s) for value in record.samples.values_s[::every]]
    disturbed = [place for place, is_flagged in enumerate([*flagged(record)][::every]) if is_flagged]
    median = statistics.median(values) if values else 0
    text = units.seconds(median / STEPS * latency_s)
    follow = rounds == tuple(range(rounds[0], rounds[0] + len(rounds))) if rounds else True
    return [record.process, (rounds[0] if rounds else 0) if follow else list(rounds), values, disturbed, median, text]
