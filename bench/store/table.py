"""The table of results, one row per case, as results.csv; a run keeps its rows by point, and how they were made."""

import csv
import io
import itertools
import time
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pandas as pd

from bench.plan.case import CASE_COLUMNS, CONTROL, Case, Point
from bench.plan.case import COLUMNS as POINT
from bench.plan.columns import Kind
from bench.plan.errors import WrongRequest
from bench.plan.invocation import suite
from bench.store import files
from bench.store.journal import Contents
from bench.store.metrics import COLUMNS as METRICS
from bench.store.record import check_schema
from bench.store.typed import decode

RESULTS = "results.csv"

SCHEMA_VERSION = 12
"""The version of results.csv; an older one must be written anew from the journal."""

END = "\r\n"
"""The end of a line of results.csv, as RFC 4180 has it."""

TEXT: Final = "string"
WHOLE: Final = "Int64"
NUMBER: Final = "Float64"
TRUTH: Final = "boolean"

TYPES = {Kind.TEXT: TEXT, Kind.COUNT: WHOLE, Kind.NUMBER: NUMBER, Kind.TRUTH: TRUTH}
"""The pandas type of each kind of a point's columns."""

OF_METRIC = {str: TEXT, tuple: TEXT, int: WHOLE, float: NUMBER, bool: TRUTH}
"""The pandas type of each kind of a metric."""

COLUMNS: dict[str, str] = {
    # the case
    **{name: TYPES[POINT[name].kind] if name in POINT else TEXT for name in CASE_COLUMNS},
    # outcome
    "status": TEXT,
    "detail": TEXT,
    **{name: OF_METRIC[metric.kind] for name, metric in METRICS.items()},
    # origin
    "env_id": TEXT,
    "device_name": TEXT,
    "torch_version": TEXT,
    "commit": TEXT,
    "started_at": TEXT,
    "schema_version": WHOLE,
}
"""Every column of results.csv with its pandas type, in order; a number that doesn't apply is missing, never 0."""

STATE = "results.state.json"
"""The file that says which lines of the journal results.csv was made from, with checksums of both."""

SHARE = 1 / 50
"""The largest share of the time in which results.csv is written while a run measures."""


def save(table: pd.DataFrame, run: Path) -> None:
    """Replace the run's results.csv by the table, at once or not at all; raises OSError if it can't be written."""
    text = table.to_csv(index=False, lineterminator=END)
    files.replace(run / RESULTS, text.encode(errors="backslashreplace"))


