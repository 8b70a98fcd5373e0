"""`compare --rerun`: the rows that a comparison leaves in dispute, measured again with both sides in one run.

Each side has the interpreter that its run was measured with. The new times of a row are measured alternately, so they
are compared directly, without a baseline.
"""

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from bench.analyse.comparison.confounders import speed_change
from bench.analyse.duel import Row
from bench.commands.duel import add_looks, interpreter, planned, run_duel
from bench.engine.two_environments import Pair
from bench.harness import options
from bench.plan.case import Case, Point
from bench.plan.errors import NotComparable, WrongRequest
from bench.plan.sweep import Effort, Sweep
from bench.show.comparison import notes
from bench.show.comparison.report import Report
from bench.show.terminal.duel import UNMEASURED
from bench.stats.limits import CHANGED, INCONCLUSIVE, Limits
from bench.store.comparable import unlike_conditions
from bench.store.environment import differences
from bench.store.saved_run import SavedRun
from bench.store.table import cases

SIDES = ("BASE", "NEW")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a rerun."""
    add_option = parser.add_argument
    add_option("--rerun", action="store_true", help="measure rows in dispute again, both sides alternately")
    add_option(
        "--python",
        metavar="PATH",
        action="append",
        default=[],
        help="for --rerun: the interpreter that BASE was measured with, and a second time for NEW",
    )
    options.add_run(add_option, "<UTC time>-rerun")
    add_looks(add_option)


def check(arguments: argparse.Namespace) -> None:
    """Raise WrongRequest if a rerun is not possible as asked for."""
    if not arguments.rerun:
        if arguments.python:
            raise WrongRequest("--python goes with --rerun: it names the interpreters that measure again")
        return
    planned(arguments.looks)
    if len(arguments.python) != len(SIDES):
        raise WrongRequest(
            f"--rerun takes --python twice, for BASE and for NEW (twice the same if both were measured with it), "
            f"got {len(arguments.python)}"
        )
    first, second = map(interpreter, arguments.python)
    commits = [set(saved.table["commit"].dropna()) for saved in (arguments.base, arguments.new)]
    if first == second and commits[0] != commits[1] and not unlike_conditions(arguments.base, arguments.new):
        base, new = (", ".join(sorted(of)) or "unknown" for of in commits)
        raise WrongRequest(
            f"BASE and NEW differ in their commit ({base} against {new}), and --rerun measures both sides with the "
            "code that is here: it would compare NEW with itself; expected two interpreters that differ"
        )


def settled(report: Report, arguments: argparse.Namespace) -> Report:
    """Return the report with the rows in dispute measured again.

    Raises NotComparable if an interpreter is not the one of its run, unless `--force` is given.
    """
    disputed = _disputed(report.comparison)
    if not disputed:
        return dataclasses.replace(report, notes=(*report.notes, notes.NOTHING_IN_DISPUTE))
    folder = options.run_folder(arguments, "rerun")
    # all implementations together get the level of one table
    limits = dataclasses.replace(report.limits, level=report.limits.level / len(disputed))
    rows_by_case: dict[Case, Row] = {}
    for implementation, points in disputed.items():
        rows = _measured(arguments, implementation, points, folder / implementation.replace(":", "."), limits)
        rows_by_case |= {Case(row.point, implementation): row for row in rows}
    became = [row.judgement.verdict if row.is_measured else UNMEASURED for row in rows_by_case.values()]
    about = notes.rerun(became, folder)
    return dataclasses.replace(report, comparison=_with(report.comparison, rows_by_case), notes=(*report.notes, about))


def _disputed(comparison: pd.DataFrame) -> dict[str, list[Point]]:
    """Return the points of the rows in dispute by implementation.

    They are the inconclusive rows, and also the changed ones if the machine ran at another speed.
    """
    verdicts = (INCONCLUSIVE, *CHANGED) if speed_change(comparison) else (INCONCLUSIVE,)
    points: dict[str, list[Point]] = {}
    for case in cases(comparison[comparison["verdict"].isin(verdicts)]):
        points.setdefault(case.implementation, []).append(case.point)
    return points


def _measured(
    arguments: argparse.Namespace, implementation: str, points: Sequence[Point], folder: Path, limits: Limits
) -> list[Row]:
    looks = planned(arguments.looks)
    effort = _effort(arguments.new, looks[-1])
    sweep = Sweep("rerun", tuple(points), (implementation,), implementation, effort)
    first, second = map(interpreter, arguments.python)
    with Pair(sweep, folder, (first, second)) as pair:
        if not arguments.force:
            _check_sides(pair, arguments)
        return run_duel(pair, looks, limits)


def _effort(new: SavedRun, processes: int) -> Effort:
    """Return the effort of a rerun: each process has the budget that it had in NEW's run."""
    before = new.effort or Effort()
    budget_s = before.budget_s / before.processes * processes
    return dataclasses.replace(
        before, processes=processes, budget_s=budget_s, race=False, within_s=None, check_memory=False
    )


def _check_sides(pair: Pair, arguments: argparse.Namespace) -> None:
    runs = (arguments.base, arguments.new)
    for side, saved, python, here in zip(SIDES, runs, arguments.python, pair.environments, strict=True):
        if saved.environment and (unlike := differences(saved.environment, here)):
            raise NotComparable(
                f"--python {python} is not what {side} was measured with: {'; '.join(unlike)}; "
                "--force measures it all the same"
            )


def _with(comparison: pd.DataFrame, rows_by_case: Mapping[Case, Row]) -> pd.DataFrame:
    """Return the comparison with the new rows, marked in the column `rerun`, in place of those in dispute.

    A row that could not be measured again stays as it was.
    """
    merged = comparison.assign(rerun=False)
    for place, case in zip(comparison.index, cases(comparison), strict=True):
        row = rows_by_case.get(case)
        if row is not None and row.is_measured:
            values = _columns(row)
            merged.loc[place, list(values)] = pd.Series(values, dtype=object)
    return merged


def _columns(row: Row) -> dict[str, object]:
    judged = row.judgement
    base_s, new_s = row.latencies_s
    unknown = dict.fromkeys(("p", "p_holm"), pd.NA)
    return {
        "change": judged.ratio,
        "change_low": pd.NA if np.isnan(judged.low) else judged.low,
        "change_high": pd.NA if np.isnan(judged.high) else judged.high,
        "verdict": judged.verdict,
        "base_latency_s": base_s,
        "new_latency_s": new_s,
        "base_processes": judged.processes,
        "new_processes": judged.processes,
        "rerun": True,
        **unknown,
    }
