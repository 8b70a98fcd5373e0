"""The last lines of a run: its files, and the command that shows more."""

import shlex
from collections.abc import Collection
from pathlib import Path

import pandas as pd

from bench.analyse.scaling.growth import has_series
from bench.analyse.scaling.series import by, gathered
from bench.show.command_text import python
from bench.show.point_text import counted
from bench.show.rows import is_measured, plain


def closing(table: pd.DataFrame, folder: Path, pictures: Collection[Path]) -> list[str]:
    """Return the files of a run, and the commands that show more: of a series, and of several precisions.

    A picture counts once, however many files it has.
    """
    path = shlex.quote(str(folder))
    number = len({picture.stem for picture in pictures})
    plots = [counted([number], "picture", "pictures")] if number else []
    files = ", ".join(["results.csv", "journal.jsonl", "environment.json", *plots])
    lines = [f"Everything is in {path}: {files}."]
    measured = [row for row in plain(table) if is_measured(row)]
    if has_series(measured):
        lines.append(f"How it grows, and where the winner changes: {python()} -m bench scaling {path}")
    if any(len(by(rows, "dtype")) > 1 for rows in gathered(measured, [], {"dtype"})):
        lines.append(f"What another precision brings, and its error: {python()} -m bench show --across dtype {path}")
    return lines
