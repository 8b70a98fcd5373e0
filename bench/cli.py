"""The command line: `python -m bench COMMAND`."""

import argparse
from collections.abc import Sequence
from importlib import import_module

from bench.commands import NAMES, NOT_COMPARABLE, WRONG
from bench.plan.errors import CannotWrite, NotComparable, WrongRequest
from bench.show.terminal.console import console

INTERRUPTED = 130
"""The exit status of a program that Ctrl-C ended."""


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    arguments = _parser().parse_args(words)
    try:
        status: int = arguments.command(arguments)
    except WrongRequest as error:
        goes_on = "; mend that, then the same command with --run goes on" if isinstance(error, CannotWrite) else ""
        console(stderr=True).print(f"attention-bench: {error}{goes_on}", style="bold", soft_wrap=True, markup=False)
        return NOT_COMPARABLE if isinstance(error, NotComparable) else WRONG
    except KeyboardInterrupt:
        console(stderr=True).print("attention-bench: interrupted; what was measured is kept", style="bold")
        return INTERRUPTED
    return status


def _parser() -> argparse.ArgumentParser:
    what = "Read what `pytest bench` measured, compare runs, and measure side by side."
    parser = argparse.ArgumentParser(prog="python -m bench", description=what)
    commands = parser.add_subparsers(metavar="command", required=True)
    for name in NAMES:
        module = import_module(f"bench.commands.{name}")
        first_line = (module.__doc__ or "").partition("\n")[0].removesuffix(".")
        command = commands.add_parser(name, help=first_line, description=first_line)
        module.add_arguments(command)
        command.set_defaults(command=module.run)
    return parser
