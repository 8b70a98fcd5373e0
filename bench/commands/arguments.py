"""The arguments of each command, in a function of its name whose docstring is the help of the command.

Imports here are fast, so that `--help` and errors about options come at once.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.commands import options
from bench.plan.case import COLUMNS, OF_LAYERS
from bench.plan.verdicts import MARGIN, REGRESSIONS, VERDICTS, hyphened
from bench.store.journal import JOURNAL

if TYPE_CHECKING:
    from bench.analyse.analysed_run import AnalysedRun

FORMATS = ("text", "markdown", "json")
"""The output formats of `duel` and `advise`."""

COMPARE_FORMATS = ("text", "markdown", "csv", "json")
"""The output formats of `show` and `compare`."""

MOST_POINTS = 100
"""The most points that `show` prints in a terminal by default; a file gets all."""

TOP = 20
"""The number of most important points that it prints instead."""

MOST_OPERATORS = 10
"""The operators that `profile` prints by default; the others are mostly bookkeeping."""

CALLS = 100
"""The calls that `call` makes by default."""

MODEL = "timm:NAME, torchvision:NAME, transformers:CONFIG, module:attribute or a layer of the suite"
"""The names that `advise` takes."""


def _saved(path: str) -> "AnalysedRun":
    from bench.analyse.analysed_run import AnalysedRun  # slow to import

    return AnalysedRun(path)


def _add_saved(parser: argparse.ArgumentParser, name: str = "run", what: str = "a run folder or a results.csv") -> None:
    parser.add_argument(name, metavar=name.upper(), type=_saved, help=what)


def _add_format(parser: argparse.ArgumentParser, formats: Sequence[str], *, to: bool = True) -> None:
    """Add the options for an answer's format and output file."""
    parser.add_argument("--format", choices=formats, default=formats[0], help=f"output format (default: {formats[0]})")
    if to:
        parser.add_argument("--to", metavar="FILE", type=Path, help="write to this file (default: standard output)")


def add_run(parser: argparse.ArgumentParser) -> None:
    """Measure a sweep, or resume a run."""
    parser.description, parser.formatter_class = options.EXAMPLES, argparse.RawDescriptionHelpFormatter
    parser.usage = "%(prog)s [options]"
    across = "measure points that differ in this column alone in the same rounds, and compare each with the first"
    parser.add_argument("--across", metavar="COLUMN", default="", help=across)
    check = "check outputs, with --mode train gradients too; time and keep nothing"
    parser.add_argument("--check", action="store_true", help=check)
    parser.add_argument("-q", "--quiet", action="store_true", help="print only the table, doubts and the path")
    options.add(lambda title: parser.add_argument_group(title).add_argument)


