"""The tables of the documentation that follow from declarations, and the command that writes them anew.

`python -m bench.show.documented` replaces each table between its marks.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.plan.case import COLUMNS
from bench.plan.columns import DERIVED, REQUIRED, Column, Kind
from bench.plan.layers import LAYERS
from bench.show.columns import columns as shown_columns
from bench.show.terminal.console import rendered
from bench.show.terminal.listing import matrix
from bench.store.files import replace
from bench.store.metrics import COLUMNS as METRICS
from impls.catalogue import IMPLEMENTATIONS

ROOT = Path(__file__).parents[2]

SAMPLES = {Kind.COUNT: 8, Kind.NUMBER: 0.5, Kind.TRUTH: True}
"""A value of each kind whose form in a file name differs from the value itself."""


def columns() -> str:
    """Return the table of a point's columns."""
    rows = [(f"`{each.name}`", each.meaning, _values(each), *_default_and_short(each)) for each in COLUMNS.values()]
    return _table(("column", "meaning", "values", "default", "in file names"), rows)


def metrics() -> str:
    """Return the table of metrics, in the order of results.csv."""
    rows = [
        (f"`{metric.name}`", metric.unit.value, metric.combined.words if metric.combined else "", metric.meaning)
        for metric in METRICS.values()
    ]
    return _table(("column", "unit", "over the processes", "meaning"), rows)


def shown() -> str:
    """Return the table of the columns of a table of results, from left to right."""
    return _table(("column", "meaning"), [(each.heading, each.meaning) for each in shown_columns(None) if each.heading])


def implementations() -> str:
    """Return the table that says which implementation supports which layer, each reason below it an item of a list."""
    lines = [line for line in rendered(matrix(LAYERS, IMPLEMENTATIONS)).splitlines() if line]
    rows = [line for line in lines if line.startswith("|")]
    return "\n".join([*rows, "", *(f"- {reason}" for reason in lines if reason not in rows)])


TABLES: Mapping[str, tuple[Path, Callable[[], str]]] = {
    "columns": (Path("results/README.md"), columns),
    "metrics": (Path("results/README.md"), metrics),
    "shown": (Path("docs/terms.md"), shown),
    "implementations": (Path("docs/implementations.md"), implementations),
}
"""Each generated table by the name in its marks, with its file and what makes it."""


def with_tables(text: str) -> str:
    """Return a document with every generated table in it made anew; raises ValueError if an end mark is missing."""
    for name, (_, make) in TABLES.items():
        begin = f"<!-- table {name}, written by python -m bench.show.documented -->"
        end = f"<!-- end of table {name} -->"
        if begin in text:
            before, _, rest = text.partition(begin)
            after = rest[rest.index(end) :]
            text = f"{before}{begin}\n{make()}\n{after}"
    return text


def main() -> None:
    """Write the tables into their files."""
    for file in {ROOT / file for file, _ in TABLES.values()}:
        replace(file, with_tables(file.read_text(encoding="utf-8")).encode())


def _values(column: Column) -> str:
    if column.choices:
        return "; ".join(f"`{value}`: {meaning}" for value, meaning in column.choices.items())
    return "" if column.kind is Kind.TEXT else column.kind.value


def _default_and_short(column: Column) -> tuple[str, str]:
    default = "" if column.default in (REQUIRED, DERIVED) else f"`{column.default}`"
    return default, f"`{column.shortened(SAMPLES[column.kind])}`" if column.kind in SAMPLES else "the value"


def _table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [headings, tuple("---" for _ in headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines).replace("<", "&lt;")


if __name__ == "__main__":
    main()
