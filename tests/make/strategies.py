"""Anything that can be written down: points, cases and records that hypothesis draws."""

from typing import Any

from hypothesis import strategies as st

from bench.plan.case import COLUMNS, Case, Point
from bench.plan.columns import ValueKind
from bench.plan.layers import LAYERS
from bench.store.metrics import REPORTED
from bench.store.record import STATUSES, Origin, Record, Samples

counts = st.integers(1, 1 << 20)
seconds = st.floats(0, 1e6, allow_nan=False)
anything_said = st.text(st.characters(), max_size=20)  # every code point, because details quote foreign programs

OWN: dict[str, st.SearchStrategy[Any]] = {
    "layer": st.sampled_from(list(LAYERS)),
    "device": st.sampled_from(["cpu", "cuda", "cuda:0", "cuda:1", "cuda:11"]),
    "qk_scale": st.floats(-4, 4, width=16).map(abs),
    "lengths": st.sampled_from(["fixed", "uniform", "zipf", "bimodal", "list:13+5", "list:13+5+1"]),
}
"""The values of columns whose kind says too little."""


def of_column(name: str) -> st.SearchStrategy[Any]:
    """Return the values that a column may have, None among them if it may be unused."""
    column = COLUMNS[name]
    of_kind = st.booleans() if column.kind is ValueKind.TRUTH else counts
    values = OWN.get(name, st.sampled_from(list(column.choices)) if column.choices else of_kind)
    return st.none() | values if column.absent is None else values


points = st.builds(Point, **{name: of_column(name) for name in COLUMNS})
"""Any point that can be written down, whether or not it keeps the rules of a grid."""

cases = st.builds(Case, points, st.sampled_from(["eager", "sdpa", "users.kernel:adapt"]))


@st.composite
def sample_columns(draw: st.DrawFn) -> Samples:
    """Draw samples whose columns are equally long."""
    count = draw(st.integers(1, 4))

    def column(values: st.SearchStrategy[Any], *, unique: bool = False) -> tuple[Any, ...]:
        return tuple(draw(st.lists(values, min_size=count, max_size=count, unique=unique)))

    timings = st.lists(seconds.filter(bool), min_size=1, max_size=3).map(tuple)
    return Samples(column(counts, unique=True), column(timings), column(counts), column(seconds))


METRIC: dict[type, st.SearchStrategy[Any]] = {
    bool: st.none() | st.booleans(),
    int: st.none() | st.integers(0, 1 << 60),
    float: st.none() | seconds,
    str: st.none() | anything_said.filter(bool),  # an empty text is one that was not measured
    tuple: st.lists(anything_said, max_size=3).map(tuple),
}
"""The possible values of a metric of each kind."""

records = st.builds(
    Record,
    case=cases,
    process=st.integers(0, 99),
    status=st.sampled_from(STATUSES),
    origin=st.builds(Origin, *[anything_said] * 5),
    detail=anything_said,
    samples=sample_columns(),
    metrics=st.fixed_dictionaries({}, optional={name: METRIC[metric.kind] for name, metric in REPORTED.items()}),
)