def add_show(parser: argparse.ArgumentParser) -> None:
    """Print the table of a run."""
    _add_saved(parser)
    top = (
        "the N most important points: those with a failed case first, then by the speed-up of the fastest (default: "
        f"all, or {TOP} in a terminal if there are more than {MOST_POINTS})"
    )
    where = "only rows that match, such as 'num_tokens >= 577 and dtype == \"float32\"'"
    columns = (
        "columns to show, named as in results/README.md (default: latency_s, speedup, slowdown_high, memory_bytes "
        "and kernels; in CSV and JSON all columns of results.csv)"
    )
    parser.add_argument("--top", metavar="N", type=int, help=top)
    parser.add_argument("--where", metavar="EXPRESSION", help=where)
    parser.add_argument("--columns", metavar="A,B,…", help=columns)
    parser.add_argument("--across", metavar="COLUMN", help="show the ratios of a run that was measured across a column")
    _add_format(parser, COMPARE_FORMATS, to=False)


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Compare the speed-ups of two runs."""
    verdicts, usual = ", ".join(map(hyphened, VERDICTS)), ",".join(map(hyphened, REGRESSIONS))
    add_option = parser.add_argument
    runs = "BASE and NEW, or only NEW: its base is the run of the same sweep before it (default: the last in results/)"
    add_option("runs", metavar="RUN", nargs="*", type=_saved, help=runs)
    margin = f"smaller changes count as neither slower nor faster (default: {MARGIN:.0%}%)"
    add_option("--margin", metavar="1%", default=str(MARGIN), help=margin)
    fail_on = f"exit with status 1 if a row has one of these verdicts: {verdicts} (default: {usual})"
    add_option("--fail-on", metavar="VERDICT,…", default=usual, help=fail_on)
    add_option("--force", action="store_true", help="compare runs even if their conditions differ")
    add_option("--all", action="store_true", help="list all rows, not only those that changed")
    _add_format(parser, COMPARE_FORMATS)


def add_duel(parser: argparse.ArgumentParser) -> None:
    """Measure two sides alternately: implementations, checkouts, environments, models or layers."""

    def add_twice(name: str, metavar: str, help: str) -> None:  # noqa: A002 - the word of argparse
        parser.add_argument(name, metavar=metavar, action="append", default=[], help=help)

    def add_column(name: str, **words: Any) -> None:
        if name == "--layer":
            add_twice(name, "LAYER", f"{words['help']}; twice for two layers")
        else:
            add_option(name, **words)

    add_option = parser.add_argument
    add_option("names", metavar="SIDE", nargs="*", help="implementations or models: one for both sides, or two")
    first = "give it twice: before, then after"
    add_twice("--checkout", "PATH[@REV]", f"import from this folder, as it is or at a revision; {first}")
    add_twice("--python", "PATH", f"use this interpreter and its packages; {first}")
    add_option("--sweep", metavar="NAME|FILE.toml", help="the points (default: one, with 197 tokens and 384 channels)")
    add_option("--allow", metavar="2%", help="exit with status 1 if the second side is slower by more than this")
    options.add_run(add_option, "<UTC time>-duel-<sweep>")
    options.add_columns(add_column)
    add_option("--bound", metavar="1%", help="measure until the ratio is known within this (default: 1%%)")
    add_option("--within", dest="within_s", metavar="3m", help="stop after this time (default: 40s per point)")
    options.add_effort(add_option, "timeout_s")
    _add_format(parser, FORMATS)
    add_option("--report", metavar="FILE.html", type=Path, help="write a page with the result")


def add_advise(parser: argparse.ArgumentParser) -> None:
    """Measure a whole model, and say which attention setting to use."""
    add_option = parser.add_argument
    add_option("name", metavar="MODEL", help=f"{MODEL}; options as in timm:vit_tiny_patch16_224[depth=4]")
    usual = COLUMNS["batch"].default
    add_option("--batch", metavar="A,B,…", help=f"items in a call (default: the batch of --input, or {usual})")
    given = "shape of the input, batch first, or module:function that returns the inputs"
    add_option("--input", metavar="8x3x224x224", help=given)
    add_option("--impl", metavar="A,B,…", default="", help="compare only these settings, such as sdpa,mykernel:attend")
    options.add_columns(add_option, (*OF_LAYERS, *options.EXECUTION))
    add_option("--no-compile", action="store_true", help="leave out settings that use torch.compile")
    add_option("--look", action="store_true", help="show what attention the model has, and compare nothing")
    add_option("--anyway", action="store_true", help="compare settings even if attention takes little time")
    options.add_effort(add_option, "bound", "within_s", "timeout_s")
    options.add_run(add_option, "<UTC time>-advise")
    _add_format(parser, FORMATS, to=False)


def add_list(_parser: argparse.ArgumentParser) -> None:
    """List all sweeps, layers, implementations and models."""


def add_report(parser: argparse.ArgumentParser) -> None:
    """Write report.html for a run."""
    _add_saved(parser, what="a run folder")


def add_plot(parser: argparse.ArgumentParser) -> None:
    """Draw the pictures of a run."""
    _add_saved(parser)
    folder = "folder for the pictures (default: plots/ beside the results)"
    parser.add_argument("--to", metavar="DIR", type=Path, help=folder)
    parser.add_argument("--svg", action="store_true", help="also write each picture as SVG")


def add_profile(parser: argparse.ArgumentParser) -> None:
    """Profile cases of a run to see where their time goes."""
    add_option = parser.add_argument
    add_option("run", metavar="RUN", type=_saved, help="a run folder")
    add_option(
        "--case",
        metavar="COLUMN=VALUE,…",
        action="append",
        default=[],
        help="cases, such as implementation=sdpa,num_tokens=197 (default: the fastest and the baseline of each point); "
        "the layer's graph is also profiled at their points, because it shows the stages",
    )
    add_option(
        "--top",
        metavar="N",
        type=int,
        default=MOST_OPERATORS,
        help=f"operators to print for each case; one line sums up the others (default: {MOST_OPERATORS})",
    )


def add_call(parser: argparse.ArgumentParser) -> None:
    """Call one case of a run, for use under perf, Nsight or another system profiler."""
    parser.add_argument("run", metavar="RUN", type=_saved, help="a run folder or a results.csv")
    parser.add_argument("--case", metavar="COLUMN=VALUE,…", required=True, help="for example implementation=sdpa")
    parser.add_argument("--calls", metavar="N", type=int, default=CALLS, help=f"after a warm-up (default: {CALLS})")


def add_summarise(parser: argparse.ArgumentParser) -> None:
    """Rewrite results.csv of a run from its journal."""
    parser.add_argument("run", metavar="RUN", nargs="+", type=_saved, help=f"a run folder with a {JOURNAL}")


def add_merge(parser: argparse.ArgumentParser) -> None:
    """Join the shards of a sweep into one run."""
    out = "folder of the merged run: new, or from an earlier merge"
    parser.add_argument("out", metavar="OUT", type=Path, help=out)
    parser.add_argument("shards", metavar="SHARD", type=Path, nargs="+", help="a run folder")


def add_watch(parser: argparse.ArgumentParser) -> None:
    """Measure a kernel each time its file is saved."""
    parser.add_argument("names", metavar="IMPL", nargs="+", help="your kernel, with its baseline before it if you like")
    options.add_columns(parser.add_argument)
    options.add_effort(parser.add_argument, "timeout_s")
