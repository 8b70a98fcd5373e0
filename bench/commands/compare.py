"""Compare two runs by their ratios to the baseline."""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from bench.analyse.comparable import common_shift, speed_change, state_differences, unlike_conditions, unmatched
from bench.analyse.comparison import (
    REGRESSIONS,
    VERDICTS,
    common_implementations,
    compare,
    differences,
    hyphened,
    is_compared,
    named,
    regressed,
)
from bench.analyse.summary import summarise
from bench.commands import BAD, FINE, compare_rerun, say
from bench.machine.facts import between_run_scatter, detectable
from bench.plan.case import CONTROL
from bench.plan.errors import NotComparable, WrongRequest, unknown
from bench.show.comparison import notes
from bench.show.comparison.blocks import blocks
from bench.show.comparison.data import as_csv, as_json
from bench.show.comparison.report import ONE_SIDED, Report, headline
from bench.show.control_text import warning
from bench.show.markdown import markdown
from bench.show.point_text import counted
from bench.show.terminal.blocks import render
from bench.show.terminal.console import console, rendered
from bench.stats.limits import MARGIN, Limits
from bench.stats.occasions import Between
from bench.store import journal, machines
from bench.store.record import Record
from bench.store.saved_run import SavedRun

Results = tuple[pd.DataFrame, pd.DataFrame]
"""The tables of BASE and NEW."""

