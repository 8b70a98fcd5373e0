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

from bench.analyse.comparable import speed_change, unlike_conditions
from bench.commands.duel import interpreter, run_duel
from bench.engine.two_environments import Pair
from bench.harness import options
from bench.plan.case import Case, Point
from bench.plan.errors import NotComparable, WrongRequest
from bench.plan.sweep import Effort, Sweep, altered
from bench.show.answer import At
from bench.show.comparison import notes
from bench.show.comparison.report import Report
from bench.show.duel import UNMEASURED
from bench.stats.best import ABOVE
from bench.stats.estimates import CONFIDENCE, of_ratios, ratios
from bench.stats.limits import CHANGED, INCONCLUSIVE, Limits, holm, judged
from bench.store.environment import differences
from bench.store.plan import WISHES
from bench.store.table import cases

SIDES = ("BASE", "NEW")

PROCESSES = 5
"""The processes of each side before the first look: two or three can hardly show a change beyond the margin."""

SHARE = ABOVE / (1 - CONFIDENCE)
"""The part of its level that a test takes after a race: that of the race's own upper bounds."""


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
    options.add_race(add_option)


def check(arguments: argparse.Namespace) -> None:
    """Raise WrongRequest if a rerun is not possible as asked for."""
    if not arguments.rerun:
        if arguments.python:
            raise WrongRequest("--python goes with --rerun: it names the interpreters that measure again")
        return
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
    sweeps = _sweeps(disputed, arguments, report.limits.bound)
    folder = options.run_folder(arguments, "rerun")
    measured = {
        Case(at.point, *sweep.implementations): at for sweep in sweeps for at in _measured(arguments, sweep, folder)
    }
    rows = _judged(measured, report.limits)
    became = [str(rows[case]["verdict"]) if case in rows else UNMEASURED for case in measured]
    about = notes.rerun(became, folder)
    return dataclasses.replace(report, comparison=_with(report.comparison, rows), notes=(*report.notes, about))


def _disputed(comparison: pd.DataFrame) -> dict[str, list[Point]]:
    """Return the points of the rows in dispute by implementation.

    They are the inconclusive rows, and also the changed ones if the machine ran at another speed.
    """
    verdicts = (INCONCLUSIVE, *CHANGED) if speed_change(comparison) else (INCONCLUSIVE,)
    points: dict[str, list[Point]] = {}
    for case in cases(comparison[comparison["verdict"].isin(verdicts)]):
        points.setdefault(case.implementation, []).append(case.point)
    return points


def _sweeps(disputed: Mapping[str, Sequence[Point]], arguments: argparse.Namespace, bound: float) -> list[Sweep]:
    """Return the race of each implementation; `--within` is the time of all, and each has its share by its points.

    Each process has the seconds for its rounds that it had in NEW's run. Raises WrongRequest for impossible values.
    """
    asked = {"bound": bound, **options.effort(arguments, WISHES)}
    before, rows = arguments.new.effort or Effort(), sum(map(len, disputed.values()))
    effort = Effort(
        PROCESSES,
        before.budget_s / before.processes * PROCESSES,
        timeout_s=before.timeout_s,
        oversubscribe=before.oversubscribe,
    )
    sweeps = []
    for name, points in disputed.items():
        within = {"within_s": asked["within_s"] * len(points) / rows} if "within_s" in asked else {}
        sweep = Sweep("rerun", tuple(points), (name,), name, effort)
        sweeps.append(altered(sweep, (), {"race": True, **asked, **within}))
    return sweeps


def _measured(arguments: argparse.Namespace, sweep: Sweep, folder: Path) -> list[At]:
    first, second = map(interpreter, arguments.python)
    with Pair(sweep, folder / sweep.baseline.replace(":", "."), (first, second)) as pair:
        if not arguments.force:
            _check_sides(pair, arguments)
        return run_duel(pair)


def _check_sides(pair: Pair, arguments: argparse.Namespace) -> None:
    runs = (arguments.base, arguments.new)
    for side, saved, python, here in zip(SIDES, runs, arguments.python, pair.environments, strict=True):
        if saved.environment and (unlike := differences(saved.environment, here)):
            raise NotComparable(
                f"--python {python} is not what {side} was measured with: {'; '.join(unlike)}; "
                "--force measures it all the same"
            )


def _judged(measured: Mapping[Case, At], limits: Limits) -> dict[Case, dict[str, object]]:
    """Return the columns of the rows that could be measured, all judged together at the end of their races.

    Holm's correction is taken over these rows. A race may stop because of what its rows seem to show, so each test has
    only SHARE of its level; an interval is that of a row by itself, with 95 %.
    """
    sides = {case: (a, b) for case, at in measured.items() if (a := at.row("A")) and (b := at.row("B"))}
    ends = ("speedup", "speedup_low", "speedup_high", "log_ratio_freedom")
    changes = of_ratios(*(np.array([b[name] for _, b in sides.values()], dtype=np.float64) for name in ends))
    p = limits.p_changed(changes)
    p_holm = holm(p)
    verdicts = judged(changes, p_holm < SHARE * limits.level, limits, share=SHARE)
    numbers = {
        "p": p,
        "p_holm": p_holm,
        **dict(zip(("change", "change_low", "change_high"), ratios(changes), strict=True)),
    }
    return {
        case: {
            **{name: pd.NA if np.isnan(column[row]) else column[row] for name, column in numbers.items()},
            "verdict": str(verdicts[row]),
            **{
                f"{side}_{name}": of[name]
                for side, of in (("base", a), ("new", b))
                for name in ("latency_s", "processes")
            },
            "rerun": True,
        }
        for row, (case, (a, b)) in enumerate(sides.items())
    }


def _with(comparison: pd.DataFrame, rows: Mapping[Case, Mapping[str, object]]) -> pd.DataFrame:
    """Return the comparison with the new rows, marked in the column `rerun`, in place of those in dispute.

    A row that could not be measured again stays as it was.
    """
    merged = comparison.assign(rerun=False)
    for place, case in zip(comparison.index, cases(comparison), strict=True):
        if values := rows.get(case):
            merged.loc[place, list(values)] = pd.Series(values, dtype=object)
    return merged
