"""The roofline and the frontier, by their data."""

import dataclasses

import pandas as pd
import pytest

from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.show.charts.base import specification
from bench.show.charts.scatter import best, frontiers, rooflines
from bench.store.roofline import CEILING_BYTES, CEILING_FLOPS, work_of
from tests.make.points import vit_s
from tests.make.results import modelled, results

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
    """The roof rises with the bytes per second up to the ridge, and is flat beyond; words say both rates.

    A ridge that is far from all cases is not drawn: half of the picture would be empty.
    """
    of = table()
    ((_, picture),) = rooflines(of)
    rows = [row for row in picture.rows if row["implementation"] == "sdpa"]
    works = [work for each in POINTS if (work := work_of(each, {}))]
    assert [row["intensity"] for row in rows] == pytest.approx([work.intensity for work in works])
    latencies = of.loc[of["implementation"] == "sdpa", "latency_s"]
    assert [row["rate"] for row in rows] == pytest.approx(
        [(work.flops or 0) / time for work, time in zip(works, latencies, strict=True)]
    )

    drawn = specification(picture)
    corners = max(drawn["datasets"].values(), key=lambda rows: len(rows) if "implementation" not in rows[0] else 0)
    assert [each["rate"] for each in corners] == pytest.approx([min(1e11, 1e9 * each["intensity"]) for each in corners])
    intensities = [work.intensity for work in works]
    assert [each["intensity"] for each in corners] == pytest.approx([min(intensities) / 2, 100, max(intensities) * 2])
    assert all(words in str(drawn) for words in ("matrix products 100 GFLOP/s", "copy 1.00 GB/s"))
    ((_, far),) = rooflines(of.assign(**{CEILING_BYTES: 1e11}))
    assert "copy 100 GB/s is the ceiling below 1 operations per byte" in str(specification(far))


def test_a_setting_with_ceilings_is_a_picture() -> None:
    """Another dtype has a picture of its own; results from before there were ceilings have none."""
    assert sorted(name for name, _ in rooflines(table(others=True))) == [
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
    """Each has its interval on logarithmic axes; among those in rings time rises and error falls."""
    of = table_of_frontier()
    ((_, picture),) = frontiers(of)
    for column in ("implementation", "dtype", "error", "latency_s", "latency_low_s", "latency_high_s"):
        assert [row[column] for row in picture.rows] == of[column].to_list()
    drawn = specification(picture)["vconcat"][0]["vconcat"][0]["layer"]
    for channel, column in (("x", "latency_s"), ("y", "error")):
        (scale, *_) = [each["encoding"][channel]["scale"] for each in drawn if "scale" in each["encoding"][channel]]
        assert scale["type"] == "log"
        assert scale["domain"][0] < min(of[column]) < max(of[column]) < scale["domain"][1]

    on_it = [(row["latency_s"], row["error"]) for row in best([dict(row) for row in picture.rows])]
    assert sorted((row["latency_s"], row["error"]) for row in picture.rows if row["best"]) == on_it
    assert [error for _, error in on_it] == sorted((error for _, error in on_it), reverse=True)
    for row in picture.rows:
        assert any(time <= row["latency_s"] and error <= row["error"] for time, error in on_it)


def test_each_shape_with_a_choice_is_a_picture() -> None:
    """Shapes have pictures of their own; one precision leaves nothing to choose."""
    assert sorted(name for name, _ in frontiers(table_of_frontier(tokens=(50, 577)))) == [
        "frontier-vit-cpu-inference-b8-n50-c384-h6-t1",
        "frontier-vit-cpu-inference-b8-n577-c384-h6-t1",
    ]
    assert list(frontiers(table_of_frontier(dtypes=("float32",)))) == []
