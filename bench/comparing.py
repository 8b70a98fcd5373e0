"""`python -m bench compare`: from two paths to an output in one of several forms."""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from bench import rerunning
from bench.analyse.anchor import anchored, anchors
from bench.analyse.company import strangers
from bench.analyse.compare import compare, is_compared, regressed
from bench.analyse.together import moved_together, other_speed
from bench.analyse.verdicts import MARGIN, REGRESSIONS, VERDICTS, Limits, hyphened, named
from bench.plan.errors import NotComparable, WrongRequest, unknown
from bench.show import comparison_notes as notes
from bench.show import comparison_picture as picture
from bench.show.compared import ONE_SIDED, STAMP, Report
from bench.show.comparison import render
from bench.show.comparison_data import as_csv, as_json
from bench.show.comparison_markdown import markdown
from bench.show.comparison_top import top
from bench.show.console import console, rendered
from bench.show.rows import baseline_of
from bench.show.words import counted
from bench.store import journal
from bench.store.comparable import environment_of, unlike_conditions
from bench.store.detectable import detectable
from bench.store.record import Record
from bench.store.state import state_differences
from bench.store.table import RESULTS, load

Results = tuple[pd.DataFrame, pd.DataFrame]
"""The tables of BASE and NEW."""

TERMINAL = "terminal"
TEXTS: Mapping[str, Callable[[Report], str]] = {"markdown": markdown, "csv": as_csv, "json": as_json}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("base", metavar="BASE", type=Path, help="a run folder or a results.csv")
    parser.add_argument("new", metavar="NEW", type=Path, help="a run folder or a results.csv")
    parser.add_argument(
        "--margin",
        metavar="SHARE",
        type=float,
        default=MARGIN,
        help=f"a change up to this share is not acted on (default: {MARGIN})",
    )
    parser.add_argument(
        "--anchor",
        metavar="IMPLEMENTATION",
        default="",
        help="judge by ratios to this implementation: where the baseline itself is what changed",
    )
    parser.add_argument(
        "--fail-on",
        metavar="VERDICT,…",
        default=",".join(map(hyphened, REGRESSIONS)),
        help=f"end with status 1 when a row has one of these: {', '.join(map(hyphened, VERDICTS))} (default: slower)",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="compare what was measured under different conditions, every line stamped as such",
    )
    parser.add_argument("--format", choices=[TERMINAL, *TEXTS], default=TERMINAL, help="(default: terminal)")
    parser.add_argument("--to", metavar="FILE", type=Path, help="where to (default: standard output)")
    parser.add_argument("--plot", metavar="FILE.png", type=Path, help="draw all judged rows with their intervals")
    rerunning.add_options(parser)


def run(options: argparse.Namespace) -> bool:
    """Compare two results as the options say, and return whether a row has a verdict to fail on.

    Raises WrongRequest, or NotComparable, where that can't be done.
    """
    failing = named(options.fail_on)
    if options.plot:
        picture.check_name(options.plot)
    rerunning.check(options)
    report = _report(options)
    if options.rerun:
        report = rerunning.settled(report, options)
    _put(report, options)
    if options.plot and not picture.draw(report, options.plot):
        _say_aside(report, "nothing to draw: no row was judged")
    return regressed(report.comparison, failing)


def _report(options: argparse.Namespace) -> Report:
    limits = Limits(options.margin)
    measured = load(options.base), load(options.new)
    unlike = unlike_conditions(options.base, options.new)
    if unlike and not options.force:
        reasons = "; ".join(unlike)
        raise NotComparable(
            f"BASE and NEW were not measured under the same conditions: {reasons}; --force compares them all the same"
        )
    judged = _anchored(options) if options.anchor else measured
    comparison = compare(*judged, margin=limits.margin, equivalence=limits.equivalence, level=limits.level)
    if not is_compared(comparison):
        shared = int((~comparison["verdict"].isin(ONE_SIDED)).sum())
        raise NotComparable(
            f"nothing can be compared: BASE and NEW share {counted([shared], 'case', 'cases')}, "
            "none of them with a speed-up on both sides besides the baseline"
        )
    unlike_runs, about = (
        tuple(filter(None, lines)) for lines in (_unlike_runs(options, measured), _notes(options, measured, comparison))
    )
    return Report(comparison, limits, options.anchor, tuple(unlike), unlike_runs, about)


def _anchored(options: argparse.Namespace) -> Results:
    """Return the tables of both runs with ratios to the anchor."""
    base, new = _records(options.base), _records(options.new)
    names = anchors(base, new)
    if options.anchor not in names:
        raise unknown("anchor", options.anchor, names or ["what both runs measured, which is nothing"])
    return anchored(base, options.anchor), anchored(new, options.anchor)


def _records(path: Path) -> list[Record]:
    """Return the journal of a run folder, or of the run whose results.csv this is."""
    records = []
    if path.is_dir() or path.name == RESULTS:
        folder = path if path.is_dir() else path.parent
        contents = journal.scan(folder)
        records = contents.records
        for notice in contents.notices(folder / journal.JOURNAL):
            console(stderr=True).print(f"warning: {notice}", soft_wrap=True, markup=False)
    if not records:
        raise WrongRequest(
            f"--anchor needs the {journal.JOURNAL} that {path} was made from, "
            "because ratios are paired anew within rounds; expected a run folder that holds it"
        )
    return records


def _unlike_runs(options: argparse.Namespace, measured: Results) -> Iterator[str]:
    """Yield how the two runs were asked for differently, an empty line if they were not."""
    before, after = environment_of(options.base), environment_of(options.new)
    if before and after:
        yield notes.plans(before.context, after.context)
    yield notes.company(*strangers(*measured))


def _notes(options: argparse.Namespace, measured: Results, comparison: pd.DataFrame) -> Iterator[str]:
    """Yield what is to be said about the two runs, an empty line where there is nothing to say."""
    baseline = baseline_of(measured[0]) or ""
    before, after = environment_of(options.base), environment_of(options.new)
    yield notes.origins(*measured)
    if options.anchor:
        yield notes.judge(options.anchor, baseline)
    if before and after and (differences := state_differences(before, after)):
        yield notes.state(differences)
    if factor := other_speed(comparison):
        yield notes.speed(factor)
    if found := detectable(after) or detectable(before):
        yield notes.detects(found, set(comparison["threads"]))
    if movement := moved_together(comparison):
        yield notes.hint(movement, options.anchor or baseline)


def _put(report: Report, options: argparse.Namespace) -> None:
    """Print the report, or write it into a file and print what it says first."""
    if options.format == "csv":
        for line in (*top(report), *report.notes):
            _say_aside(report, line)
    if not options.to:
        if options.format == TERMINAL:
            console().print(render(report))
        else:
            sys.stdout.write(TEXTS[options.format](report))
        return
    text = rendered(render(report)) if options.format == TERMINAL else TEXTS[options.format](report)
    try:
        options.to.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise WrongRequest(f"{options.to} can't be written: {error.strerror}") from None
    for line in top(report):
        console().print(f"{_lead(report)}{options.to}: {line}", soft_wrap=True, markup=False)


def _say_aside(report: Report, line: str) -> None:
    """Print a line that the output has no place for to standard error."""
    console(stderr=True).print(f"{_lead(report)}{line}", soft_wrap=True, markup=False)


def _lead(report: Report) -> str:
    return f"{STAMP} | " if report.unlike else ""
