"""Measure a sweep, or go on with a run."""

import argparse
import dataclasses
import shlex
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from bench.commands import options, say
from bench.commands.progress import Progress
from bench.engine import admission
from bench.engine.pool import Pool
from bench.machine.signals import held
from bench.plan.across import groups
from bench.plan.errors import WrongRequest, refusing
from bench.plan.invocation import suite
from bench.plan.statuses import BAD, FINE, INTERRUPTED
from bench.plan.sweep import Sweep
from bench.show.terminal.console import console, rendered
from bench.show.text import counted

if TYPE_CHECKING:  # slow to import, but the first line should appear at once
    from bench.analyse.analysed_run import AnalysedRun
    from bench.engine.run import Run


PROCESSES = 4
"""The fewest processes of a case in a run across a column, whose ratios have no race to make them precise."""


def run(arguments: argparse.Namespace) -> int:
    """Measure or check a sweep while its progress is shown; BAD if a point fails by `--fail-on`."""
    sweep = options.sweep(arguments)
    if arguments.list:
        for point in sweep.points:
            say(point.name)
        return FINE
    if arguments.check:
        from bench.commands import check  # slow to import

        if arguments.run:
            raise WrongRequest("--check keeps nothing, so it takes no --run")
        admission.check_devices(sweep)
        return check.checked(sweep, options.fail_on(arguments))
    if arguments.across and sweep.across != arguments.across:
        if arguments.within_s is not None:
            raise WrongRequest("--across measures in equal shares, so it takes no --within; --budget-s sets the time")
        sweep = _across(sweep, arguments.across, arguments.processes)
    status, _ = measured(sweep, arguments)
    return status


def _across(sweep: Sweep, column: str, given: str | None) -> Sweep:
    """Return a sweep whose points share rounds if they differ in a column alone; raises WrongRequest if some don't.

    Each case has at least PROCESSES processes, unless the user has given another number.
    """
    groups(sweep.points, column)
    processes = sweep.effort.processes if given else max(PROCESSES, sweep.effort.processes)
    effort = dataclasses.replace(sweep.effort, race=False, within_s=None, processes=processes)
    return dataclasses.replace(sweep, effort=effort, control=False, across=column)


def measured(sweep: Sweep, arguments: argparse.Namespace) -> tuple[int, Path]:
    """Measure a sweep as `run` does, and return the status and the folder."""
    admission.check_devices(sweep)  # before the folder is made
    shard = f"-{sweep.shard.number}of{sweep.shard.count}" if sweep.shard else ""
    folder = options.run_folder(arguments, f"{sweep.name}{shard}")
    fail_on, shown, is_quiet = options.fail_on(arguments), console(), bool(getattr(arguments, "quiet", False))
    shown.quiet = is_quiet
    progress, opened = Progress(sweep, sweep.points, shown), None
    try:
        with ExitStack() as stack:
            stack.callback(progress.close)
            progress.opened(folder)
            pool = Pool.of(sweep)
            if not arguments.run or not folder.exists():  # servers import torch while this process imports the engine
                pool.begin(sweep.points[0])
            with held():
                from bench.engine.across import Across
            from bench.engine.run import Run

            of_run = {"extend": arguments.extend, "retry_failed": arguments.retry_failed}
            opened = stack.enter_context((Across if sweep.across else Run)(sweep, folder, pools=[pool], **of_run))
            progress.follow(opened)
            for point in opened.measured(answered=progress.told):
                if opened.records(point):  # else its base waits
                    progress.told(point)
            progress.close()
            return _told(opened, fail_on, is_quiet=is_quiet), folder
    except KeyboardInterrupt:
        return _interrupted(opened), folder


def _told(run: "Run", fail_on: tuple[str, ...] | None, *, is_quiet: bool) -> int:
    """Print the end of a run, draw the pictures, write the page, and return the status."""
    if not run.contents.records:
        return FINE
    from bench.show import across, rows, summary
    from bench.show.answer import points_of
    from bench.show.blocks import QUIET, Lines

    saved, shown, baseline = run.saved, console(), run.sweep.baseline
    end = [*summary.blocks(saved.whole, baseline, run.sweep, is_brief=is_quiet)]
    width = min(shown.width, summary.WIDEST)
    end += across.blocks(saved)
    end.append(Lines(rows.half_precision(run.sweep.points, run.environment), QUIET))
    shown.file.write(rendered(end, width=width, colour=shown.is_terminal))
    for warning in run.late_warnings():
        say(f"warning: {warning}")
    say(*summary.go_on(_command(run), run.sweep.effort, points_of(saved.whole, run.sweep), run.longer_s()))
    is_drawn = not run.has_new and saved.page.exists() and not saved.traces.exists()
    say(summary.where(run.folder, saved.page if is_drawn else _drawn(saved)))
    return _status(run, fail_on)


def _drawn(saved: "AnalysedRun") -> Path | None:
    """Write and return the page of a run, and draw its pictures.

    A printed line says what could not be made, why, and how to make it later.
    """
    for what, command, make in (("page", "report", _page), ("pictures", "plot", _pictures)):
        try:
            with held():
                make(saved)
        except Exception as error:  # chart libraries may raise anything
            kind = "" if isinstance(error, WrongRequest) else f"{type(error).__name__}: "
            why = f"{kind}{str(error).strip()}".partition("\n")[0].removesuffix(": ")
            say(f"No {what}: {why}. To make it later: {suite()} {command} {shlex.quote(str(saved.folder))}")
    return saved.page if saved.page.exists() else None


def _page(saved: "AnalysedRun") -> None:
    from bench.show.pages import run as page

    page.write(saved)


def _pictures(saved: "AnalysedRun") -> None:
    from bench.show.charts import catalogue

    with refusing(f"{saved.plots} can't be written"):
        catalogue.draw(saved.plots, results=saved.table, profiles=saved.profiles)


def _status(run: "Run", fail_on: tuple[str, ...] | None) -> int:
    """Return the status of a run, and print why it is BAD."""
    from bench.show.failures import failing

    bad, gpus = Counter[str](), run.environment.identity["gpus"]
    for point in filter(run.records, run.sweep.points):
        lacks = bool(admission.missing_devices([point], gpus))
        of = failing(run.rows(point), fail_on, lacks_device=lacks, baseline=run.sweep.baseline)
        bad.update([", ".join(reason.brief for reason in of)] if of else [])
    if not bad and fail_on is None and all(record.status != "ok" for record in run.contents.records):
        bad["nothing was measured"] = len(run.sweep.points)
    if not bad:
        return FINE
    say(f"exit status 1: {'; '.join(bad)} ({sum(bad.values())} of {counted(len(run.sweep.points), 'point')})")
    return BAD


def _interrupted(run: "Run | None") -> int:
    """Print what is kept after Ctrl-C and how to go on."""
    say("")
    if run is None:
        say("Interrupted before anything was measured.")
        return INTERRUPTED
    points, cases = run.sweep.points, run.measured_cases()
    say(
        f"Interrupted. {len(run.finished())} of {len(points)} points are finished, "
        f"{cases} of {len(points) * len(run.sweep.implementations)} cases have results, kept in {run.folder}.",
    )
    say(f"Resume: {_command(run)}")
    say(f"Show:   {suite()} show {shlex.quote(str(run.folder))}")
    return INTERRUPTED


def _command(run: "Run") -> str:
    return f"{suite()} run --run {shlex.quote(str(run.folder))}"
