"""Lists in the documents that follow from declarations: `python -m tests.documented` writes each between its marks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from bench.analyse.flags import FLAGS, Flag
from bench.plan.case import COLUMNS
from bench.plan.columns import DERIVED, REQUIRED, PointColumn, ValueKind, flag
from bench.plan.layers import LAYERS
from bench.show.columns import DEFAULT, HEADINGS
from bench.store.files import replace
from bench.store.metrics import COLUMNS as METRICS
from bench.store.table import FILE
from impls.catalogue import IMPLEMENTATIONS

ROOT = Path(__file__).parents[1]

SAMPLES = {ValueKind.COUNT: 8, ValueKind.NUMBER: 0.5, ValueKind.TRUTH: True}
"""A value of each kind whose form in a file name differs from the value itself."""

MEANINGS: Mapping[str, str] = {
    "latency_s": "`latency_s` ± half its interval, or the status",
    "speedup": "`speedup` with its interval",
    "slowdown_high": "at most this much slower than the fastest (`slowdown_high`)",
    "kernels": "`kernels` in short, as `flash`, `products` (matrix products), `fast path` (`nn.MultiheadAttention`), "
    "`fused` (another runtime's operator for the core), `compiled`",
}
"""The meaning of columns whose cells aren't just a value with its unit."""


def columns() -> str:
    """Return the list of a point's columns: name, short form in file names, meaning, values and default."""
    lines = [f"- `{each.name}`{_short(each)}: {each.meaning}{_values(each)}" for each in COLUMNS.values()]
    return "\n".join(lines).replace("<", "&lt;")


def options() -> str:
    """Return the list of the options for columns by kind, and by the suite's layers that take them."""
    of: dict[tuple[str, str], list[str]] = {}
    for column in COLUMNS.values():
        layers = _layers([layer.name for layer in LAYERS.values() if column.name not in layer.without])
        of.setdefault((column.group, layers), []).append(f"`{flag(column.name)}`")
    rows = sorted(of.items(), key=lambda row: row[0][0], reverse=True)
    return "\n".join(f"- {kind}{layers and f' ({layers})'}: {', '.join(names)}" for (kind, layers), names in rows)


def metrics() -> str:
    """Return the list of the metrics in results.csv, in its order."""
    return _metrics(name for name in FILE if name in METRICS)


def further_metrics() -> str:
    """Return the list of the metrics that are not in results.csv."""
    return _metrics(name for name in METRICS if name not in FILE)


def _metrics(names: Iterable[str]) -> str:
    of: dict[str, list[str]] = {}
    for name in names:
        of.setdefault(METRICS[name].meaning, []).append(f"`{name}`")
    return "\n".join(f"- {', '.join(names)}: {meaning}" for meaning, names in of.items())


def shown() -> str:
    """Return the list of the columns of `show` and of a page, from left to right, with the metric or the meaning."""
    lines = [
        f"- *{heading.format(baseline='BASELINE')}*{'' if name in DEFAULT else ' (`report.html` only)'}: "
        f"{MEANINGS.get(name, f'`{name}`')}"
        for name, heading in HEADINGS.items()
    ]
    return "\n".join(lines)


def letters() -> str:
    """Return the list of the letters beside a row."""
    return "\n".join(f"- `{each.letter}`: {each.meaning}{_advice(each)}" for each in FLAGS)


def implementations() -> str:
    """Return the list of implementations by where they are supported, with the layers that they can compute."""
    supported: dict[tuple[str, str], list[str]] = {}
    for name, entry in IMPLEMENTATIONS.items():
        layers = _layers([layer.name for layer in LAYERS.values() if not entry.refusal(layer.class_name)])
        supported.setdefault((entry.supports, layers), []).append(f"`{name}`")
    lines = [
        f"- {', '.join(names)}: {where}{layers and f'; layers {layers}'}"
        for (where, layers), names in supported.items()
    ]
    return "\n".join(lines)


TABLES: Mapping[str, tuple[Path, Callable[[], str]]] = {
    "columns": (Path("results/README.md"), columns),
    "metrics": (Path("results/README.md"), metrics),
    "further metrics": (Path("results/README.md"), further_metrics),
    "shown": (Path("docs/terms.md"), shown),
    "letters": (Path("docs/terms.md"), letters),
    "implementations": (Path("docs/implementations.md"), implementations),
    "options": (Path("docs/sweeps.md"), options),
}
"""Each generated list by the name in its marks, with its file and what makes it."""


def with_tables(text: str) -> str:
    """Return a document with every generated list regenerated; raises ValueError if an end mark is missing."""
    for name, (_, make) in TABLES.items():
        begin = f"<!-- table {name}, written by python -m tests.documented -->"
        end = f"<!-- end of table {name} -->"
        if begin in text:
            before, _, rest = text.partition(begin)
            after = rest[rest.index(end) :]
            text = f"{before}{begin}\n{make()}\n{after}"
    return text


def main() -> None:
    """Write the lists into their files."""
    for file in {ROOT / file for file, _ in TABLES.values()}:
        replace(file, with_tables(file.read_text(encoding="utf-8")).encode())


def _values(column: PointColumn) -> str:
    kind = {ValueKind.TEXT: "", ValueKind.COUNT: ""}.get(column.kind, column.kind.value)
    values = ", ".join(f"`{value}`" for value in column.choices) or kind
    default = "" if column.default in (REQUIRED, DERIVED) else f"default `{column.default}`"
    return "".join(f"; {each}" for each in (values, default) if each)


def _short(column: PointColumn) -> str:
    return f" (`{column.shortened(SAMPLES[column.kind])}`)" if column.kind in SAMPLES else ""


def _advice(letter: Flag) -> str:
    return f". {letter.advice[0].upper()}{letter.advice[1:]}." if letter.advice else "."


def _layers(names: Sequence[str]) -> str:
    """Return these layers, or an empty text for all of them."""
    return "" if len(names) == len(LAYERS) else ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    main()
