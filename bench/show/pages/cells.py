"""The table of a page: the cells of each case as text, with the numbers by which they are sorted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.analyse.derived import calls_until_paid
from bench.plan.case import Case
from bench.plan.layers import peak_bytes
from bench.show.answer import speedup_cell
from bench.show.rows import Row, reason
from bench.show.terminal.flags import flags
from bench.show.terminal.kernels import algorithm
from bench.store import units
from bench.store.metrics import COLUMNS as METRICS
from bench.store.metrics import Metric


@dataclass(frozen=True)
class Cell:
    """A cell: its text, the number by which its column is sorted, None for a text, and what it has to say in full."""

    text: str
    number: float | None = None
    more: str = ""


@dataclass(frozen=True)
class Column:
    """A column of the table; `key` names it to the page's script. That of a metric is the metric's name."""

    key: str
    heading: str
    is_number: bool = False


Maker = Callable[[Row, str | None], Cell]
"""What makes a cell of a row; it takes the name of the baseline too."""


def columns(rows: Sequence[Row]) -> list[tuple[Column, Maker]]:
    """Return the columns from left to right: those of metrics as in the terminal if any row has one, and others."""
    metrics = [metric for metric in METRICS.values() if metric.heading and any(row[metric.name] for row in rows)]
    placed: list[tuple[int, Column, Maker]] = [
        (0, Column("implementation", "implementation"), lambda row, _: Cell(str(row["implementation"]))),
        (1, Column("status", "status"), _status),
        (2, Column("letters", "flags"), lambda row, _: Cell(row["letters"])),
        (60, Column("predicted_bytes", "predicted", is_number=True), _predicted_cell),
        (110, Column("paid", "compiling pays after", is_number=True), _paid_cell),
        *(
            (each.heading.place, Column(each.name, each.heading.text, is_number=each.kind in (int, float)), _of(each))
            for each in metrics
            if each.heading
        ),
    ]
    return [(column, maker) for _, column, maker in sorted(placed, key=lambda each: each[0])]


def complete(rows: Sequence[Row], baseline: str | None) -> None:
    """Add to the rows of one point what follows from them: predicted memory, calls until paid, flags."""
    for row in rows:
        row["predicted_bytes"] = peak_bytes(Case.from_columns(row))
        row["paid"] = calls_until_paid(row, rows, baseline)
        row["letters"] = "".join(flag.letter for flag in flags(row)) if row["status"] == "ok" else ""


def text_of(metric: Metric, row: Row, baseline: str | None) -> str:
    """Return the value of a metric in a row as text, with its interval if it has one; empty if there is none."""
    if row["status"] != "ok" or row[metric.name] is None:
        return ""
    texts: dict[str, Callable[[], str]] = {
        "speedup": lambda: speedup_cell(row, baseline),
        "latency_s": lambda: latency_text(row),
        "memory_bytes": lambda: memory_text(row),
    }
    return texts.get(metric.name, lambda: units.formatted(row[metric.name], metric.unit))()


def latency_text(row: Row) -> str:
    """Return a latency with half the width of its interval: `84.0 ms ±9.7%`."""
    half = units.half_width(row["latency_low_s"], row["latency_high_s"])
    return f"{units.seconds(row['latency_s'])}{f' ±{units.percent(half)}' if half is not None else ''}"


def memory_text(row: Row) -> str:
    """Return a peak of memory, and that the system measured it if torch can't know it."""
    by_system = row["peak_bytes"] is None and row["memory_bytes"] is not None
    return f"{units.size(row['memory_bytes'])}{' by the system' if by_system else ''}"


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


def _of(metric: Metric) -> Maker:
    def cell(row: Row, baseline: str | None) -> Cell:
        if metric.kind is tuple:
            names = row[metric.name] or ""
            return Cell(algorithm(names), more=", ".join(names.split(";"))) if names else Cell("")
        text = text_of(metric, row, baseline)
        return Cell(text, float(row[metric.name])) if text else Cell("")

    return cell


def _status(row: Row, _: str | None) -> Cell:
    return Cell(": ".join(filter(None, (row["status"], reason(row)))))
