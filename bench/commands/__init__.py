"""The commands of `python -m bench`, a module each.

The arguments of each, with its help, are in `arguments.py`. `run(arguments)` does the command and returns the exit
status, or raises WrongRequest or NotComparable.
"""

import sys
from pathlib import Path

from rich.console import RenderableType

from bench.plan.errors import refusing
from bench.show.terminal.console import console, rendered

USUAL = ("run", "show", "compare", "duel", "advise", "doctor")
"""The commands that most people need."""

NAMES = (
    *USUAL, "list", "report", "plot", "scaling", "profile", "export", "summarise", "merge", "watch",
)  # fmt: skip
"""The commands, in the order of the help."""

FINE, BAD, WRONG, NOT_COMPARABLE = 0, 1, 2, 3
"""The exit statuses: fine, something measured is bad, the request is wrong, the results are not comparable."""


def say(*lines: str, stderr: bool = False) -> None:
    """Print lines as they are, however long."""
    for line in lines:
        console(stderr=stderr).print(line, soft_wrap=True, markup=False)


def write(path: Path, text: str) -> None:
    """Write a file that the user asked for; raises WrongRequest if it can't be written."""
    with refusing(f"{path} can't be written"):
        path.write_text(text, encoding="utf-8", newline="\n")


def put(answer: RenderableType, path: Path | None, *headline: str, prefix: str = "") -> None:
    """Print an answer, a text as it is, or write it into a file and print the headline, each line with a prefix.

    Raises WrongRequest if the file can't be written.
    """
    if path:
        write(path, answer if isinstance(answer, str) else rendered(answer))
        say(*(f"{prefix}{path}: {line}" for line in headline))
    elif isinstance(answer, str):
        sys.stdout.write(answer)
    else:
        console().print(answer)
