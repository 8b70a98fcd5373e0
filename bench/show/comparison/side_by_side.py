"""Times side by side: in two precisions, and beside published figures."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pandas as pd

from bench.analyse.change import Change
from bench.analyse.precision import WIDEST
from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.plan.published import AGREES, PARTS, Published, core_flops
from bench.plan.verdicts import EQUIVALENT
from bench.show import intervals
from bench.show.blocks import PLAIN, QUIET, Block, Column, Lines, Table, right
from bench.show.comparison.changes import TONES, time
from bench.show.rows import Row, by_point
from bench.show.text import parts
from bench.stats.estimates import UNKNOWN
from bench.store import units

OF_PRECISIONS = (
    f"as fast: the time in {WIDEST} over the time in the other precision, paired round by round in the same "
    "replicates, with its 99 % interval; above 1 the other is faster",
    "error: the deviation from float64 that came nearest to its tolerance, relative to the largest value",
)

OF_REFERENCES = (
    "ratio: published over measured, above 1 we are faster; a verdict needs the figure's own card and work, else it is "
    f"an order of magnitude; {EQUIVALENT}: neither time is more than {AGREES} times the other",
    "core alone: attention with q, k and v given; ours is the whole layer, with its projections, unless that is core",
    "FLOP/s of a core: 4·B·H·N·M·D operations forward, half of them with a causal mask, 2.5 times as many backward, as "
    "papers count; the column rate counts 2 times as many backward",
)

SHAPE = (
    *("mode", "batch", "num_tokens", "channels", "num_heads", "num_kv_tokens", "num_kv_heads"),
    *("qk_norm", "rope", "attn_bias", "window_size", "mask"),
)
"""The columns that name a point here."""


def precisions(changes: Sequence[Change]) -> list[Block]:
    """Return a row for each implementation and change of precision, the shapes one below the other.

    Raises WrongRequest if nothing was measured in several precisions.
    """
    if not changes:
        raise WrongRequest(
            f"no case was measured in {WIDEST} and in another dtype in the same rounds; "
            "a sweep that has both measures them so, for example --dtype float32,bfloat16"
        )
    columns = [
        Column("point", lambda of: " ".join(parts(of.point, SHAPE)), folds=True),
        Column("implementation", lambda of: of.case.implementation, folds=True),
        Column(WIDEST, lambda of: time(of.base), right),
        Column("error", lambda of: _error(of.base), right),
        Column("in", lambda of: of.point.dtype, folds=True),
        Column("", lambda of: time(of.new), right),
        Column("error", lambda of: _error(of.new), right),
        Column("as fast", lambda of: intervals.ratio(of.ratio), right),
    ]
    return [Table(columns, changes), Lines(OF_PRECISIONS, QUIET)]


def _error(row: Row) -> str:
    return "" if row["error"] is None else f"{row['error']:.1e}"


def references(table: pd.DataFrame, published: Iterable[Published]) -> list[Block]:
    """Return a row for each published figure that is for a case of the table, with our time and a verdict beside it.

    Raises WrongRequest if there is none.
    """
    figures = list(published)
    found = [
        (figure, _beside(figure, Case(point, figure.implementation), row))
        for point, of_point in by_point(table).items()
        for figure in figures
        for row in of_point
        if row["implementation"] == figure.implementation and figure.is_for(point)
    ]
    if not found:
        sources = ", ".join(dict.fromkeys(figure.source for figure in figures))
        raise WrongRequest(f"no published figure is for a case of this run; there are figures of {sources}")
    columns = [
        Column("point", lambda of: " ".join(parts(of[1].point, ("layer", "dtype", *SHAPE))), folds=True),
        Column("implementation", lambda of: of[0].implementation, folds=True),
        Column("published", lambda of: _theirs(*of), right),
        Column("measured", lambda of: _ours(*of), right),
        Column("ratio", lambda of: units.ratio(of[1].ratio.value), right),
        Column("verdict", lambda of: of[1].verdict, folds=True, tone=lambda of: TONES.get(of[1].verdict, PLAIN)),
        Column("called", lambda of: of[0].called, folds=True),
        Column("what", lambda of: PARTS[of[0].part], folds=True),
        Column("on", lambda of: of[0].machine, folds=True),
        Column("source", lambda of: of[0].source, folds=True),
    ]
    return [Table(columns, found), Lines(OF_REFERENCES, QUIET)]


def _beside(figure: Published, case: Case, row: Row) -> Change:
    """Return the change from a published figure to a row of ours."""
    theirs = {"status": "ok", "latency_s": figure.latency_s(case.point)}
    if row["status"] != "ok":
        return Change(case, "", theirs, row)
    verdict = figure.verdict(case.point, row["device_name"] or "", row["latency_s"])
    return Change(case, verdict, theirs, row, replace(UNKNOWN, value=theirs["latency_s"] / row["latency_s"]))


def _theirs(figure: Published, of: Change) -> str:
    """Return the time of a figure, behind the rate if it is one."""
    rates = {"items_per_s": f"{figure.value:g} items/s = "}
    rates |= {"core_flops_per_s": f"{units.rate(figure.value, 'FLOP/s')} = "}
    return f"{rates.get(figure.unit, '')}{time(of.base)}"


def _ours(figure: Published, of: Change) -> str:
    """Return our time, behind the rate of a core if the figure is one; the status if there is none."""
    is_rate = figure.unit == "core_flops_per_s" and of.point.layer == "core" and of.new["status"] == "ok"
    rate = f"{units.rate(core_flops(of.point) / of.new['latency_s'], 'FLOP/s')} = " if is_rate else ""
    return f"{rate}{time(of.new)}"
