"""The command line: `python -m bench COMMAND`, or `attention-bench COMMAND` of an installed package."""

import argparse
import itertools
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from bench.commands import FIRST, NAMES, NOT_COMPARABLE, WRONG, say, to_summarise
from bench.plan.errors import CannotWrite, NotComparable, WrongRequest
from bench.plan.invocation import short
from bench.show.terminal.console import console

INTERRUPTED = 130
"""The exit status of a program that Ctrl-C ended."""

REMOVED = {
    "selfcheck": "compare estimates how much two runs differ from its own rows; a duel measures both sides in one run",
    "profile --diff": "profile prints the operators of each case, and with --report the page has all of a run",
}
"""The commands and options of earlier versions, with what takes their place."""


def installed() -> int:
    """Run one command as a program of its own: as with `python -m`, modules of the current folder come first."""
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - the text is what Python itself puts there
    return main()


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    if words is None:  # a program
        words = sys.argv[1:]
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    for gone, instead in REMOVED.items():
        command, *options = gone.split()
        if [command] == [*words[:1]] and {*options} <= {*words}:
            say(f"attention-bench: {gone} is gone: {instead}", stderr=True)
            return WRONG
    arguments = _parser(words[:1]).parse_args(words)
    try:
        _warn_of_edited(arguments)
        status: int = arguments.command(arguments)
    except WrongRequest as error:
        goes_on = "; mend that, then the same command with --run goes on" if isinstance(error, CannotWrite) else ""
        console(stderr=True).print(f"attention-bench: {error}{goes_on}", style="bold", soft_wrap=True, markup=False)
        return NOT_COMPARABLE if isinstance(error, NotComparable) else WRONG
    except OSError as error:
        if error.filename is None:
            raise
        console(stderr=True).print(f"attention-bench: {error.filename}: {error.strerror}", style="bold", markup=False)
        return WRONG
    except KeyboardInterrupt:
        console(stderr=True).print("attention-bench: interrupted; what was measured is kept", style="bold")
        return INTERRUPTED
    return status


def _warn_of_edited(arguments: argparse.Namespace) -> None:
    """Say of each run that is an argument if its table was changed after the run wrote it."""
    values = vars(arguments).values()
    for saved in itertools.chain.from_iterable(value if isinstance(value, list) else [value] for value in values):
        if getattr(saved, "is_edited", False):  # a SavedRun, whose module is slow to import
            from bench.store import files, table

            if not files.is_held(saved.folder):
                edited, again = saved.folder / table.RESULTS, to_summarise(saved.folder)
                say(f"warning: {edited} is not as the run wrote it; from its journal: {again}", stderr=True)


def _parser(first: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser; with the name of a command it knows this one alone, because others are slow to import."""
    what = "Measure attention layers, read what was measured, compare runs, and measure side by side."
    parser = argparse.ArgumentParser(
        prog=short(), usage="%(prog)s [-h] command ...", description=what,
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
    )  # fmt: skip
    commands = parser.add_subparsers(prog=parser.prog, metavar="command", required=True, help=argparse.SUPPRESS)
    meanings = {}
    for name in first if first and first[0] in NAMES else NAMES:
        module = import_module(f"{__package__}.commands.{name}")
        meanings[name] = (module.__doc__ or "").partition("\n")[0].removesuffix(".")
        command = commands.add_parser(name, description=meanings[name], allow_abbrev=False)
        module.add_arguments(command)
        command.set_defaults(command=module.run)
    lines = {name: f"  {name:<11}{words}" for name, words in meanings.items()}
    first, others = ([line for name, line in lines.items() if (name in FIRST) is often] for often in (True, False))
    parser.epilog = "\n".join(["commands that most people need:", *first, "", "all other commands:", *others])
    return parser
