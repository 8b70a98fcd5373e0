"""The command line: `python -m bench COMMAND`, or `attention-bench COMMAND` of an installed package.

Slow imports wait until `main` has set up signals.
"""

import argparse
import os
import re
import signal
import sys
from collections.abc import Sequence

from bench.machine.signals import ENDING, forget, interrupt, on_end, restore
from bench.plan.statuses import BROKEN_PIPE, INTERRUPTED, UNMEASURED

NEGATIVE = re.compile(r"-[\d.]")


def installed() -> int:
    """Run one command as an installed program: as with `python -m`, modules of the current folder come first."""
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - the text is what Python itself puts there
    return main()


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    is_program = words is None
    if is_program:
        on_end(_leave)
    try:
        return _run(sys.argv[1:] if words is None else words, is_program=is_program)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python fails at its own exit
        return BROKEN_PIPE
    finally:
        if is_program:
            restore(dict.fromkeys(ENDING, signal.SIG_IGN))  # the status is known already already
            forget()


def _leave(*_: object) -> None:
    """Exit at once, because nothing was begun and an exception inside an import may get lost."""
    os.write(2, b"attention-bench: interrupted before anything started\n")
    os._exit(INTERRUPTED)


def _run(words: Sequence[str], *, is_program: bool) -> int:
    """Run one command and return its exit status; as a program, handle terminating signals as interrupts."""
    from bench.commands import MEASURING, function
    from bench.plan.errors import CannotWrite, WrongRequest
    from bench.show.terminal.console import console

    arguments = _parser(words[:1]).parse_args(_joined(words))
    command = function(arguments.command)
    try:
        if is_program:
            on_end(interrupt)
        status = command(arguments)
        sys.stdout.flush()
    except WrongRequest as error:
        is_kept = isinstance(error, CannotWrite) and arguments.command in MEASURING
        goes_on = "; fix this, then repeat the command with --run to resume" if is_kept else ""
        console(stderr=True).print(f"attention-bench: {error}{goes_on}", style="bold", soft_wrap=True, markup=False)
        return error.status
    except OSError as error:
        if error.filename is None:
            raise
        console(stderr=True).print(f"attention-bench: {error.filename}: {error.strerror}", style="bold", markup=False)
        return UNMEASURED
    except KeyboardInterrupt:
        console(stderr=True).print("attention-bench: interrupted; results so far are kept", style="bold")
        return INTERRUPTED
    return status


def _joined(words: Sequence[str]) -> list[str]:
    """Return words with each negative number joined to its option, because argparse takes `-1%` for an option."""
    joined: list[str] = []
    for word in words:
        if NEGATIVE.match(word) and joined and joined[-1].startswith("--"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _parser(first: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser; with the name of a command it knows only this one."""
    from bench.commands import NAMES, USUAL, arguments
    from bench.plan.invocation import short

    what = "Measure attention layers and models in PyTorch, and compare the results."
    parser = argparse.ArgumentParser(
        prog=short(), usage="%(prog)s [-h] command ...", description=what,
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
    )  # fmt: skip
    commands = parser.add_subparsers(
        prog=parser.prog, metavar="command", dest="command", required=True, help=argparse.SUPPRESS
    )
    meanings = {}
    for name in first if first and first[0] in NAMES else NAMES:
        add_arguments = getattr(arguments, f"add_{name}")
        meanings[name] = add_arguments.__doc__.partition("\n")[0].removesuffix(".")
        add_arguments(commands.add_parser(name, description=meanings[name], allow_abbrev=False))
    lines = {name: f"  {name:<11}{words}" for name, words in meanings.items()}
    first, others = ([line for name, line in lines.items() if (name in USUAL) is often] for often in (True, False))
    parser.epilog = "\n".join(["common commands:", *first, "", "other commands:", *others])
    return parser
