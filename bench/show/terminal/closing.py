"""The last lines of a run: its files, and the command that shows more."""

import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

import pandas as pd

from bench.analyse.precision import Change
from bench.analyse.scaling.growth import has_series
from bench.show.command_text import python
from bench.show.point_text import counted
from bench.show.precision_text import in_words
from bench.show.rows import is_measured, plain


def closing(table: pd.DataFrame, folder: Path, pictures: Collection[Path], changes: Sequence[Change] = ()) -> list[str]:
    """Return the files of a run, what changes of precision bring, and the commands that show more.

    A picture counts once, however many files it has.
    """
    path = shlex.quote(str(folder))
    number = len({picture.stem for picture in pictures})
    plots = [counted([number], "picture", "pictures")] if number else []
    files = ", ".join(["results.csv", "journal.jsonl", "environment.json", *plots])
    lines = [f"Everything is in {path}: {files}."]
    measured = [row for row in plain(table) if is_measured(row)]
    if has_series(measured):
        lines.append(f"How it grows, and where the fastest changes: {python()} -m bench scaling {path}")
    if changes:
        lines += [*in_words(table, changes), f"Precisions in a table: {python()} -m bench show --across dtype {path}"]
    return lines
