"""Compare two runs by the speed of each row relative to the other implementations of its own run."""

import argparse
from collections.abc import Callable, Mapping

from bench.analyse import comparison as comparing
from bench.analyse.comparable import unlike_conditions
from bench.commands import BAD, FINE, put, say
from bench.commands.arguments import COMPARE_FORMATS
from bench.plan.case import CONTROL
from bench.plan.errors import NotComparable, WrongRequest
from bench.plan.verdicts import named
from bench.show.comparison import notes
from bench.show.comparison.blocks import as_csv, as_json, blocks
from bench.show.comparison.report import ONE_SIDED, Report, headline
from bench.show.doubts import control_warning
from bench.show.markdown import markdown
from bench.show.text import counted
from bench.stats.limits import Limits
from bench.store import journal, saved_run
from bench.store.record import Record
from bench.store.saved_run import SavedRun

TEXTS: Mapping[str, Callable[[Report], str]] = {
    "markdown": lambda report: markdown(blocks(report), report.mark),
    "csv": as_csv,
    "json": as_json,
}

SIDES = ("BASE", "NEW")


def run(arguments: argparse.Namespace) -> int:
    """Compare two runs, machine by machine if one of them was merged; BAD if a row has a verdict of `--fail-on`."""
    failing = named(arguments.fail_on)
    if arguments.plot:
        from bench.show.charts import catalogue  # slow to import

        catalogue.check_name(arguments.plot)
    pairs = _machines(arguments.base, arguments.new)
    if "" not in pairs and (arguments.to or arguments.plot):
        raise WrongRequest("--to and --plot take the runs of one machine, such as the folders inside a merged run")
    regressed = False
    for env_id, (base, new) in pairs.items():
        page = arguments.report
        if page and len(pairs) > 1:
            page = page.with_stem(f"{page.stem}-{env_id}")
        if env_id:
            name = saved_run.name_of(new.environment) if new.environment else env_id
            say(f"machine {name}" + (f", page {page}" if page else ""), stderr=arguments.format != COMPARE_FORMATS[0])
        report = _report(arguments, base, new)
        _put(report, arguments)
        if arguments.plot and not catalogue.draw_comparison(report, arguments.plot):
            say(f"{_prefix(report)}nothing to draw: no row was judged", stderr=True)
        if page:
            from bench.show.pages import comparison as web  # slow to import

            web.write(page, report, base, new)
        regressed |= comparing.regressed(report.comparison, failing)
    return BAD if regressed else FINE


def _machines(base: SavedRun, new: SavedRun) -> dict[str, tuple[SavedRun, SavedRun]]:
    """Return the runs of each machine in both by its env_id, or two runs of one machine each under an empty name.

    A run of one machine is compared with that machine's part of the other. Raises NotComparable if none is in both.
    """
    runs = [[*saved_run.runs_of(saved).values()] for saved in (base, new)]
    if all(len(side) == 1 for side in runs):
        return {"": (base, new)}
    before, after = ({run.environment.env_id if run.environment else "unknown": run for run in side} for side in runs)
    shared = {env_id: (before[env_id], after[env_id]) for env_id in before if env_id in after}
    if not shared:
        raise NotComparable(f"no machine is in both: BASE has {', '.join(before)}, NEW has {', '.join(after)}")
    return shared


def _report(arguments: argparse.Namespace, base: SavedRun, new: SavedRun) -> Report:
    limits, unlike = Limits(arguments.margin), unlike_conditions(base, new)
    if unlike and not arguments.force:
        raise NotComparable(
            f"BASE and NEW were not measured under the same conditions: {'; '.join(unlike)}; "
            "--force compares them all the same"
        )
    baseline = arguments.baseline
    judged = comparing.rebased(_records(base), _records(new), baseline) if baseline else (base.table, new.table)
    comparison, by_rows = comparing.compared(*judged, limits, by_level=not baseline)
    if not comparing.is_compared(comparison):
        shared = int((~comparison["verdict"].isin(ONE_SIDED)).sum())
        raise NotComparable(
            f"nothing can be compared: BASE and NEW share {counted(shared, 'case')}, "
            "none of them with a speed-up on both sides besides the baseline"
        )
    about = tuple(map(str, notes.about(base, new, baseline, comparison, by_rows)))
    unlike_runs = tuple(map(str, notes.unlike(base, new)))
    sides = zip(SIDES, (base, new), strict=True)
    doubts = tuple(f"in {side} {words}" for side, run in sides if (words := control_warning(run.whole)))
    return Report(comparison, limits, baseline, tuple(unlike), doubts, unlike_runs, about, arguments.all, new.again)


def _records(saved: SavedRun) -> list[Record]:
    """Return the records of a run's implementations, and print a warning for lines of its journal that don't count."""
    say(*(f"warning: {notice}" for notice in saved.notices), stderr=True)
    if not saved.contents.entries:
        raise WrongRequest(
            f"--baseline needs the {journal.JOURNAL} that {saved} was made from, "
            "because ratios are paired anew within rounds; expected a run folder that holds it"
        )
    return [record for record in saved.records if record.case.implementation != CONTROL]


def _put(report: Report, arguments: argparse.Namespace) -> None:
    """Print the report, or write it into a file and print its headline."""
    prefix, lines = _prefix(report), headline(report)
    if arguments.format == "csv":  # which has no place for them
        say(*(f"{prefix}{line}" for line in (*lines, *report.notes)), stderr=True)
    answer = TEXTS[arguments.format](report) if arguments.format in TEXTS else blocks(report)
    put(answer, arguments.to, *lines, stamp=report.mark)


def _prefix(report: Report) -> str:
    return f"{report.mark} | " if report.mark else ""