FAIL_ON = ",".join(map(hyphened, REGRESSIONS))
TERMINAL = "terminal"
TEXTS: Mapping[str, Callable[[Report], str]] = {
    "markdown": lambda report: markdown(blocks(report), report.mark),
    "csv": as_csv,
    "json": as_json,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("base", metavar="BASE", type=SavedRun, help="a run folder or a results.csv")
    parser.add_argument("new", metavar="NEW", type=SavedRun, help="a run folder or a results.csv")
    parser.add_argument(
        "--margin",
        metavar="SHARE",
        type=float,
        default=MARGIN,
        help=f"a change up to this share is not acted on (default: {MARGIN})",
    )
    parser.add_argument(
        "--baseline",
        metavar="IMPLEMENTATION",
        default="",
        help="take ratios to this implementation, if the baseline itself changed (default: the baseline of the runs)",
    )
    parser.add_argument(
        "--fail-on",
        metavar="VERDICT,…",
        default=FAIL_ON,
        help=f"end with status 1 if a row has one of these: {', '.join(map(hyphened, VERDICTS))} (default: {FAIL_ON})",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="compare runs of different conditions all the same; every line is stamped",
    )
    parser.add_argument("--all", action="store_true", help="list every row, not only what changed")
    parser.add_argument("--format", choices=[TERMINAL, *TEXTS], default=TERMINAL, help="(default: terminal)")
    parser.add_argument("--to", metavar="FILE", type=Path, help="write into this file (default: standard output)")
    parser.add_argument("--plot", metavar="FILE.png", type=Path, help="draw all judged rows with their intervals")
    parser.add_argument("--report", metavar="FILE.html", type=Path, help="write the page of the comparison")
    compare_rerun.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compare two runs; BAD if a row has a verdict of `--fail-on`."""
    failing = named(arguments.fail_on)
    if arguments.plot:
        from bench.show.charts import catalogue  # slow to import

        catalogue.check_name(arguments.plot)
    pairs = _machines(arguments)
    if pairs is not None:
        return _each(arguments, pairs)
    compare_rerun.check(arguments)
    report = _report(arguments)
    if arguments.rerun:
        report = compare_rerun.settled(report, arguments)
    _put(report, arguments)
    if arguments.plot:
        from bench.show.charts import catalogue

        if not catalogue.draw_comparison(report, arguments.plot):
            say(f"{_prefix(report)}nothing to draw: no row was judged", stderr=True)
    if arguments.report:
        from bench.show.pages import comparison as web  # slow to import

        web.write(arguments.report, report, arguments.base, arguments.new)
    return BAD if regressed(report.comparison, failing) else FINE


def _machines(arguments: argparse.Namespace) -> dict[str, tuple[SavedRun, SavedRun]] | None:
    """Return the runs of each machine in both, None if both have one machine; raises NotComparable if none is in both.

    A run of one machine is compared with that machine's part of the other.
    """
    sides = [
        {_env_id(run): run for run in machines.runs_of(saved).values()} for saved in (arguments.base, arguments.new)
    ]
    if all(len(side) == 1 for side in sides):
        return None
    base, new = sides
    shared = {env_id: (base[env_id], new[env_id]) for env_id in base if env_id in new}
    if not shared:
        raise NotComparable(f"no machine is in both: BASE has {', '.join(base)}, NEW has {', '.join(new)}")
    return shared


def _env_id(saved: SavedRun) -> str:
    return saved.environment.env_id if saved.environment else "unknown"


def _each(arguments: argparse.Namespace, pairs: Mapping[str, tuple[SavedRun, SavedRun]]) -> int:
    """Compare machine by machine; BAD if one of them has a verdict of `--fail-on`."""
    if arguments.to or arguments.plot or arguments.rerun:
        raise WrongRequest(
            "--to, --plot and --rerun take the runs of one machine, such as the folders inside a merged run"
        )
    worst = FINE
    for env_id, (base, new) in pairs.items():
        name = machines.name_of(new.environment) if new.environment else env_id
        say(f"machine {name}", stderr=arguments.format != TERMINAL)
        arguments.base, arguments.new = base, new
        worst = max(worst, run(arguments))
    return worst


def _report(arguments: argparse.Namespace) -> Report:
    limits, base, new = Limits(arguments.margin), arguments.base, arguments.new
    measured = base.table, new.table
    unlike = unlike_conditions(base, new)
    if unlike and not arguments.force:
        reasons = "; ".join(unlike)
        raise NotComparable(
            f"BASE and NEW were not measured under the same conditions: {reasons}; --force compares them all the same"
        )
    judged = _rebased(base, new, arguments.baseline) if arguments.baseline else measured
    between_runs = [
        {at: Between(*pair) for at, pair in between_run_scatter(run.environment).items()} for run in (base, new)
    ]
    comparison = compare(
        *judged, margin=limits.margin, equivalence=limits.equivalence, level=limits.level, between=between_runs
    )
    if not is_compared(comparison):
        shared = int((~comparison["verdict"].isin(ONE_SIDED)).sum())
        raise NotComparable(
            f"nothing can be compared: BASE and NEW share {counted([shared], 'case', 'cases')}, "
            "none of them with a speed-up on both sides besides the baseline"
        )
    unlike_runs = tuple(filter(None, _unlike_runs(base, new)))
    about = tuple(filter(None, _notes(base, new, arguments.baseline, comparison, differences(*judged))))
    sides = (("BASE", base), ("NEW", new))
    doubts = tuple(f"in {side} {words}" for side, run in sides if (words := warning(run.whole)))
    return Report(
        comparison, limits, arguments.baseline, tuple(unlike), doubts, unlike_runs, about, shows_all=arguments.all
    )


def _rebased(base: SavedRun, new: SavedRun, baseline: str) -> Results:
    """Return the tables of both runs with ratios to this baseline."""
    in_base, in_new = _records(base), _records(new)
    names = common_implementations(in_base, in_new)
    if baseline not in names:
        raise unknown("baseline", baseline, names or ["the shared implementations, of which there are none"])
    return summarise(in_base, baseline), summarise(in_new, baseline)


def _records(saved: SavedRun) -> list[Record]:
    """Return the records of a run's implementations, and print a warning for lines of its journal that don't count."""
    say(*(f"warning: {notice}" for notice in saved.notices), stderr=True)
    if not saved.records:
        raise WrongRequest(
            f"--baseline needs the {journal.JOURNAL} that {saved} was made from, "
            "because ratios are paired anew within rounds; expected a run folder that holds it"
        )
    return [record for record in saved.records if record.case.implementation != CONTROL]


def _unlike_runs(base: SavedRun, new: SavedRun) -> Iterator[str]:
    """Yield how the requests for the two runs differ, an empty line if they don't."""
    if base.environment and new.environment:
        yield notes.plans(base.environment.context, new.environment.context)
    yield notes.unshared(*unmatched(base.table, new.table))


def _notes(base: SavedRun, new: SavedRun, baseline: str, comparison: pd.DataFrame, by_rows: Between) -> Iterator[str]:
    """Yield notes about the two runs, an empty line for each that doesn't apply."""
    before, after = base.environment, new.environment
    yield notes.origins(base.table, new.table)
    if baseline:
        yield notes.rebased(baseline, base.baseline or "")
    else:
        yield notes.unknown_baseline(base.baseline, new.baseline)
    if before and after and (differences := state_differences(before, after)):
        yield notes.state(differences)
    if factor := speed_change(comparison):
        yield notes.speed(factor)
    if change := detectable(after) or detectable(before):
        yield notes.detects(change, set(comparison["threads"]))
    if between_runs := {**between_run_scatter(before), **between_run_scatter(after)}:
        yield notes.widened(between_runs, set(comparison["threads"]))
    else:
        yield notes.widened_by_rows(by_rows)
    if shift := common_shift(comparison):
        yield notes.hint(shift, baseline or base.baseline or "")


def _put(report: Report, arguments: argparse.Namespace) -> None:
    """Print the report, or write it into a file and print its headline."""
    if arguments.format == "csv":  # which has no place for them
        say(*(f"{_prefix(report)}{line}" for line in (*headline(report), *report.notes)), stderr=True)
    screen = render(blocks(report), report.mark)
    if not arguments.to and arguments.format == TERMINAL:
        console().print(screen)
        return
    text = rendered(screen) if arguments.format == TERMINAL else TEXTS[arguments.format](report)
    if not arguments.to:
        sys.stdout.write(text)
        return
    try:
        arguments.to.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise WrongRequest(f"{arguments.to} can't be written: {error.strerror}") from None
    say(*(f"{_prefix(report)}{arguments.to}: {line}" for line in headline(report)))


def _prefix(report: Report) -> str:
    return f"{report.mark} | " if report.mark else ""
