"""The page of a run: it answers first, and can be asked further."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.flags import flags as flags_of
from bench.analyse.flags import legend
from bench.analyse.rows import by
from bench.plan.invocation import COMMAND, short, without_options
from bench.show import answer, doubts, failures
from bench.show.answer import At
from bench.show.blocks import Block, Cell
from bench.show.columns import latency_text, memory_text, of_any, of_page
from bench.show.pages import run_data, shell
from bench.show.pages.profiles import PAGE as PROFILES
from bench.show.pages.run_data import Shown, View, view_of
from bench.show.rows import against_data_sheets, gpu_state, measured, plain
from bench.show.summary import for_programs
from bench.show.text import counted, shared, symbols
from bench.store import units
from bench.store.environment import VARIABLES, Environment
from bench.store.table import RESULTS, as_csv

MOST_CSV_BYTES = 1_000_000
"""The largest packed results.csv that a page carries."""


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
    answers = {name: _answers(points, view.baseline) for name, points in view.points.items()}
    columns = of_page(view.rows, view.baseline)
    cells = [
        [Cell(view.shown[row["number"]].label), *(of_any(column, row) for column in columns[1:])] for row in view.rows
    ]
    return shell.render(
        "run.html",
        _title(saved.folder, view),
        view.names,
        run_data.data(view),
        figures=run_data.figures(view),
        baseline=view.baseline,
        head=head,
        answers=[] if head else [view.of(name, of[0]) for name, every in answers.items() for of in every],
        verdicts=[*(("", view.of(name, sentence)) for name, every in answers.items() for of in every
            for sentence in of[1:] if not head),
            *_verdicts(view)],
        left_out=" ".join([*view.refused, *_left_out(view, saved)]),
        note=_note(view),
        points=[_line(each, view.baseline) for each in view.shown],
        table={"columns": columns, "cells": cells},
        letters=legend([flag for row in measured(view.rows) for flag in flags_of(row)]),
        csv=_csv(view),
        profiles=PROFILES if (saved.folder / PROFILES).exists() else "",
        places=[(name if view.several else "", list(_facts(run))) for name, run in view.machines.items()],
        command="" if view.several else _command(view.first.environment),
        documents={name: shell.document(f"{name}.md", saved.folder) for name in ("method", "terms", "comparing")},
    )  # fmt: skip


def _answers(points: Sequence[At], baseline: str | None) -> list[list[str]]:
    """Return the sentences of the answer, of several kinds of devices those of each; a lost baseline is said first."""
    first, *others = answer.answers(points, baseline)
    first = [*failures.of_baseline([at.rows for at in points], baseline), *first]
    return [[" ".join(of)] for of in (first, *others)] if others else [first]


def _title(folder: Path, view: View) -> str:
    """Return the sweep and where it ran; the name of the folder if the sweep isn't known."""
    contexts = [run.environment.context for run in view.machines.values() if run.environment]
    name = next((context["sweep"] for context in contexts if "sweep" in context), None)
    return f"Sweep {name} on {' and '.join(view.machines)}" if name else folder.resolve().name


def _verdicts(view: View) -> Iterator[tuple[str, str]]:
    """Yield what else is said of each machine before the charts; sentences that judge are `good` or `bad`."""
    for name, run in view.machines.items():
        yield from (("", view.of(name, sentence)) for sentence in for_programs(run.choices, run.folder))
    for name, points in view.points.items():
        yield (
            "bad" if any(at.failed or at.waits for at in points) else "good",
            view.of(name, failures.sentence(points)),
        )
    for name, run in view.machines.items():
        is_quiet, sentence = doubts.machine(run.whole)
        yield "good" if is_quiet else "bad", view.of(name, sentence)


def _left_out(view: View, saved: AnalysedRun) -> list[str]:
    shown, points = len(view.shown), sum(bool(at.rows) for of in view.points.values() for at in of)
    if shown == points:
        return []
    where = f"the {RESULTS} of each machine's folder" if view.several else RESULTS
    return [
        f"This page shows the first {shown:,} of {points:,} points. The sentences above count all of them. "
        f"All rows are in {where}; {short()} show {shlex.quote(saved.folder.name)} prints them."
    ]


def _note(view: View) -> tuple[str, str]:
    """Return what all points share, with the number of processes of each measured case, and what symbols mean."""
    points = [each.at.point for each in view.shown]
    numbers = [row["processes"] for run in view.machines.values() for row in plain(run.table) if row["status"] == "ok"]
    processes = counted([int(number) for number in numbers if number is not None], "process", "processes")
    return shared(points) + (f" · {processes} for each case" if processes else ""), symbols(points)


def _line(shown: Shown, baseline: str | None) -> dict[str, str]:
    """Return a point in one line: what to use in words, then its speed-up, latency and memory."""
    first = shown.at.first
    failed = by([row for row in shown.at.rows if row["status"] != "ok"], "status").items()
    return {
        "label": shown.label,
        "words": answer.words(shown.at.choice),
        "speedup": answer.speedup_cell(first, baseline),
        "latency": latency_text(first) if first else "",
        "memory": memory_text(first) if first else "",
        "failed": "; ".join(f"{status}: {', '.join(row['implementation'] for row in of)}" for status, of in failed),
    }


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


def _csv(view: View) -> str:
    """Return the packed results of all machines; empty if they are too large for a page."""
    whole = pd.concat([run.whole for run in view.machines.values()])
    packed = shell.packed(as_csv(whole).decode())
    return packed if len(packed) <= MOST_CSV_BYTES else ""
