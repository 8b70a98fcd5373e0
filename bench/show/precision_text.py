"""What a change of precision brings, in a sentence."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pandas as pd

from bench.analyse.conclusions import WIDEST, Change
from bench.plan.case import Case, Point
from bench.show import intervals
from bench.show.rows import Row, plain
from bench.stats.estimates import Interval


def in_words(table: pd.DataFrame, changes: Iterable[Change]) -> list[str]:
    """Return a line for each other dtype: what it brings at each shape to the implementation that is fastest in it."""
    rows = {Case.from_columns(row): row for row in plain(table)}
    fastest: dict[str, dict[Point, tuple[Change, Row, Row]]] = {}
    for change in changes:
        wide = rows[Case(change.point, change.implementation)]
        narrow = rows[Case(replace(change.point, dtype=change.dtype), change.implementation)]
        of_dtype = fastest.setdefault(change.dtype, {})
        if change.point not in of_dtype or narrow["latency_s"] < of_dtype[change.point][2]["latency_s"]:
            of_dtype[change.point] = (change, wide, narrow)
    return [_sentence(dtype, [*of_dtype.values()]) for dtype, of_dtype in fastest.items()]


def _sentence(dtype: str, cases: Sequence[tuple[Change, Row, Row]]) -> str:
    """Return what a dtype brings, at one shape with the interval, else from the least to the most."""
    least, most = (choose(cases, key=lambda each: each[0].speedup.value)[0] for choose in (min, max))
    wide = max(row["error"] or 0.0 for _, row, _ in cases)
    narrow = max(row["error"] or 0.0 for _, _, row in cases)
    cost = f"with an error of {narrow:.1e} instead of {wide:.1e}"
    name = least.implementation
    if len(cases) == 1:
        speedup = intervals.ratio(Interval(least.speedup.value, least.speedup.low, least.speedup.high))
        return f"{dtype} instead of {WIDEST}: {name} is {speedup} as fast, {cost}."
    return (
        f"{dtype} instead of {WIDEST}, for what is fastest in it at each of {len(cases)} shapes: "
        f"{least.speedup.value:.2f}x ({name}) to {most.speedup.value:.2f}x ({most.implementation}) as fast, {cost}."
    )
