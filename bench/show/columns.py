"""What is shown of a row: a column for each metric with a heading, and a few that follow from several cells.

The tables in the terminal, on pages, in Markdown and in docs/terms.md read these columns.
"""

from collections.abc import Callable, Sequence

from bench.analyse.flags import flags
from bench.analyse.rows import speedup_of
from bench.show import intervals
from bench.show.blocks import Cell, Column
from bench.show.rows import Row, data_sheet_share, is_measured, reason
from bench.show.text import by, cut, middle
from bench.store import units
from bench.store.metrics import COLUMNS as METRICS
from bench.store.metrics import Metric


def complete(rows: Sequence[Row], baseline: str | None) -> None:
    """Add to the rows of one point what follows from them.

    That is the share of the card's data sheet, and the calls until compiling pays.
    """
    for row in rows:
        row["data_sheet_share"] = data_sheet_share(row)


def columns(baseline: str | None) -> list[Column]:
    """Return the columns of rows of results that are `complete`, from left to right."""
    placed = [
        (0, Column("", lambda row: str(row["implementation"]), key="implementation",
            fit=lambda row, width: middle(str(row["implementation"]), width))),
        (10, Column("", lambda row: "".join(flag.letter for flag in flags(row)) if is_measured(row) else "",
            key="flags")),
        (45, Column("slower by", slower_by, lambda row: row["slowdown_high"], key="slower_by",
            meaning="how much more time a row takes than the fastest of its point, from the least to the most that the "
            "intervals of its ratios to all other rows allow")),
        (115, Column("of data sheet", lambda row: units.percent(row["data_sheet_share"]),
            lambda row: row["data_sheet_share"], 10, "data_sheet_share",
            "the least time that `flops` and `least_bytes` can take by the data sheet of the card, over `latency_s`; "
            "empty for a card or dtype whose rates are not known")),
        *((metric.heading.place, of_metric(metric, baseline)) for metric in METRICS.values() if metric.heading),
    ]  # fmt: skip
    return [column for _, column in sorted(placed, key=lambda each: each[0])]


def of_metric(metric: Metric, baseline: str | None) -> Column:
    """Return the column of a metric."""

    def text(row: Row) -> str:
        if metric.name == "speedup":
            return speedup_text(row, baseline)[0]
        return TEXTS[metric.name](row) if metric.name in TEXTS else units.formatted(row[metric.name], metric.unit)

    interval, interval_rank = INTERVALS.get(metric.name, (None, 0))
    return Column(
        metric.heading.text if metric.heading else metric.name,
        text,
        None if metric.kind in (str, tuple) else lambda row: row[metric.name],
        metric.heading.rank if metric.heading else 0,
        metric.name,
        MEANINGS.get(metric.name, metric.meaning),
        interval,
        interval_rank=interval_rank,
        more=MORE.get(metric.name),
        of_failures=metric.name in MORE,
    )


def of_page(rows: Sequence[Row], baseline: str | None) -> list[Column]:
    """Return the columns of a page with these rows: the point, the implementation, how it ended, and what any row has.

    The page fills in the points.
    """
    others = [each for each in columns(baseline) if each.key != "implementation"]
    return [*OF_ALL, *(each for each in others if any(of_any(each, row).text for row in rows))]


def of_any(column: Column, row: Row) -> Cell:
    """Return the cell of a row that may have no time."""
    return column.cell(row) if column.of_failures or is_measured(row) else Cell("")


def latency_text(row: Row) -> str:
    """Return a latency with half the width of its interval: `84.0 ms ±9.7%`."""
    return " ".join(filter(None, (units.seconds(row["latency_s"]), _latency_interval(row))))


def memory_text(row: Row) -> str:
    """Return a peak of memory, empty if it isn't known."""
    return units.size(row["memory_bytes"])


def slower_by(row: Row) -> str:
    """Return by how much a row is slower than the fastest of its point: `0 to 2.9%`, empty without a bound."""
    low, high = row["slowdown_low"], row["slowdown_high"]
    return "" if low is None or high is None else by(low, high).removeprefix("by ")


def _latency_interval(row: Row) -> str:
    return units.half_width(row["latency_low_s"], row["latency_high_s"])


def speedup_text(row: Row, baseline: str | None) -> tuple[str, str]:
    """Return a row's speed-up and its interval, `baseline` for the baseline, empty if there is none."""
    if row["implementation"] == baseline:
        return "baseline", ""
    value, _, interval = intervals.ratio(speedup_of(row)).partition(" ")
    return value, interval


LONGEST_WAY = 50
"""How an implementation got into a module is cut to this number of characters."""

TEXTS: dict[str, Callable[[Row], str]] = {
    "kernels": lambda row: algorithm(row["kernels"]),
    "adapted_by": lambda row: cut(row["adapted_by"] or "", LONGEST_WAY),
    "memory_bytes": memory_text,
}
"""The cells of metrics that say more than a value in its unit."""

MORE = {"kernels": lambda row: ", ".join((row["kernels"] or "").split(";"))}
"""What a page unfolds, also of a case without a time."""

INTERVALS: dict[str, tuple[Callable[[Row], str], int]] = {
    "latency_s": (_latency_interval, 1),
    "speedup": (lambda row: speedup_text(row, row.get("baseline"))[1], 0),
}
"""What stands beside a metric, with its rank."""

MEANINGS = {
    "latency_s": "seconds per call with half the width of its 95 % interval: the level of all times of a point moves "
    "with the machine, so it is wider than that of a ratio",
    "speedup": "the ratio to the baseline with its 99 % interval",
    "kernels": "the kernels that did the work, in short: `flash`, `products` (matrix products), `fast path` (that of "
    "`nn.MultiheadAttention`), `fused` (one operator of another runtime computes the core), `compiled`",
    "memory_bytes": "the most that one call held at once, beyond its input and weights, and what is kept between "
    "calls; empty if torch's allocator doesn't see it",
}
"""What the columns mean whose cells say more than the metric; the others have its meaning."""

OF_ALL = (
    Column("point", lambda _: "", key="point"),
    Column("implementation", lambda row: str(row["implementation"]), key="implementation", of_failures=True),
    Column("status", lambda row: ": ".join(filter(None, (row["status"], reason(row)))), key="status", of_failures=True),
)
"""The columns that every page has."""

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
"""Parts of kernel names, and the algorithm that each shows."""

MULTIPLY = ("mm", "bmm", "addmm", "baddbmm", "matmul", "gemm", "dot")
"""Names of matrix products."""

LONGEST_KERNEL = 24
"""A kernel's own name is cut to this number of characters."""

PRODUCTS = "products"
"""The word if no single kernel does the whole: matrix products with some softmax between them."""


def algorithm(kernels: str | None) -> str:
    """Return the algorithm that ran, and whether a compiler's own kernels did, for the kernels of a row."""
    if not kernels:
        return ""
    names = kernels.split(";")
    algorithms = [word for part, word in ALGORITHMS.items() if any(part in name for name in names)]
    compiled = any(name == "CompiledFxGraph" or name.startswith(("triton_", "cpp_fused")) for name in names)
    return " + ".join([*(dict.fromkeys(algorithms) or [_plain(names)]), *(["compiled"] if compiled else [])])


def _plain(names: list[str]) -> str:
    """Return that products ran, or else the name of the first kernel."""
    if any(
        name.split()[0].removesuffix("_out").lower() in MULTIPLY or "gemm" in name or "conv" in name for name in names
    ):
        return PRODUCTS
    return cut(names[0], LONGEST_KERNEL)
