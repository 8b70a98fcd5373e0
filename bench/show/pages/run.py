"""The page of a run: it answers first, and can be asked further."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.flags import flags as flags_of
from bench.analyse.flags import legend
from bench.analyse.rows import by
from bench.plan.invocation import COMMAND, short, without_options
from bench.show import answer, doubts, failures, padding
from bench.show.blocks import BAD, GOOD, HEAD, QUIET, WARNING, Block, Cell, Code, Column, Lines, Table, definitions
from bench.show.columns import latency_text, memory_text, of_any, of_page
from bench.show.pages import run_data, shell
from bench.show.pages.profiles import PAGE as PROFILES
from bench.show.pages.run_data import Shown, View, view_of
from bench.show.rows import Row, against_data_sheets, gpu_state, measured, plain
from bench.show.summary import WHAT_BOUNDS_SAY, for_programs
from bench.show.text import counted, shared, symbols
from bench.store import units
from bench.store.environment import VARIABLES, Environment
from bench.store.table import RESULTS

WHAT_A_POINT_SAYS = (
    WHAT_BOUNDS_SAY,
    "Of several that are shown to be within 2 % of the fastest, the simplest is named: one that is not compiled, then "
    "the one with less memory. Brackets are intervals of 99 % too. ± is the 95 % interval of a latency; it is wide "
    "because the machine's speed changes all times of a point alike, which cancels in ratios.",
)
"""What the columns of the table of points say."""

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


def write(saved: AnalysedRun) -> Path:
    """Write the page of a run into its folder, and return its file.

    Raises WrongRequest if the run has no rows, or if the file can't be written.
    """
    return shell.write(saved.page, page(saved))


def page(saved: AnalysedRun, head: Sequence[Block] = ()) -> str:
    """Return the page of a run, a merged one with each of its machines; raises WrongRequest if it has no rows.

    What it says first is `head`, if that is given, else what to use.
    """
    view = view_of(saved)
    columns = of_page(view.rows, view.baseline)
    cells = [
        [Cell(view.shown[row["number"]].at.label), *(of_any(column, row) for column in columns[1:])]
        for row in view.rows
    ]
    flags = [flag for row in measured(view.rows) for flag in flags_of(row)]
    return shell.render(
        "results.html",
        _title(saved.folder, view),
        view.names,
        run_data.data(view),
        head=[*(head or _answers(view)), *_verdicts(view), Lines(_left_out(view, saved), WARNING), _note(view)],
        figures=run_data.figures(view),
        before={"Point by point": [_points(view), Lines(WHAT_A_POINT_SAYS, QUIET)]},
        table_title="All cases",
        table={"columns": columns, "cells": cells},
        below_table=[
            definitions({flag.letter: "; ".join(filter(None, (flag.meaning, flag.advice))) for flag in legend(flags)}),
            Lines([f"All numbers are in {RESULTS}, in the run's folder."]),
        ],
        after={"Where it was measured": [*_places(view)], "How it was measured": [Lines(METHOD, is_list=True)]},
        profiles=PROFILES if (saved.folder / PROFILES).exists() else "",
    )


def _answers(view: View) -> Iterator[Lines]:
    """Yield the sentences of the answer on each machine, first those that name what to use, also of a lost baseline.

    Of several kinds of devices, each has one answer.
    """
    first, further = [], []
    for name, points in view.points.items():
        told = answer.answers(points, view.baseline)
        told[0] = [*failures.of_baseline([at.rows for at in points], view.baseline), *told[0]]
        said = told if len(told) == 1 else [[" ".join(of)] for of in told]
        first += [view.of(name, of[0]) for of in said]
        sentences = [*(sentence for of in said for sentence in of[1:]), *padding.words(points)]
        further += [view.of(name, sentence) for sentence in sentences]
    yield from (Lines([sentence], HEAD) for sentence in first)
    yield Lines(further, is_list=True)


def _title(folder: Path, view: View) -> str:
    """Return the sweep and where it ran; the name of the folder if the sweep isn't known."""
    contexts = [run.environment.context for run in view.machines.values() if run.environment]
    name = next((context["sweep"] for context in contexts if "sweep" in context), None)
    return f"Sweep {name} on {' and '.join(view.machines)}" if name else folder.resolve().name


def _verdicts(view: View) -> Iterator[Lines]:
    """Yield what else is said of each machine before the charts; sentences that judge are good or bad."""
    for name, run in view.machines.items():
        commands = [view.of(name, sentence) for sentence in for_programs(run.choices, run.folder)]
        yield Lines(commands, is_list=True)
    for name, points in view.points.items():
        tone = BAD if any(at.failed or at.waits for at in points) else GOOD
        yield Lines([view.of(name, failures.sentence(points))], tone, is_list=True)
    for name, run in view.machines.items():
        is_quiet, sentence = doubts.machine(run.whole)
        yield Lines([view.of(name, sentence)], GOOD if is_quiet else BAD, is_list=True)


def _left_out(view: View, saved: AnalysedRun) -> list[str]:
    """Return which machines and points the page leaves out."""
    shown, points = len(view.shown), sum(bool(at.rows) for of in view.points.values() for at in of)
    if shown == points:
        return [*view.refused]
    where = f"the {RESULTS} of each machine's folder" if view.several else RESULTS
    return [
        *view.refused,
        f"This page shows the first {shown:,} of {points:,} points. The sentences above count all of them. "
        f"All rows are in {where}; {short()} show {shlex.quote(saved.folder.name)} prints them.",
    ]


def _note(view: View) -> Lines:
    """Return what all points share, with the number of processes of each measured case, and what symbols mean."""
    points = [each.at.point for each in view.shown]
    numbers = [row["processes"] for run in view.machines.values() for row in plain(run.table) if row["status"] == "ok"]
    processes = counted([int(number) for number in numbers if number is not None], "process", "processes")
    return Lines([shared(points) + (f" · {processes} for each case" if processes else ""), symbols(points)], QUIET)


def _points(view: View) -> Table:
    """Return a line for each point: what to use in words, then its speed-up, latency and memory."""

    def of_first(text: Callable[[Row], str]) -> Callable[[Shown], str]:
        return lambda shown: text(shown.at.first) if shown.at.first else ""

    columns = [
        Column("point", lambda shown: shown.at.label),
        Column("what to use, and what it can cost", lambda shown: answer.words(shown.at.choice)),
        Column(f"its speed-up over {view.baseline or 'the baseline'}",
            lambda shown: answer.speedup_cell(shown.at.first, view.baseline)),
        Column("its latency", of_first(latency_text)),
        Column("its peak memory", of_first(memory_text)),
        Column("cases without a time", _without_time),
    ]  # fmt: skip
    return Table(columns, view.shown)


def _without_time(shown: Shown) -> str:
    failed = by([row for row in shown.at.rows if row["status"] != "ok"], "status").items()
    return "; ".join(f"{status}: {', '.join(row['implementation'] for row in of)}" for status, of in failed)


def _places(view: View) -> Iterator[Block]:
    """Yield what is known of each machine, and the command that measures the run again."""
    for name, run in view.machines.items():
        yield Lines([name] if view.several else [])
        yield definitions({fact: str(value) for fact, value in _facts(run) if value})
    if not view.several and (command := _command(view.first.environment)):
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
