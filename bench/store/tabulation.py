"""results.csv in parts: the rows of each point, and how much of the journal they were made from.

A run that goes on keeps the rows of points that it doesn't measure again.
"""

import io
import json
import time
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from bench.plan.case import Point
from bench.store import atomic, table
from bench.store.journal import Contents
from bench.store.typed import decode

STATE = "results.state.json"
"""The file that says which lines of the journal results.csv was made from, with checksums of both."""

SHARE = 1 / 50
"""The largest share of the time in which results.csv is written while a run measures."""


class State(msgspec.Struct):
    """What results.csv was made from: so many bytes of the journal, and the numbers of rows by the names of points."""

    schema_version: int
    journal_bytes: int
    journal_crc32: int
    results_crc32: int
    rows: dict[str, int]


class Tabulation:
    """The rows of results.csv by point, as text, which are written if that takes little of the time, and at the end."""

    def __init__(self) -> None:
        self._rows: dict[Point, bytes] = {}
        self._counts: dict[Point, tuple[str, int]] = {}
        self._stale: set[Point] = set()
        self._is_written = True
        self._due_s = 0.0

    def __bool__(self) -> bool:
        return bool(self._rows)

    def __contains__(self, point: Point) -> bool:
        return point in self._rows and point not in self._stale

    def put(self, point: Point, rows: Sequence[Mapping[str, Any]]) -> None:
        """Replace the rows of a point."""
        self._rows[point] = table.csv_rows(rows)
        self._counts[point] = point.name, len(rows)
        self._stale.discard(point)
        self._is_written = False

    def set_stale(self, point: Point) -> None:
        """Say that the journal has newer records of a point."""
        self._stale.add(point)
        self._is_written = False

    @property
    def is_due(self) -> bool:
        """Whether there is something to write, and writing it takes a small share of the time since the last one."""
        return not self._is_written and time.monotonic() >= self._due_s

    @property
    def is_written(self) -> bool:
        """Whether the file holds all rows."""
        return self._is_written

    def save(self, run: Path, journal: Contents, began_s: float) -> None:
        """Write results.csv and what it was made from, which is the whole journal: no point may be stale.

        `began_s` is the monotonic time at which its rows began to be made. Raises OSError if one can't be written.
        """
        parts = [table.csv_header(), *self._rows.values()]
        atomic.replace(run / table.RESULTS, parts)
        self._is_written = True
        state = State(table.SCHEMA_VERSION, journal.end, journal.digest, _crc32(parts), dict(self._counts.values()))
        atomic.replace(run / STATE, json.dumps(msgspec.to_builtins(state)) + "\n")
        end = time.monotonic()
        self._due_s = end + (end - began_s) * (1 / SHARE - 1)

    def table(self, point: Point | None = None) -> pd.DataFrame:
        """Return all rows as a table, or those of a point."""
        content = b"".join([table.csv_header(), *(self._rows.values() if point is None else [self._rows[point]])])
        return table.read(Path(table.RESULTS), io.BytesIO(content))

    def restore(self, run: Path, journal: Contents, state: State | None) -> None:
        """Take over the rows in results.csv of points without newer records, if nothing has changed it or the journal.

        `state` is that of the run's folder, and `journal` was scanned for its place.
        """
        if not state or journal.digest_before != state.journal_crc32:
            return
        try:
            content = (run / table.RESULTS).read_bytes()
        except OSError:
            return
        if zlib.crc32(content) != state.results_crc32 or not content.startswith(table.csv_header()):
            return
        place = bisect_left(journal.entries, state.journal_bytes, key=lambda entry: entry.offset)
        points = dict.fromkeys(entry.case.point for entry in journal.entries[:place])
        fresh = {entry.case.point for entry in journal.entries[place:]}
        named = {point.name: point for point in points}
        lines = table.csv_lines(content)
        if {*named} != {*state.rows} or sum(state.rows.values()) != len(lines):
            return
        rest = iter(lines)
        for name, count in state.rows.items():
            rows = b"".join(next(rest) for _ in range(count))
            self._rows[named[name]] = rows
            self._counts[named[name]] = name, count
        self._stale = fresh & points.keys()


def state_of(run: Path) -> State | None:
    """Return what results.csv of a run was made from, None if that isn't known."""
    try:
        state = decode(State, (run / STATE).read_bytes())
    except (OSError, ValueError):
        return None
    return state if state.schema_version == table.SCHEMA_VERSION else None


def is_edited(run: Path) -> bool:
    """Return whether results.csv of a run is known to be another one than the run wrote."""
    state = state_of(run)
    try:
        return state is not None and zlib.crc32((run / table.RESULTS).read_bytes()) != state.results_crc32
    except OSError:
        return False


def _crc32(parts: Iterable[bytes]) -> int:
    total = 0
    for part in parts:
        total = zlib.crc32(part, total)
    return total
