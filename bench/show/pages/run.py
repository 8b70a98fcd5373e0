"""The page of a run: it answers first, and can be asked further."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.flags import flags as flags_of
from bench.analyse.flags import legend
from bench.analyse.standing import by_rank
from bench.plan.invocation import COMMAND, short, without_options
from bench.show import answer, doubts, failures, summary
from bench.show.answer import At
from bench.show.blocks import QUIET, WARNING, Block, Cell, Code, Lines, definitions
from bench.show.charts import catalogue
from bench.show.columns import complete, of_any, of_page
from bench.show.pages import shell
from bench.show.pages.profiles import PAGE as PROFILES
from bench.show.rows import Row, against_data_sheets, gpu_state, measured, plain, process_count, unmeasured
from bench.show.text import shared, symbols
from bench.store import units
from bench.store.environment import VARIABLES, Environment
from bench.store.table import RESULTS

METHOD = (
    "Every implementation computes the whole layer in a process of its own, and its output is compared with a float64 "
    "reference before it is timed (docs/method.md).",
    "In a round each implementation takes one sample, in random order, so a disturbance meets all of them alike.",
    "A speed-up is paired within rounds, in several processes, because two processes of the same program differ "
    "(docs/terms.md).",
    "The errors of all rows come from one model of the run: rounds and processes both count, and each point lends from "
    "the others. A second copy of the baseline checks them.",
    "What a choice can cost at most is its slowdown's upper bound against the fastest of the point.",
    "Peak memory is counted by torch's allocator during one call; it is exact and needs no interval "
    "(docs/comparing.md).",
)
"""How a run is measured."""


MOST_CASES = 1_500
"""The most cases in the table of a page; of more it has the first, and says so."""


def write(saved: AnalysedRun) -> Path:
    """Write the page of a run into its folder, and return its file.

    Raises WrongRequest if the run has no rows, or if the file can't be written.
    """
    return shell.write(saved.page, page(saved))


def page(saved: AnalysedRun, head: Sequence[Block] = ()) -> str:
    """Return the page of a run; raises WrongRequest if it has no rows.

    What it says first is `head`, if that is given, else what to use.
    """
    points, baseline = answer.points_of(saved.whole, saved.planned), saved.baseline
    rows = [row for at in points for row in _rows(at, baseline)]
    columns, shown = of_page(rows, baseline), rows[:MOST_CASES]
    cells = [[Cell(row["label"]), *(of_any(column, row) for column in columns[1:])] for row in shown]
    flags = [flag for row in measured(rows) for flag in flags_of(row)]
    left_out = [_left_out(len(shown), len(rows), saved)] if len(shown) < len(rows) else []
    return shell.render(
        "results.html",
        _title(saved),
        head=[*(head or summary.answer_blocks(points, baseline)), *failures.table(points),
            Lines(doubts.sentences(saved.whole), WARNING), Lines(left_out, WARNING), _note(points, rows)],
        before={"Point by point": summary.point_table(points, baseline, MOST_CASES)},
        pictures=catalogue.of_results(saved.table),
        table_title="All cases",
        table={"columns": columns, "cells": cells},
        below_table=[
            definitions({flag.letter: "; ".join(filter(None, (flag.meaning, flag.advice))) for flag in legend(flags)}),
            Lines([f"All numbers are in {RESULTS}, in the run's folder."]),
        ],
        after={"Where it was measured": [*_place(saved)], "How it was measured": [Lines(METHOD, is_list=True)]},
        profiles=PROFILES if (saved.folder / PROFILES).exists() else "",
    )  # fmt: skip


def _rows(at: At, baseline: str | None) -> list[Row]:
    """Return the rows of a point with its name, the one to use first, failures last."""
    complete(at.rows, baseline)
    return [{**row, "label": at.label} for row in (*by_rank(measured(at.rows)), *unmeasured(at.rows))]


def _title(saved: AnalysedRun) -> str:
    """Return the sweep and where it ran; the name of the folder if the sweep isn't known."""
    name = saved.environment.context.get("sweep") if saved.environment else None
    devices = saved.table["device_name"].dropna().unique()
    return f"Sweep {name} on {' and '.join(map(str, devices))}" if name else saved.folder.resolve().name


def _left_out(shown: int, number: int, saved: AnalysedRun) -> str:
    """Return that the table of the page has some of all cases alone."""
    return (
        f"The table below has the first {shown:,} of {number:,} cases. All are in {RESULTS}; "
        f"{short()} show {shlex.quote(saved.folder.name)} prints them."
    )


def _note(points: Sequence[At], rows: Sequence[Row]) -> Lines:
    """Return what all points share, with the number of processes of each measured case, and what symbols mean."""
    every = [at.point for at in points if at.rows]
    processes = process_count(measured(rows))
    return Lines([shared(every) + (f" · {processes} for each case" if processes else ""), symbols(every)], QUIET)


def _place(saved: AnalysedRun) -> Iterator[Block]:
    """Yield what is known of the machine, and the command that measures the run again."""
    yield definitions({fact: str(value) for fact, value in _facts(saved) if value})
    if command := _command(saved.environment):
        yield Lines(["To measure this again:"])
        yield Code([command], "sh")


def _facts(saved: AnalysedRun) -> Iterator[tuple[str, Any]]:
    """Yield what is known of the machine and the software, and empty values."""
    rows = plain(saved.table)
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
    yield from {**identity.get("wait_policy", {}), **identity.get(VARIABLES, {})}.items()
    yield from saved.environment.runtimes.items()
    before = saved.environment.state.get("preflight") or {}
    if "others_cores" in before:
        yield "other work before the run", f"{before['others_cores']:.1f} cores"
    if "spread" in before:
        yield "speed before the run", f"varied by {units.percent(before['spread'])}"


def _command(environment: Environment | None) -> str:
    """Return the command that measures the run again, into a new folder; empty if it isn't known."""
    words = environment.context.get("command") if environment else None
    if not isinstance(words, list) or not words:
        return ""
    kept = without_options([*map(str, words[1:])], "--run")
    module = short() if words[1:2] in (["run"], ["duel"]) else "python -m pytest"
    return f"{COMMAND if Path(words[0]).name == COMMAND else module} {shlex.join(kept)}"
