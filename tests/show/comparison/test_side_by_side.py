"""Precisions and published figures side by side."""

from dataclasses import replace
from typing import Any

import pytest

from bench.analyse.precision import changes
from bench.analyse.rows import plain
from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.plan.errors import WrongRequest
from bench.plan.published import read
from bench.show.blocks import Block, Table
from bench.show.comparison.side_by_side import precisions, references
from bench.store import units
from tests.make.points import vit_s
from tests.make.records import in_precision as measured
from tests.make.results import results, timed

ENTRY: dict[str, Any] = {
    "source": "A paper, table 3",
    "machine": "a fast CPU",
    "called": "standard",
    "implementation": "sdpa",
    "part": "core",
    "latency_s": 2e-3,
    "at": {"num_tokens": 197},
}
"""A published figure, as a sweep file has it."""

AT = [vit_s(num_tokens=tokens) for tokens in (50, 197, 577)]


def only(blocks: list[Block]) -> list[str]:
    """Return the cells of the only row."""
    table, _ = blocks
    assert isinstance(table, Table)
    (row,) = table.cells
    return [cell.text for cell in row]


def test_a_row_of_two_precisions_has_both_times_and_the_ratio() -> None:
    """The row names the shape, the implementation and both.

    Without a second one, the refusal says how to measure it.
    """
    records = [measured("eager", dtype, process) for dtype in ("float32", "bfloat16") for process in range(3)]
    found = changes(records, plain(summarise(records, "eager")))
    point, name, wide, _, dtype, narrow, _, ratio = only(precisions(found))
    assert (name, dtype, ratio[:5]) == ("eager", "bfloat16", "2.00x")
    assert [units.seconds(side["latency_s"]) for side in (found[0].base, found[0].new)] == [wide, narrow]
    assert "N=" in point
    with pytest.raises(WrongRequest, match="in the same rounds"):
        precisions([])


def test_a_figure_stands_beside_our_time_or_status() -> None:
    """With the ratio and the source; a failed case has no ratio, and without a figure the refusal names sources."""
    sdpa = Case(vit_s(), "sdpa")
    ours = results([sdpa])
    row = only(references(ours, read([{**ENTRY, "latency_s": 2 * float(ours["latency_s"].iloc[0])}])))
    assert "N=197" in row[0]
    assert row[4:] == ["2.00x", "", "standard", "core alone", "a fast CPU", "A paper, table 3"]
    rate = {name: value for name, value in ENTRY.items() if name != "latency_s"} | {"items_per_s": 505}
    assert only(references(ours, read([rate])))[2] == "505 items/s = 15.8 ms"
    failed = results([sdpa], {sdpa: ("unsupported", "no such kernel")})
    assert only(references(failed, read([ENTRY])))[2:6] == ["2.00 ms", "unsupported", "", ""]
    with pytest.raises(WrongRequest, match=r"no published figure is for a case of this run.*A paper, table 3"):
        references(results([Case(vit_s(num_tokens=50), "sdpa")]), read([ENTRY]))


def test_a_figure_of_the_same_card_has_rates_and_a_verdict() -> None:
    """Both rates are those of the core, as papers count them; on another card the ratio stands without a verdict."""
    at = vit_s(layer="core", device="cuda", timing="device-cold", num_tokens=1024)
    seconds = 4 * at.batch * at.num_tokens**2 * at.channels / 100e12
    entry = {name: value for name, value in ENTRY.items() if name != "latency_s"}
    entry |= {"core_flops_per_s": 112e12, "card": "NVIDIA H200", "at": {"device": "cuda", "timing": "device-cold"}}
    table = timed([at], {"sdpa": seconds}).assign(latency_s=seconds, device_name="NVIDIA H200 140 GiB")
    published, measured, ratio, verdict = only(references(table, read([entry])))[2:6]
    assert (published[:11], measured[:11]) == ("112 TFLOP/s", "100 TFLOP/s")
    assert (ratio, verdict) == ("0.89x", "slower")
    other = only(references(table.assign(device_name="NVIDIA H100 80GB HBM3 79 GiB"), read([entry])))
    assert other[4] == "0.89x"
    assert "no comparison" in other[5]
    hot = timed([replace(at, timing="device-hot")], {"sdpa": seconds})
    with pytest.raises(WrongRequest, match="no published figure is for a case of this run"):
        references(hot, read([entry]))
