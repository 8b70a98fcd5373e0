"""The table of results, one row per case, in memory and as results.csv.

In memory it has everything in the journal; results.csv has the columns that people read.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from bench.plan import controls
from bench.plan.case import CASE_COLUMNS, CONTROL, Case
from bench.plan.case import COLUMNS as POINT
from bench.plan.columns import ValueKind
from bench.plan.errors import WrongRequest
from bench.plan.invocation import suite
from bench.plan.names import check_texts
from bench.store import files
from bench.store.metrics import COLUMNS as METRICS
from bench.store.record import TEXTS, Origin, check_version

RESULTS = "results.csv"

END = "\r\n"
"""The line end of results.csv, as in RFC 4180."""

TEXT: Final = "string"
WHOLE: Final = "Int64"
NUMBER: Final = "Float64"
TRUTH: Final = "boolean"

TYPES = {ValueKind.TEXT: TEXT, ValueKind.COUNT: WHOLE, ValueKind.NUMBER: NUMBER, ValueKind.TRUTH: TRUTH}
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
    **{each.name: TEXT for each in dataclasses.fields(Origin)},
    "schema_version": WHOLE,
}
"""Every column of a table with its pandas type; a number that doesn't apply is missing, not 0."""

FILE = (
    *CASE_COLUMNS,
    "point",
    "status",
    "detail",
    # time
    "latency_s",
    "latency_low_s",
    "latency_high_s",
    "host_s",
    "baseline",
    "speedup",
    "speedup_low",
    "speedup_high",
    "rank",
    "standing",
    "slowdown",
    "slowdown_low",
    "slowdown_high",
    # cost and work
    "memory_bytes",
    "saved_bytes",
    "energy_j",
    "compile_cold_s",
    "flops",
    # doubts
    "error",
    "flagged_share",
    "processes",
    # provenance
    "kernels",
    "env_id",
    "device_name",
    "torch_version",
    "commit",
    "schema_version",
)
"""The columns of results.csv in order, the same for every run; columns that apply to no row are empty."""


def save(table: pd.DataFrame, run: Path) -> None:
    """Replace the run's results.csv atomically; raises OSError if it can't be written."""
    files.replace(run / RESULTS, as_csv(table))


def as_csv(table: pd.DataFrame, columns: Sequence[str] = FILE) -> bytes:
    """Return columns of a table as CSV in the format of results.csv."""
    return table[[*columns]].to_csv(index=False, lineterminator=END).encode(errors="backslashreplace")


def of_rows(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a table of rows, with the types of COLUMNS."""
    return typed(pd.DataFrame(rows, columns=list(COLUMNS)))


def load(path: str | Path) -> pd.DataFrame:
    """Return the results of a run folder or of a results file, one row per case, with the types of COLUMNS.

    Columns that are not in FILE are empty. Raises WrongRequest for a path without results, a file without rows, or a
    file of another schema.
    """
    file = Path(path) / RESULTS if Path(path).is_dir() else Path(path)
    try:
        raw = pd.read_csv(file, dtype=str, compression=None, keep_default_na=False, na_values=[""])
    except FileNotFoundError:
        raise WrongRequest(f"{file} does not exist; expected a run folder or a {RESULTS}") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise WrongRequest(f"{file} is not a results file: {str(error).strip().splitlines()[0]}") from None
    except OSError as error:
        raise WrongRequest(f"{file} can't be read: {error.strerror}") from None
    return _typed(file, raw)


def _typed(file: Path, raw: pd.DataFrame) -> pd.DataFrame:
    if "schema_version" not in raw.columns:
        raise WrongRequest(f"{file} is not a results file: the column schema_version is missing")
    if raw.empty:
        raise WrongRequest(f"{file} has no rows")
    try:
        anew = f"rewrite it from the run's journal with {suite()} summarise RUN"
        versions = raw["schema_version"].astype(int)
        for version in sorted({*versions}):
            check_version(version)
        if missing := [column for column in FILE if column not in raw.columns]:
            raise WrongRequest(f"the column {missing[0]} is missing; {anew}")
        for words in raw[[*TEXTS]].drop_duplicates().fillna("").itertuples(index=False):
            check_texts(*words)
        return typed(raw)
    except WrongRequest as error:
        raise WrongRequest(f"{file}: {error}") from None
    except (ValueError, TypeError, OverflowError) as error:
        raise WrongRequest(f"{file} is not a results file: {error}") from None


def baseline_of(table: pd.DataFrame) -> str | None:
    """Return the implementation that all speed-ups of a table refer to; None unless the table names exactly one."""
    names = table["baseline"].dropna().unique()
    return str(names[0]) if len(names) == 1 else None


def without_control(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table without the control's rows."""
    return table[table["implementation"] != CONTROL]


def cases(table: pd.DataFrame) -> list[Case]:
    """Return the case of each row of a table."""
    rows = table[list(CASE_COLUMNS)].astype(object).to_dict("records")
    return [Case.from_columns({str(name): value for name, value in row.items()}) for row in rows]


def visible(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the control characters in its texts escaped, because they quote other programs."""
    shown: pd.DataFrame = table.apply(lambda column: _visible(column) if column.dtype == TEXT else column)
    return shown


def _visible(column: "pd.Series[Any]") -> "pd.Series[Any]":
    has_any = any(map(controls.CONTROLLING.search, column.dropna().unique()))
    return column.map(controls.visible, na_action="ignore").astype(TEXT) if has_any else column


def typed(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the columns and types of COLUMNS; missing columns are empty."""
    table = table.reindex(columns=[*COLUMNS])
    return pd.DataFrame({name: _column(table[name], kind) for name, kind in COLUMNS.items()}, index=table.index)


def _column(values: "pd.Series[Any]", kind: Any) -> "pd.Series[Any]":
    if kind == TRUTH:
        words = values.map({"True": True, "False": False, True: True, False: False}, na_action="ignore")
        if words.isna().sum() > values.isna().sum():
            raise ValueError(f"the column {values.name} must hold True or False")
        return words.astype(TRUTH)
    if kind in (WHOLE, NUMBER):
        return pd.to_numeric(values).astype(kind)
    return values.astype(TEXT)
