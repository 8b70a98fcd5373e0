"""Where lines and tables go: a terminal, a file, or a string."""

import io
import os
from typing import IO

from rich.console import Console, RenderableType

PLAIN_WIDTH = 180
"""Columns where no terminal sets a limit: every column of the results fits."""


def console(file: IO[str] | None = None, *, stderr: bool = False) -> Console:
    """Return a console on a file, standard output by default; one that is no terminal gets width and no colour."""
    found = Console(file=file, stderr=stderr, highlight=False)
    if not found.is_terminal and "COLUMNS" not in os.environ:
        found.width = PLAIN_WIDTH
    return found


def rendered(renderable: RenderableType, *, width: int = PLAIN_WIDTH, colour: bool = False) -> str:
    """Return what a console of this width would show, with ANSI codes only where colour is wanted."""
    target = Console(
        file=io.StringIO(),
        width=width,
        highlight=False,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        legacy_windows=False,
    )
    with target.capture() as capture:
        target.print(renderable)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def on_one_line(renderable: RenderableType, *, colour: bool = False) -> str:
    """Return what a console without an edge would show, without an end of line."""
    return rendered(renderable, width=10_000, colour=colour).rstrip("\n")
