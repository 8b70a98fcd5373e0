"""What a whole run says: gains of precision, cores to use, and its control."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest

from bench.analyse.conclusions import CoreChoice, changes, choices, control, gain, is_core
from bench.analyse.summary import of_records, summarise
from bench.plan.case import CONTROL, Case, Point
from bench.stats.estimates import Interval
from tests.examples import SPEEDS, case, in_precision, measured, point, record, timed

# precisions


def test_the_ratio_is_paired_round_by_round() -> None:
    """What slows all precisions of a round fivefold plays no part: no more is left than processes differ by."""
    of = changes([in_precision("sdpa", dtype, process) for dtype in SPEEDS for process in range(3)])
    assert {each.dtype: each.speedup.value for each in of} == pytest.approx({"bfloat16": 2, "float16": 4})
    for speedup in (each.speedup for each in of):
        assert 0.98 * speedup.value < speedup.low < speedup.high < 1.02 * speedup.value


def test_each_implementation_has_its_own_change() -> None:
    """The changes come in the order of the records, without the control and what failed."""
    records = [in_precision(name, dtype, 0) for name in ("eager", "sdpa", CONTROL) for dtype in ("float32", "bfloat16")]
    records.append(record(case=case("online", dtype="bfloat16"), status="unsupported", detail="no kernel"))
    records.append(in_precision("online", "float32", 0))
    assert [(each.implementation, each.point.dtype) for each in changes(records)] == [
        ("eager", "float32"),
        ("sdpa", "float32"),
    ]


@pytest.mark.parametrize("seed", [8, None])
def test_replicates_of_other_rounds_are_not_paired(seed: int | None) -> None:
    """Records of the same number but another seed were not measured together; an old journal has no seed."""
    wide = [in_precision("sdpa", "float32", process, seed=7 if seed else None) for process in range(3)]
    narrow = [in_precision("sdpa", "bfloat16", process, seed=seed) for process in range(3)]
    assert changes([*wide, *narrow]) == []
    (change,) = changes([in_precision("sdpa", "float32", 5), *wide, *narrow, in_precision("sdpa", "bfloat16", 5)])
    assert change.speedup.value == pytest.approx(2)
    assert not change.speedup.is_known


# cores


def chosen(seconds: Mapping[str, float], processes: int = 5, at: Point | None = None) -> list[CoreChoice]:
    """Return the choices of a run in which implementations take some seconds, give or take 1 in 1,000."""
    records = [
        measured(Case(at or point(), name), process, value_s)
        for process in range(processes)
        for name, value_s in seconds.items()
    ]
    return choices(of_records(records, "eager"))


@pytest.mark.parametrize(
    ("seconds", "name", "speedup", "slowdown_high"),
    [
        ({"eager": 1.0, "sdpa": 1.2}, "eager", 1.2, 1.0),
        ({"eager": 1.2, "sdpa": 1.0}, "sdpa", 1.0, 1.0),
        ({"eager": 1.0, "sdpa": 1.0}, "sdpa", 1.0, 1.008),
        ({"eager": 0.9999, "sdpa": 1.0}, "sdpa", 1.0, 1.008),
        ({"eager": 1.2, "sdpa": 1.1, "online": 1.0}, "online", 1.1, 1.0),
        ({"eager": 1.1, "sdpa": 1.2, "compiled_sdpa": 0.5, "mha": 0.4, "flex": 0.3}, "eager", 1.0909, 1.0),
    ],
)
def test_a_core_is_chosen_if_it_is_shown_to_be_faster_than_sdpa(
    seconds: Mapping[str, float], name: str, speedup: float, slowdown_high: float
) -> None:
    """Of those that replace the core alone and need no compilation; else it is sdpa, with what that can cost."""
    (choice,) = chosen(seconds)
    assert choice.implementation == name
    assert choice.speedup.value == pytest.approx(speedup, rel=0.005)
    assert choice.speedup.low <= choice.speedup.value <= choice.speedup.high
    assert choice.slowdown_high == pytest.approx(slowdown_high, abs=0.005)


def test_points_without_sdpa_and_those_of_models_have_no_choice() -> None:
    """Without sdpa there is nothing to compare with, a model has more than a core, and one process shows nothing."""
    assert chosen({"sdpa": 1.0, "eager": 2.0}, at=point(layer="timm:vit_tiny_patch16_224")) == []
    assert chosen({"eager": 1.0}) == []
    assert [choice.implementation for choice in chosen({"eager": 1.0, "sdpa": 2.0}, processes=1)] == ["sdpa"]


def test_what_replaces_the_core_alone_is_a_core() -> None:
    """A user's own may do so: the table's reader says if it doesn't."""
    cores = "eager", "online[block_tokens=16]", "sdpa_flash", "flash_attn", "mykernel:attend"
    others = "compiled_sdpa", "flex", "mha", "jax", "measured[table=a.json]", "an_installed_one"
    assert [name for name in (*cores, *others) if is_core(name)] == [*cores]


