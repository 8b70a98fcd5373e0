"""The columns of results: the default ones, a page's, and any other by its name.

The tables in the terminal, on pages, in Markdown and in docs/terms.md use these columns.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bench.analyse.flags import flags
from bench.analyse.rows import Row, is_measured
from bench.analyse.standing import FASTEST
from bench.show.answer import speedup_cell
from bench.show.blocks import Column
from bench.show.text import cut, more
from bench.store import units
from bench.store.metrics import COLUMNS as METRICS
from bench.store.metrics import Unit
from bench.store.table import COLUMNS, NUMBER, WHOLE

HEADINGS: Mapping[str, str] = {
    "latency_s": "latency",
    "host_s": "host",
    "speedup": "vs {baseline}",
    "slowdown_high": "within",
    "memory_bytes": "memory",
    "saved_bytes": "kept for backward",
    "energy_j": "energy",
    "kernels": "ran",
}
"""The headings of a page's columns, from left to right; any other column is headed by its name."""

DEFAULT: Mapping[str, int] = {"latency_s": 0, "speedup": 0, "slowdown_high": 0, "memory_bytes": 2, "kernels": 3}
"""The columns that `show` prints by default, with ranks: a narrow terminal drops the highest first."""

WITHIN = "within: at most this much slower than the fastest (99% confidence, this run)"
"""A table's note on the column `within`."""

IMPLEMENTATION = Column("implementation", lambda row: str(row["implementation"]), folds=True, is_code=True)
LETTERS = Column("doubt", lambda row: "".join(flag.letter for flag in flags(row)) if is_measured(row) else "")


def default(baseline: str | None) -> list[Column]:
    """Return the columns that `show` prints by default."""
    return [IMPLEMENTATION, *(named(name, baseline, rank) for name, rank in DEFAULT.items()), LETTERS]


def chosen(names: Iterable[str], baseline: str | None) -> list[Column]:
    """Return the column `implementation` and these columns."""
    return [IMPLEMENTATION, *(named(name, baseline) for name in names if name != "implementation"), LETTERS]


def of_page(baseline: str | None) -> list[Column]:
    """Return the columns of a page with rows that have a `label`."""
    point = Column("point", lambda row: str(row["label"]))
    return [point, IMPLEMENTATION, LETTERS, *(named(name, baseline) for name in HEADINGS)]


def named(name: str, baseline: str | None, rank: int = 0) -> Column:
    """Return the column with this name in a table of results."""
    is_number = COLUMNS[name] in (WHOLE, NUMBER)

    def text(row: Row) -> str:
        if name == "speedup":
            return speedup_cell(row, baseline) if is_measured(row) else ""
        return TEXTS[name](row) if name in TEXTS else _plain(name, row[name])

    return Column(
        HEADINGS.get(name, name).format(baseline=baseline or "baseline"),
        text,
        (lambda row: row[name]) if is_number else None,
        rank,
        folds=not is_number and name not in HEADINGS,
    )


def _plain(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name in METRICS and METRICS[name].unit != Unit.NONE:
        return units.formatted(value, METRICS[name].unit)
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _latency(row: Row) -> str:
    """Return a latency with its interval's half-width, such as `84.0 ms ±9.7%`, or the status of a row without one."""
    if not is_measured(row):
        return str(row["status"])
    width = units.half_width(row["latency_low_s"], row["latency_high_s"])
    return " ".join(filter(None, (units.seconds(row["latency_s"]), width)))


def _within(row: Row) -> str:
    """Return a row's bound against the fastest of its point: `fastest`, `3.4%`, or empty if unknown."""
    if row["standing"] == FASTEST:
        return FASTEST
    return "" if row["slowdown_high"] is None else more(row["slowdown_high"])


TEXTS: Mapping[str, Callable[[Row], str]] = {
    "latency_s": _latency,
    "slowdown_high": _within,
    "kernels": lambda row: algorithm(row["kernels"]),
}
"""The functions for cells that aren't just a value with its unit."""

ALGORITHMS = {
    "flash_attention": "flash",
    "flash_fwd": "flash",
    "efficient_attention": "efficient",
    "cudnn_attention": "cudnn",
    "attention_math": "math",
    "native_multi_head_attention": "fast path",
    "flex_attention": "flex",
    "MultiHeadAttention": "fused",
    "MatMul+Softmax+MatMul": "fused",
    "Softmax+MatMul": "fused",
}
"""Parts of kernel names, with the algorithm that each indicates."""

MULTIPLY = ("mm", "bmm", "addmm", "baddbmm", "matmul", "gemm", "dot")
"""Names of matrix products."""

LONGEST_KERNEL = 24
"""A kernel's own name is cut to this number of characters."""

PRODUCTS = "products"
"""The word for matrix products with a softmax between them, without a single kernel for the whole."""


def algorithm(kernels: str | None) -> str:
    """Return the algorithm that a row's kernels ran, and whether some of them came from a compiler."""
    if not kernels:
        return ""
    names = kernels.split(";")
    own = [name for name in names if name != "CompiledFxGraph" and not name.startswith(("triton_", "cpp_fused"))]
    algorithms = [word for part, word in ALGORITHMS.items() if any(part in name for name in names)]
    words = dict.fromkeys(algorithms or filter(None, [_first(own)]))
    return " + ".join([*words, *(["compiled"] if len(own) < len(names) else [])])


def _first(names: list[str]) -> str:
    """Return PRODUCTS if any kernel is one, else the first kernel's name; empty without kernels."""
    if not names:
        return ""
    if any(
        name.split()[0].removesuffix("_out").lower() in MULTIPLY or "gemm" in name or "conv" in name for name in names
    ):
        return PRODUCTS
    return cut(names[0], LONGEST_KERNEL)
