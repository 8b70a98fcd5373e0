"""The page of a run: the answer, its points, pictures, profiles, and a sortable, filterable table of all rows."""

import base64
import hashlib
import shlex
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from jinja2 import Environment as Templates
from jinja2 import FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.flags import flags, legend
from bench.analyse.rows import Row, measured
from bench.plan.errors import WrongRequest
from bench.plan.invocation import COMMAND, short, without_options
from bench.show import across, answer, doubts, failures, summary
from bench.show import profile as show
from bench.show.blocks import QUIET, WARNING, Block, Code, Lines, Table, definitions
from bench.show.charts import catalogue
from bench.show.charts.sheet import Picture
from bench.show.charts.stages import by_point
from bench.show.columns import of_page
from bench.show.rows import against_data_sheets, gpu_state
from bench.store import files, units
from bench.store.environment import VARIABLES, Environment
from bench.store.table import RESULTS

PARTS = Path(__file__).parent / "parts"

METHOD = (
    "Each implementation computes the whole layer in its own process, in rounds and random order; its output is "
    "compared with a float64 reference before and after it is timed (docs/method.md).",
    "Ratios are paired within rounds, over several processes; a second copy of the baseline checks their errors "
    "(docs/terms.md).",
    "Peak memory is counted by torch's allocator during one call.",
)
"""The description of how a run is measured."""

MOST_ROWS, MOST_PICTURES, MOST_OPERATORS = 1_500, 24, 15
"""The most rows and pictures of a page, and operators of a profile; the page says if some are left out."""


def write(saved: AnalysedRun) -> Path:
    """Write the page of a run into its folder atomically, and return its file.

    Raises WrongRequest if the run has no rows, or if the file can't be written.
    """
    try:
        files.replace(saved.page, page(saved))
    except OSError as error:
        raise WrongRequest(f"{saved.page} can't be written: {error.strerror}") from None
    return saved.page


def page(saved: AnalysedRun, head: Sequence[Block] = ()) -> str:
    """Return the page of a run; raises WrongRequest if it has no rows.

    It begins with `head` if given, else with the answer.
    """
    points, baseline = answer.points_of(saved.whole, saved.planned), saved.baseline
    rows = [{**row, "label": at.label} for at in points for row in at.rows]
    pictures = [*islice(catalogue.of_results(saved.table), MOST_PICTURES + 1)]
    script = (PARTS / "page.js").read_text(encoding="utf-8")
    templates = Templates(
        loader=FileSystemLoader(PARTS), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters["svg"] = lambda picture: Markup(picture.svg())  # noqa: S704 # Matplotlib escapes texts
    return templates.get_template("page.html").render(
        title=_title(saved),
        head=[*(head or [*summary.answer_blocks(points, baseline), Lines(doubts.sentences(saved.whole), WARNING)]),
            *across.blocks(saved)],
        points=[*summary.point_table(points, baseline, MOST_ROWS), *failures.table(points)],
        pictures=pictures[:MOST_PICTURES],
        below_pictures=[Lines([f"{short()} plot {shlex.quote(saved.folder.name)} draws all others."], QUIET)]
        if len(pictures) > MOST_PICTURES
        else [],
        profiles=[*_profiles(saved, rows)],
        rows=Table(of_page(baseline), rows[:MOST_ROWS]),
        below_rows=_below(rows, saved),
        method=[definitions({fact: str(value) for fact, value in _facts(saved, rows) if value}), *_again(saved),
            Lines(METHOD, is_list=True)],
        script=Markup(script),  # noqa: S704 # our own
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )  # fmt: skip


def _below(rows: Sequence[Row], saved: AnalysedRun) -> list[Block]:
    """Return the meaning of the flags' letters, and where all numbers are."""
    raised = [flag for row in measured(rows) for flag in flags(row)]
    shown = f"These are {MOST_ROWS:,} of {len(rows):,} rows. " if len(rows) > MOST_ROWS else ""
    command = f"{short()} show {shlex.quote(saved.folder.name)}"
    return [
        definitions({flag.letter: flag.meaning for flag in legend(raised)}),
        Lines([f"{shown}All numbers are in {RESULTS}; {command} prints all rows."], QUIET),
    ]


def _profiles(saved: AnalysedRun, rows: Sequence[Row]) -> Iterator[tuple[Picture, list[tuple[str, list[Block]]]]]:
    """Yield the picture of each point with profiles, and the terminal's output for each of its cases."""
    pictures = catalogue.of_profiles(saved.profiles)
    for picture, members in zip(pictures, by_point(saved.profiles).values(), strict=True):
        shown = [show.blocks(each, show.row_of(rows, each.case), MOST_OPERATORS) for each in members]
        names = [each.case.implementation for each in members]
        yield picture, [(name, blocks[1:]) for name, blocks in zip(names, shown, strict=True)]


def _title(saved: AnalysedRun) -> str:
    """Return the sweep and its devices; the name of the folder if the sweep is unknown."""
    name = saved.environment.context.get("sweep") if saved.environment else None
    devices = saved.table["device_name"].dropna().unique()
    return f"Sweep {name} on {' and '.join(map(str, devices))}" if name else saved.folder.resolve().name


def _again(saved: AnalysedRun) -> list[Block]:
    """Return blocks with the command that measures the run again, if it is known."""
    command = _command(saved.environment)
    return [Lines(["To measure this again:"]), Code([command], "sh")] if command else []


def _facts(saved: AnalysedRun, rows: Sequence[Row]) -> Iterator[tuple[str, Any]]:
    """Yield the facts about the machine and the software; values may be empty."""
    yield "run", saved.folder.resolve().name
    for name, column in (("device", "device_name"), ("torch", "torch_version"), ("commit", "commit")):
        yield name, ", ".join(dict.fromkeys(str(row[column]) for row in rows if row[column]))
    yield "rates by the data sheet", "; ".join(against_data_sheets(rows))
    yield "GPU", gpu_state(measured(rows))
    if between := saved.summary.period():
        first, last = between
        end = last.strftime("%H:%M" if last.date() == first.date() else "%Y-%m-%d %H:%M")
        yield "measured", f"{first:%Y-%m-%d %H:%M} to {end} UTC"
    if saved.environment is None:
        return
    identity = saved.environment.identity
    yield "cores", f"{identity.get('cores')} logical, {identity.get('physical_cores')} physical"
    yield "memory", f"{identity.get('memory_gib')} GiB"
    for name in ("system", "python", "blas", "cpu_capability", "cuda", "driver"):
        yield name.replace("_", " "), identity.get(name)
    yield "bfloat16 and float16", saved.environment.context.get("half_precision")
    yield from {**identity.get("wait_policy", {}), **identity.get(VARIABLES, {})}.items()
    yield from saved.environment.runtimes.items()
    before = saved.environment.state.get("preflight") or {}
    if "others_cores" in before:
        yield "other work before the run", f"{before['others_cores']:.1f} cores"
    if "spread" in before:
        yield "speed before the run", f"varied by {units.percent(before['spread'])}"


def _command(environment: Environment | None) -> str:
    """Return the command that measures the run again into a new folder; empty if unknown."""
    words = environment.context.get("command") if environment else None
    if not isinstance(words, list) or not words:
        return ""
    kept = without_options([*map(str, words[1:])], "--run")
    module = short() if words[1:2] in (["run"], ["duel"]) else "python -m pytest"
    return f"{COMMAND if Path(words[0]).name == COMMAND else module} {shlex.join(kept)}"