def csv_rows(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Return rows as they stand in results.csv; a cell that is missing or None is empty."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=END)
    writer.writerows([_cell(row.get(name), kind) for name, kind in COLUMNS.items()] for row in rows)
    return text.getvalue().encode(errors="backslashreplace")


def csv_header() -> bytes:
    """Return the first line of results.csv."""
    return (",".join(COLUMNS) + END).encode()


def csv_lines(content: bytes) -> list[bytes]:
    """Return the rows of results.csv with their ends, without the first line; a text in quotes may hold ends too."""
    lines: list[bytes] = []
    begun = b""
    for line in content.split(END.encode())[1:-1]:
        begun += line + END.encode()
        if begun.count(b'"') % 2 == 0:
            lines.append(begun)
            begun = b""
    return lines


def of_rows(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a table of rows, with the types of COLUMNS."""
    return typed(pd.DataFrame(rows, columns=list(COLUMNS)))


def load(path: str | Path) -> pd.DataFrame:
    """Return the results of a run folder or of a results file, one row per case, with the types of COLUMNS.

    Raises WrongRequest for a path without results, a file without rows, and one of another schema.
    """
    file = Path(path) / RESULTS if Path(path).is_dir() else Path(path)
    return read(file, file)


def read(file: Path, content: Path | io.BytesIO) -> pd.DataFrame:
    """Return the results in a file of this name, or in its content; raises WrongRequest as `load` does."""
    try:
        raw = pd.read_csv(content, dtype=str, compression=None, keep_default_na=False, na_values=[""])
    except FileNotFoundError:
        raise WrongRequest(f"{file} does not exist; expected a run folder or a {RESULTS}") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise WrongRequest(f"{file} is no results file: {str(error).strip().splitlines()[0]}") from None
    except OSError as error:
        raise WrongRequest(f"{file} can't be read: {error.strerror}") from None
    return _typed(file, raw)


def _typed(file: Path, raw: pd.DataFrame) -> pd.DataFrame:
    if "schema_version" not in raw.columns:
        raise WrongRequest(f"{file} is no results file: the column schema_version is missing")
    if raw.empty:
        raise WrongRequest(f"{file} holds no rows")
    try:
        anew = f"write it anew from the run's journal: {suite()} summarise RUN"
        versions = raw["schema_version"].astype(int)
        check_schema(int(versions.max()), SCHEMA_VERSION)
        if (oldest := int(versions.min())) < SCHEMA_VERSION:
            raise WrongRequest(f"schema_version {oldest} is older than this suite's, {SCHEMA_VERSION}; {anew}")
        if missing := [column for column in COLUMNS if column not in raw.columns]:
            raise WrongRequest(f"the column {missing[0]} is missing; {anew}")
        return typed(raw)
    except WrongRequest as error:
        raise WrongRequest(f"{file}: {error}") from None
    except (ValueError, TypeError, OverflowError) as error:
        raise WrongRequest(f"{file} is no results file: {error}") from None


def baseline_of(table: pd.DataFrame) -> str | None:
    """Return the implementation that all speed-ups of a table refer to, None if the table doesn't name exactly one."""
    names = table["baseline"].dropna().unique()
    return str(names[0]) if len(names) == 1 else None


def without_control(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of implementations."""
    return table[table["implementation"] != CONTROL]


def cases(table: pd.DataFrame) -> list[Case]:
    """Return the case of each row of a table."""
    rows = table[list(CASE_COLUMNS)].astype(object).to_dict("records")
    return [Case.from_columns({str(name): value for name, value in row.items()}) for row in rows]


def typed(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the columns and types of COLUMNS."""
    columns = {name: _column(table[name], kind) for name, kind in COLUMNS.items()}
    return pd.DataFrame(columns, index=table.index)


def _cell(value: Any, kind: str) -> Any:
    """Return a value as a cell of results.csv holds it, empty if it is missing or NaN."""
    if value is None or value != value:
        return ""
    return float(value) if kind == NUMBER else value


def _column(values: "pd.Series[Any]", kind: Any) -> "pd.Series[Any]":
    if kind == TRUTH:
        words = values.map({"True": True, "False": False, True: True, False: False}, na_action="ignore")
        if words.isna().sum() > values.isna().sum():
            raise ValueError(f"the column {values.name} must hold True or False")
        return words.astype(TRUTH)
    if kind in (WHOLE, NUMBER):
        return pd.to_numeric(values).astype(kind)
    return values.astype(TEXT)


class State(msgspec.Struct):
    """What results.csv was made from: so many bytes of the journal, and the numbers of rows by the names of points."""

    schema_version: int
    journal_bytes: int
    journal_crc32: int
    results_crc32: int
    rows: dict[str, int]


class Tabulation:
    """The rows of results.csv by point, as text, which are written if that takes little of the time, and at the end.

    A run that goes on keeps the rows of points that it doesn't measure again. `is_written` says whether the file holds
    all rows.
    """

    def __init__(self) -> None:
        self._rows: dict[Point, bytes] = {}
        self._counts: dict[Point, tuple[str, int]] = {}
        self._stale: set[Point] = set()
        self.is_written = True
        self._due_s = 0.0

    def __bool__(self) -> bool:
        return bool(self._rows)

    def __contains__(self, point: Point) -> bool:
        return point in self._rows and point not in self._stale

    def put(self, point: Point, rows: Sequence[Mapping[str, Any]]) -> None:
        """Replace the rows of a point."""
        self._rows[point] = csv_rows(rows)
        self._counts[point] = point.name, len(rows)
        self._stale.discard(point)
        self.is_written = False

    def set_stale(self, point: Point) -> None:
        """Say that the journal has newer records of a point."""
        self._stale.add(point)
        self.is_written = False

    @property
    def is_due(self) -> bool:
        """Whether there is something to write, and writing it takes a small share of the time since the last one."""
        return not self.is_written and time.monotonic() >= self._due_s

    def save(self, run: Path, journal: Contents, began_s: float) -> None:
        """Write results.csv and what it was made from, which is the whole journal: no point may be stale.

        `began_s` is the monotonic time at which its rows began to be made. Raises OSError if one can't be written.
        """
        content = b"".join([csv_header(), *self._rows.values()])
        files.replace(run / RESULTS, content)
        self.is_written = True
        counts = dict(self._counts.values())
        state = State(SCHEMA_VERSION, journal.end, journal.digest, zlib.crc32(content), counts)
        files.replace(run / STATE, msgspec.json.encode(state) + b"\n")
        end = time.monotonic()
        self._due_s = end + (end - began_s) * (1 / SHARE - 1)

    def table(self, point: Point | None = None) -> pd.DataFrame:
        """Return all rows as a table, or those of a point."""
        content = b"".join([csv_header(), *(self._rows.values() if point is None else [self._rows[point]])])
        return read(Path(RESULTS), io.BytesIO(content))

    def restore(self, run: Path, journal: Contents, state: State | None) -> None:
        """Take over the rows in results.csv of points without newer records, if nothing has changed it or the journal.

        `state` is that of the run's folder, and `journal` was scanned for its place.
        """
        content = _content(run)
        if not state or journal.digest_before != state.journal_crc32 or zlib.crc32(content) != state.results_crc32:
            return
        place = bisect_left(journal.entries, state.journal_bytes, key=lambda entry: entry.offset)
        points = {point.name: point for point in {entry.case.point for entry in journal.entries[:place]}}
        lines = csv_lines(content)
        if not content.startswith(csv_header()) or points.keys() != state.rows.keys():
            return
        if sum(state.rows.values()) != len(lines):
            return
        rest = iter(lines)
        for name, count in state.rows.items():
            self._rows[points[name]] = b"".join(itertools.islice(rest, count))
            self._counts[points[name]] = name, count
        self._stale = {entry.case.point for entry in journal.entries[place:]} & self._rows.keys()


def state_of(run: Path) -> State | None:
    """Return what results.csv of a run was made from, None if that isn't known."""
    try:
        state = decode(State, (run / STATE).read_bytes())
    except (OSError, ValueError):
        return None
    return state if state.schema_version == SCHEMA_VERSION else None


def is_edited(run: Path) -> bool:
    """Return whether results.csv of a run is known to be another one than the run wrote."""
    state = state_of(run)
    return state is not None and (run / RESULTS).exists() and zlib.crc32(_content(run)) != state.results_crc32


def _content(run: Path) -> bytes:
    """Return what is in results.csv of a run, nothing if it can't be read."""
    try:
        return (run / RESULTS).read_bytes()
    except OSError:
        return b""