def test_the_gain_is_the_most_that_is_shown() -> None:
    """That is the largest lower end; without any choice it is nothing."""
    of = [CoreChoice(point(), "eager", 1.0, Interval(1.2, low, 1.4)) for low in (1.02, 1.05)]
    assert [gain(of), gain([])] == pytest.approx([0.05, 0])


# the control

NAMES = ("sdpa", CONTROL, "eager", "mha", "flex")


def run(offsets: Sequence[float], processes: int = 4) -> pd.DataFrame:
    """Return the table of a run in which the control is so much faster than the baseline, by points.

    Points differ in their tokens, which count from 1, and all scatter by 1 %.
    """
    rng = np.random.default_rng(1)
    records = [
        record(case=case(name, num_tokens=tokens), process=process, samples=timed(time_s, time_s))
        for tokens, offset in enumerate(offsets, start=1)
        for process in range(processes)
        for name in NAMES
        for time_s in [math.exp(rng.normal(-offset if name == CONTROL else 0, 0.01))]
    ]
    return summarise(records, "sdpa")


def test_the_point_at_which_the_control_is_furthest_off() -> None:
    """In either direction, with its speed-up over the baseline."""
    of = control(run([0.02, -0.1, 0.05]))
    assert (of.baseline, of.points, of.point and of.point.num_tokens) == ("sdpa", 3, 2)
    assert of.speedup.value == pytest.approx(math.exp(-0.1), rel=0.02)


def test_a_control_that_is_off_is_notable_and_widens_the_run() -> None:
    """By 6 % at each point, where the values of all scatter by 1 %: the interval of each row says so."""
    tables = run([0.0] * 6), run([0.06] * 6)
    assert [control(table).is_notable for table in tables] == [False, True]
    right, off = (np.log(of["speedup_high"] / of["speedup_low"])[of["implementation"] == "mha"] for of in tables)
    assert (off / right).min() > 4


@pytest.mark.parametrize(("offset", "excess"), [(0.0, 1.0), (0.02, 3.0)])
def test_the_excess_is_how_far_the_control_is_off_in_standard_errors(offset: float, excess: float) -> None:
    """1 % in four processes is an error of 0.71 % of a difference, and 2 % beside it make √(1 + 2.83²) of it."""
    offsets = np.random.default_rng(2).normal(0, offset, 50)
    assert control(run(offsets.tolist())).excess == pytest.approx(excess, rel=0.2)


def test_one_process_shows_nothing_of_a_control() -> None:
    """There is a ratio, and no error that it could exceed."""
    of = control(run([0.3], processes=1))
    assert (of.points, of.is_notable, of.speedup.is_known, math.isnan(of.excess)) == (1, False, False, True)


def test_a_run_without_a_control_says_nothing() -> None:
    """Older runs have none; one that failed, or whose baseline failed, has no ratio."""
    failed, baseline = (record(name, status="crashed", samples=timed()) for name in (CONTROL, "eager"))
    for own in ([record("eager"), record("sdpa")], [record("eager"), failed], [baseline, record(CONTROL)]):
        of = control(summarise(own, "eager"))
        assert (of.points, of.point, of.is_notable) == (0, None, False)
