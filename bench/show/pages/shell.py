"""What all pages share: the template around them, Vega's JavaScript, packed data, samples, and the file."""

import base64
import functools
import hashlib
import json
import os
import statistics
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import altair
import vl_convert
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bench.analyse.summary import flagged
from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.show.charts.base import CONFIG, swatch, variable
from bench.show.palette import PAGE_COLOURS, in_the_dark, style
from bench.store import atomic, units
from bench.store.record import Record

PARTS = Path(__file__).parent / "parts"
CHECKOUT = Path(__file__).parents[3]


STEPS = 1_000
"""A sample is written as its ratio to the case's latency, in steps of a thousandth, which no picture shows."""

MOST_SAMPLES = 250_000
"""The most samples in a page. Of more, each process keeps the same share, evenly spread."""


def render(
    template: str,
    title: str,
    names: Sequence[str],
    data: Mapping[str, Any],
    *,
    variables: Mapping[str, tuple[str, str]] | None = None,
    filters: Mapping[str, Callable[..., Any]] | None = None,
    **values: Any,
) -> str:
    """Return a page of a template; `names` are the implementations, whose colours are CSS variables by their number.

    `data` is what the page's script reads, `variables` more colours, in the light and in the dark, and `filters` and
    `values` what the template uses.
    """
    script = (PARTS / "page.js").read_text(encoding="utf-8")
    vega = vega_script()
    return (
        _environment(filters or {})
        .get_template(template)
        .render(
            title=title,
            variables={**PAGE_COLOURS, **_colours(names), **(variables or {})},
            names=list(names),
            data=as_data({"names": [*names], **data, "config": CONFIG, "swatches": [swatch(name) for name in names]}),
            vega=Markup(vega),  # noqa: S704 # Vega's own, which vl-convert brings
            script=Markup(script),  # noqa: S704 # our own file
            hashes=[_hash(vega), _hash(script)],
            **values,
        )
    )


@functools.cache
def vega_script() -> str:
    """Return the JavaScript of Vega, Vega-Lite and Vega-Embed; it takes some seconds to put together, once."""
    version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    # its stub doesn't know that the snippet has a default, which is what we want
    return str(vl_convert.javascript_bundle(vl_version=version))  # type: ignore[call-arg]


def write(path: Path, text: str) -> Path:
    """Write a page, at once or not at all, and return its file; raises WrongRequest if it can't be written."""
    try:
        atomic.replace(path, text)
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


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _colours(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the CSS variables of implementations, with their colours in the light and in the dark."""
    colours = [style(name).colour for name in names]
    return {variable(number)[6:-1]: (each, in_the_dark(each)) for number, each in enumerate(colours)}


def _environment(filters: Mapping[str, Callable[..., Any]]) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(PARTS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment


def by_case(records: Iterable[Record]) -> dict[Case, list[Record]]:
    """Return the records that are ok, by their case."""
    found: dict[Case, list[Record]] = {}
    for record in records:
        if record.status == "ok":
            found.setdefault(record.case, []).append(record)
    return found


def samples(records: Mapping[int, tuple[float, Sequence[Record]]]) -> tuple[dict[int, Any], int]:
    """Return the samples of cases, and of how many samples one is in the page.

    `records` has for each case its latency in seconds and its records. A process is its number, its first round, its
    samples, the places of those that were disturbed, and the median as a ratio and in words. A list of rounds replaces
    the first if rounds are missing.
    """
    total = sum(len(record.samples.rounds) for _, own in records.values() for record in own)
    every = -(-total // MOST_SAMPLES) or 1
    return {
        number: [_process(record, latency_s, every) for record in own]
        for number, (latency_s, own) in records.items()
        if own
    }, every


def _process(record: Record, latency_s: float, every: int) -> list[Any]:
    rounds = record.samples.rounds[::every]
    values = [round(STEPS * value / latency_s) for value in record.samples.values_s[::every]]
    disturbed = [place for place, is_flagged in enumerate([*flagged(record)][::every]) if is_flagged]
    median = statistics.median(values) if values else 0
    text = units.seconds(median / STEPS * latency_s)
    follow = rounds == tuple(range(rounds[0], rounds[0] + len(rounds))) if rounds else True
    return [record.process, (rounds[0] if rounds else 0) if follow else list(rounds), values, disturbed, median, text]
