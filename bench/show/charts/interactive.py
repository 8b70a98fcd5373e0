"""Panels that only pages have: the samples of a case, and the cost of compiling."""

from collections.abc import Iterable, Iterator
from typing import Any

from bench.show.picture import Kind, Marks, Panel, Scale, Shape
from bench.show.rows import Row, measured
from bench.store import units
from impls.catalogue import SOLID, Style

CALLS = [step * 10**power for power in range(7) for step in (1, 3)][:-1]
"""The numbers of calls at which the time per call is drawn."""

ROUND_S = [step * 10.0**power for power in range(-8, 3) for step in (1, 3)]
"""Ticks on a long axis of time."""


SAMPLES = {
    "undisturbed": Style("series", SOLID, "o"),
    "disturbed by other processes": Style("warning", SOLID, "X"),
}
"""How samples are drawn; `series` is the colour of the case's implementation."""


def samples() -> Panel:
    """Return a case's samples: its processes one after the other, and beside them the interval."""
    point: dict[str, Any] = {"shape": Shape.POINT, "x": "x", "y": "value_s"}
    return Panel(
        x=Scale(title="", kind=Kind.LINEAR, given="values"),
        y=Scale(title="seconds per call", kind=Kind.LINEAR, given="seconds"),
        marks=[
            Marks(kind="sample", by="remark", styles=SAMPLES, size=6, opacity=0.85, **point),
            Marks(shape=Shape.RULE, kind="process", x="first", x2="last", y="value_s"),
            Marks(shape=Shape.RULE, kind="interval", x="x", y="low_s", y2="high_s", width=3.0),
            Marks(kind="interval", marker="D", size=8.5, **point),
        ],
        height=3.0,
    )


def compilation() -> Panel:
    """Return the time per call against calls, if the first compilation is shared by all of them."""
    return Panel(
        x=Scale.log("calls", (1, CALLS[-1]), CALLS[::2], _counted),
        y=Scale(title="time per call, compilation included", ticks=ROUND_S, labels=[*map(_trimmed, ROUND_S)]),
        marks=[Marks(shape=Shape.LINE, x="calls", y="per_call_s", by="implementation", width=1.6, has_points=False)],
        height=3.5,
    )


def _trimmed(value_s: float) -> str:
    return units.seconds(value_s, trim=True)


def _counted(calls: float) -> str:
    return f"{calls:g}" if calls < 1000 else f"{calls / 1000:g}k" if calls < 1e6 else f"{calls / 1e6:g}M"


def compilation_rows(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Yield the time per call of each row at numbers of calls; what isn't compiled needs the ends alone."""
    for row in measured([*rows]):
        once_s = row["compile_cold_s"] or 0.0
        for calls in CALLS if once_s else (CALLS[0], CALLS[-1]):
            per_call_s = float(f"{row['latency_s'] + once_s / calls:.4g}")
            place = {"point": row["number"], "implementation": row["implementation"], "machine": row["machine"]}
            yield {**place, "calls": calls, "per_call_s": per_call_s, "text": units.seconds(per_call_s)}
