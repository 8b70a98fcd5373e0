"""The table of a page: the cells of each case as text, with the numbers by which they are sorted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.analyse.derived import calls_until_paid
from bench.plan.case import Case
from bench.plan.layers import peak_bytes
from bench.show.answer import speedup_cell
from bench.show.rows import Row, reason
from bench.show.terminal.flags import flags
from bench.show.terminal.kernels import algorithm
from bench.store import units


@dataclass(frozen=True)
class Cell:
    """A cell: its text, the number by which its column is sorted, None for a text, and what it has to say in full."""

    text: str
    number: float | None = None
    more: str = ""


@dataclass(frozen=True)
class Column:
    """A column of the table; `key` names it to the page's script."""

    key: str
    heading: str
    is_number: bool = False


COLUMNS = (
    Column("point", "point"),
    Column("implementation", "implementation"),
    Column("status", "status"),
    Column("letters", "flags"),
    Column("speedup", "speed-up", is_number=True),
    Column("latency", "latency", is_number=True),
    Column("memory", "peak memory", is_number=True),
    Column("predicted", "predicted", is_number=True),
    Column("roofline", "of roofline", is_number=True),
    Column("compile", "first compile", is_number=True),
    Column("paid", "compiling pays after", is_number=True),
    Column("flagged", "disturbed", is_number=True),
    Column("ran", "kernels that ran"),
)
"""The columns from left to right."""


def complete(rows: Sequence[Row], baseline: str | None) -> None:
    """Add to the rows of one point what follows from them: predicted memory, calls until paid, flags."""
    for row in rows:
        row["predicted_bytes"] = _predicted(row)
        row["paid"] = calls_until_paid(row, rows, baseline)
        row["letters"] = "".join(flag.letter for flag in flags(row)) if row["status"] == "ok" else ""


def cells(row: Row, label: str, baseline: str | None) -> list[Cell]:
    """Return the cells of a row, one for each of COLUMNS."""
    made = (maker(row, baseline) for maker in MAKERS)
    return [Cell(label), Cell(str(row["implementation"])), *made]


def latency_text(row: Row) -> str:
    """Return a latency with half the width of its interval: `84.0 ms ±9.7%`."""
    half = units.half_width(row["latency_low_s"], row["latency_high_s"])
    return f"{units.seconds(row['latency_s'])}{f' ±{units.percent(half)}' if half is not None else ''}"


def memory_text(row: Row) -> str:
    """Return a peak of memory, and that the system measured it if torch can't know it."""
    by_system = row["peak_bytes"] is None and row["memory_bytes"] is not None
    return f"{units.size(row['memory_bytes'])}{' by the system' if by_system else ''}"


def _predicted(row: Row) -> int | None:
    return peak_bytes(Case.from_columns(row))


def _predicted_cell(row: Row, _: str | None) -> Cell:
    expected = row["predicted_bytes"]
    if expected is None or row["status"] != "ok":
        return Cell("")
    by = f" ({row['peak_bytes'] / expected - 1:+.1%})" if row["peak_bytes"] else ""
    return Cell(f"{units.size(expected)}{by}", float(expected))


def _paid_cell(row: Row, _: str | None) -> Cell:
    calls = row["paid"]
    if calls is None:
        is_compiled = row["status"] == "ok" and row["compile_cold_s"] is not None
        return Cell("not shown") if is_compiled else Cell("")
    return Cell("never", 1e300) if calls == float("inf") else Cell(f"{calls:,.0f} calls", float(calls))


def _number(column: str, text: Callable[[Any], str]) -> Callable[[Row, str | None], Cell]:
    def cell(row: Row, _: str | None) -> Cell:
        value = row[column] if row["status"] == "ok" else None
        return Cell("") if value is None else Cell(text(value), float(value))

    return cell


def _with_text(column: str, text: Callable[[Row], str]) -> Callable[[Row, str | None], Cell]:
    def cell(row: Row, _: str | None) -> Cell:
        return Cell("") if row["status"] != "ok" or row[column] is None else Cell(text(row), float(row[column]))

    return cell


def _speedup(row: Row, baseline: str | None) -> Cell:
    value = row["speedup"]
    if row["status"] != "ok" or value is None:
        return Cell("")
    return Cell(speedup_cell(row, baseline), float(value))


def _ran(row: Row, _: str | None) -> Cell:
    kernels = row["kernels"]
    if not kernels:
        return Cell("")
    short = algorithm(kernels)
    names = ", ".join(kernels.split(";"))
    return Cell(short, more=names)


def _status(row: Row, _: str | None) -> Cell:
    return Cell(": ".join(filter(None, (row["status"], reason(row)))))


MAKERS: tuple[Callable[[Row, str | None], Cell], ...] = (
    _status,
    lambda row, _: Cell(row["letters"]),
    _speedup,
    _with_text("latency_s", latency_text),
    _with_text("memory_bytes", memory_text),
    _predicted_cell,
    _number("roofline_share", units.percent),
    _number("compile_cold_s", units.seconds),
    _paid_cell,
    _number("flagged_share", units.percent),
    _ran,
)
"""What makes each cell after the first two, in the order of COLUMNS."""
