"""The commands of `python -m bench`: the ones that read runs are functions of `of_runs`, the others modules.

`arguments.py` has the arguments and help of each. The function of a command (`run` in a command's own module) takes
them and returns the exit status, or raises WrongRequest or NotComparable.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.plan.errors import refusing
from bench.show.blocks import Block
from bench.show.markdown import markdown
from bench.show.terminal.console import console, render, rendered

USUAL = ("run", "show", "compare", "duel", "advise")
"""The commands that most users need."""

OF_RUNS = ("show", "compare", "report", "plot", "summarise", "merge")
"""The commands that read runs."""

MEASURING = ("run", "duel", "advise")
"""The commands that resume the run given by --run."""

NAMES = (
    *USUAL, "list", "report", "plot", "profile", "call", "summarise", "merge", "watch",
)  # fmt: skip
"""The commands, in the order of the help."""


def function(name: str) -> Callable[[Any], int]:
    """Import the function of a command."""
    module = import_module(f"{__name__}.{'of_runs' if name in OF_RUNS else name}")
    found: Callable[[Any], int] = getattr(module, name if name in OF_RUNS else "run")
    return found


def say(*lines: str, stderr: bool = False) -> None:
    """Print lines as they are, however long."""
    for line in lines:
        console(stderr=stderr).print(line, soft_wrap=True, markup=False, emoji=False)


def write(path: Path, text: str) -> None:
    """Write a file that the user asked for; raises WrongRequest if it can't be written."""
    with refusing(f"{path} can't be written"):
        path.write_text(text, encoding="utf-8", newline="\n")


def put(answer: str | Iterable[Block], path: Path | None = None, *headline: str) -> None:
    """Print an answer, or write it into a file and print the headline.

    Raises WrongRequest if the file can't be written.
    """
    if path:
        write(path, answer if isinstance(answer, str) else rendered(answer))
        say(*(f"{path}: {line}" for line in headline))
    elif isinstance(answer, str):
        sys.stdout.write(answer)
    elif (target := console()).is_terminal:
        target.print(render(answer))
    else:
        sys.stdout.write(rendered(answer, width=target.width))


def in_format(form: str, blocks: Iterable[Block], data: Mapping[str, Callable[[], str]]) -> str | Iterable[Block]:
    """Return blocks for a terminal, or text: Markdown, or the result of `data` for another format."""
    if form in data:
        return data[form]()
    return markdown(blocks) if form == "markdown" else blocks
