"""The roofline picture, by its data."""

import dataclasses

import pandas as pd
import pytest

from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.plan.layers import CEILING_BYTES, CEILING_FLOPS, work_of
from bench.show.charts.base import specification
from bench.show.charts.roofline import sheets
from tests.examples import point
from tests.show.example_results import record, results

NAMES = ("eager", "sdpa")
POINTS = [point(num_tokens=number) for number in (50, 577)]


def table(*, others: bool = False) -> pd.DataFrame:
    """Return results with ceilings; those of another dtype too if that is asked for."""
    at = [*POINTS, point(dtype="bfloat16")] if others else POINTS
    records = [record(Case(each, name), 0) for each in at for name in NAMES]
    ceilings = {CEILING_FLOPS: 1e11, CEILING_BYTES: 1e9}
    return summarise([dataclasses.replace(each, metrics={**each.metrics, **ceilings}) for each in records], "eager")


def test_a_mark_stands_at_the_rate_of_its_case() -> None:
    """Each case is a mark at its operations per byte and its operations per second."""
    of = table()
    ((_, picture),) = sheets(of)
    rows = [row for row in picture.rows if row["implementation"] == "sdpa"]
    works = [work for each in POINTS if (work := work_of(each, {}))]
    assert [row["intensity"] for row in rows] == pytest.approx([work.intensity for work in works])
    latencies = of.loc[of["implementation"] == "sdpa", "latency_s"]
    assert [row["rate"] for row in rows] == pytest.approx(
        [(work.flops or 0) / time for work, time in zip(works, latencies, strict=True)]
    )


def test_the_roof_is_the_lower_of_both_ceilings() -> None:
    """It rises with the bytes per second up to the ridge, and is flat beyond; words say both rates."""
    ((_, of),) = sheets(table())
    drawn = specification(of)
    corners = max(drawn["datasets"].values(), key=lambda rows: len(rows) if "implementation" not in rows[0] else 0)
    assert [each["rate"] for each in corners] == pytest.approx([min(1e11, 1e9 * each["intensity"]) for each in corners])
    assert corners[1]["intensity"] == 100
    assert all(words in str(drawn) for words in ("matrix products 100 GFLOP/s", "copy 1.00 GB/s"))


def test_a_setting_is_a_picture() -> None:
    """Points that differ in their shape stand in one picture, those of another dtype in their own."""
    assert sorted(name for name, _ in sheets(table(others=True))) == [
        "roofline-vit-cpu-bfloat16-inference-t1",
        "roofline-vit-cpu-float32-inference-t1",
    ]


def test_without_ceilings_nothing_is_drawn() -> None:
    """Results from before there were ceilings, or of cases that failed, have no roof."""
    old = results([Case(each, name) for each in POINTS for name in NAMES])
    assert old["flops_per_s"].notna().all()
    assert old["roofline_share"].isna().all()
    assert list(sheets(old)) == []
