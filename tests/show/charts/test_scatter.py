"""The roofline and the frontier, by their data."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.show.charts.scatter import frontiers, rooflines
from bench.store.roofline import CEILING_BYTES, CEILING_FLOPS, work_of
from tests.make.points import vit_s
from tests.make.results import modelled, results
from tests.show.charts.drawn import made, series, words

NAMES = ("eager", "sdpa")
POINTS = [vit_s(num_tokens=number) for number in (50, 577)]


ERRORS = {
    ("float32", "eager"): 4e-7,
    ("float32", "sdpa"): 8e-7,
    ("bfloat16", "eager"): 6e-3,
    ("bfloat16", "sdpa"): 5e-3,
}


def table(*, others: bool = False) -> pd.DataFrame:
    """Return results with ceilings; those of another dtype too if that is asked for."""
    at = [*POINTS, vit_s(dtype="bfloat16")] if others else POINTS
    records = [modelled(Case(each, name), 0) for each in at for name in NAMES]
    ceilings = {CEILING_FLOPS: 1e11, CEILING_BYTES: 1e9}
    return summarise([dataclasses.replace(each, metrics={**each.metrics, **ceilings}) for each in records], "eager")


def test_a_mark_stands_at_the_rate_of_its_case_under_the_roof() -> None:
    """The roof rises with the bytes per second up to the ridge, and is flat beyond; words say both rates."""
    of = table()
    (drawn,) = made(rooflines(of))
    axes = drawn.figure.axes[0]
    works = [work for each in POINTS if (work := work_of(each, {}))]
    latencies = of.loc[of["implementation"] == "sdpa", "latency_s"]
    rates = [(work.flops or 0) / time for work, time in zip(works, latencies, strict=True)]
    at = [(work.intensity, rate) for work, rate in zip(works, rates, strict=True)]
    assert [x for of in series(axes)["sdpa"] for x in of] == pytest.approx([x for of in at for x in of])
    roof = np.asarray(axes.lines[0].get_xydata()).tolist()
    assert [y for _, y in roof] == pytest.approx([min(1e11, 1e9 * x) for x, _ in roof])
    assert "matrix products 100 GFLOP/s, copy 1.00 GB/s" in words(drawn)


def test_a_setting_with_ceilings_is_a_picture() -> None:
    """Another dtype has a picture of its own; results from before there were ceilings have none."""
    assert sorted(each.name for each in rooflines(table(others=True))) == [
        "roofline-vit-cpu-bfloat16-inference-t1",
        "roofline-vit-cpu-float32-inference-t1",
    ]
    old = results([Case(each, name) for each in POINTS for name in NAMES])
    assert old["flops_per_s"].notna().all()
    assert old["roofline_share"].isna().all()
    assert list(rooflines(old)) == []


def table_of_frontier(
    *, dtypes: tuple[str, ...] = ("float32", "bfloat16"), tokens: tuple[int, ...] = (50,)
) -> pd.DataFrame:
    """Return results with errors, at several shapes and precisions."""
    records = []
    for number in tokens:
        for (dtype, name), error in ERRORS.items():
            if dtype in dtypes:
                case = Case(vit_s(num_tokens=number, dtype=dtype), name)
                for each in (modelled(case, process) for process in range(2)):
                    metrics = {**each.metrics, "error": error, "tolerance": 1.0}
                    records.append(dataclasses.replace(each, metrics=metrics))
    return summarise(records, "eager")


def test_a_mark_stands_at_time_and_error_and_what_nothing_beats_has_a_ring() -> None:
    """Among those in rings time rises and error falls."""
    (drawn,) = made(frontiers(table_of_frontier()))
    axes = drawn.figure.axes[0]
    rings = np.asarray(axes.lines[0].get_xydata()).tolist()
    assert rings == sorted(rings)
    assert [error for _, error in rings] == sorted((error for _, error in rings), reverse=True)
    assert {name: len(at) for name, at in series(axes).items()} == {"eager": 2, "sdpa": 2}
    for own in series(axes).values():
        assert all(any(time <= x and error <= y for time, error in rings) for x, y in own)


def test_each_shape_with_a_choice_is_a_picture() -> None:
    """Shapes have pictures of their own; one precision leaves nothing to choose."""
    assert sorted(each.name for each in frontiers(table_of_frontier(tokens=(50, 577)))) == [
        "frontier-vit-cpu-inference-b8-n50-c384-h6-t1",
        "frontier-vit-cpu-inference-b8-n577-c384-h6-t1",
    ]
    assert list(frontiers(table_of_frontier(dtypes=("float32",)))) == []
