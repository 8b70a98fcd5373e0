"""How a series grows."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from bench.analyse.scaling.growth import Scaling, exponents, scalings, shares_by_stage, stage_growths
from bench.analyse.scaling.series import AXES, CHANNELS, HEADS, TOKENS, Axis, Row, by, log_latencies
from bench.analyse.standing import NAMED, SLOWER
from bench.store.profile import BACKWARD, FORWARD, Profile, Stage
from tests.analyse.planted import HELD, drawn, draws, exact, row
from tests.profiles import STEPS, profile, stepwise

PLACES = {TOKENS: (50, 197, 577, 1024), HEADS: (1, 3, 6, 12), CHANNELS: (96, 192, 384, 768)}


def found(rows: Sequence[Row]) -> list[Scaling]:
    """Return the series among rows, which are ranked by their latencies; the first of a point is named."""
    ranks = sorted(row["latency_s"] for row in rows)
    least = {at: min(row["latency_s"] for row in own) for at, own in by(rows, "num_tokens").items()}
    return scalings([
        {
            **row,
            "rank": ranks.index(row["latency_s"]),
            "standing": NAMED if row["latency_s"] == least[row["num_tokens"]] else SLOWER,
            "slowdown_high": None,
            "further_s": None,
        }
        for row in rows
    ])  # fmt: skip


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.name)
@pytest.mark.parametrize("processes", [3, 5])
def test_intervals_hold_planted_exponents(axis: Axis, processes: int) -> None:
    """In 90 of 100 draws or more, for each pair of neighbouring places along tokens, heads and channels."""
    held = np.zeros(len(PLACES[axis]) - 1)
    for rng in draws(processes):
        rows = drawn(rng, {"sdpa": lambda n: 1e-4 * n**1.4}, PLACES[axis], processes=processes, column=axis.column)
        slopes = [each.slope for each in exponents(PLACES[axis], log_latencies(rows))]
        held += [slope.low <= 1.4 <= slope.high for slope in slopes]
    assert held.min() >= HELD


def test_an_exponent_is_local() -> None:
    """Fixed cost first and pairs of tokens later: near 0 at few tokens, near 2 at many."""
    rows = exact("eager", lambda n: 1e-3 + 1e-9 * n**2, (10, 20, 10_000, 20_000))
    first, _, last = exponents((10, 20, 10_000, 20_000), log_latencies(rows))
    assert (first.start, first.end, last.start, last.end) == (10, 20, 10_000, 20_000)
    assert first.slope.value == pytest.approx(0, abs=0.001)
    assert last.slope.value == pytest.approx(2, abs=0.02)


def test_memory_has_exact_exponents() -> None:
    """Bytes fourfold at twice the tokens are the exponent 2 without an interval; a place without bytes is left out."""
    rows = [row("eager", [1.0] * 3, num_tokens=n, peak_bytes=8 * n**2) for n in (100, 200, 800)]
    rows.append(row("eager", [1.0] * 3, num_tokens=300, peak_bytes=None))
    (scaling,) = found(rows)
    memory = scaling.growths[0].memory
    assert [(each.start, each.end) for each in memory] == [(100, 200), (200, 800)]
    assert [each.slope.value for each in memory] == pytest.approx([2, 2])
    assert not any(each.slope.is_known for each in memory)


def test_each_axis_has_its_series() -> None:
    """A cross of tokens, heads and channels gives one series of each, and only that of tokens a fit."""
    rows = [
        each
        for axis in AXES
        for each in exact("eager", lambda n: float(n), PLACES[axis], axis.column, **_following(axis))
    ]
    series = {scaling.axis: scaling for scaling in found(rows)}
    assert list(series) == [TOKENS, HEADS, CHANNELS]
    assert [growth.fit is not None for scaling in series.values() for growth in scaling.growths] == [True, False, False]
    assert all(scaling.crossovers == () for scaling in series.values())


def test_what_was_measured_once_has_no_exponent() -> None:
    """A slope needs two places and a parabola three; beside a series of its rivals, a single place has neither."""
    rows = [*exact("eager", lambda n: float(n), (100, 200, 400)), *exact("flex", lambda n: float(n), (200,))]
    (scaling,) = found([*rows, *exact("sdpa", lambda n: float(n), (100, 200))])
    eager, flex, sdpa = scaling.growths
    assert len(eager.latency) == 2
    assert (flex.latency, flex.memory, flex.fit) == ((), (), None)
    assert sdpa.fit is None
    assert sdpa.latency[0].slope.value == pytest.approx(1)


@pytest.mark.parametrize("places", [(100,), (100, 200)])
def test_without_two_places_of_one_implementation_there_is_no_series(places: tuple[int, ...]) -> None:
    """A single point is none, nor are two that no implementation was measured at both of."""
    assert found([row(f"kernel{place}", [1.0], num_tokens=place) for place in places]) == []


def test_the_fastest_stands_by_place() -> None:
    """Who is fastest is asked at each place, of its rows alone."""
    rows = [*exact("eager", lambda n: n**2.0, (100, 400)), *exact("sdpa", lambda n: 200.0 * n, (100, 400))]
    (scaling,) = found(rows)
    assert {place: of.names for place, of in scaling.choices.items()} == {100: ("eager",), 400: ("sdpa",)}
    assert [(each.before, each.after) for each in scaling.crossovers] == [("eager", "sdpa")]
    assert scaling.crossovers[0].tokens.value == pytest.approx(200)


def _following(axis: Axis) -> dict[str, int]:
    # the series of tokens and of heads keep the width that a series of channels changes
    return {} if axis is CHANNELS else {"channels": 384, "token_len": 384}


def of(num_tokens: int, **stages: float) -> Profile:
    """Return a profile in stages that take so many seconds."""
    made = stepwise(num_tokens=num_tokens)
    return dataclasses.replace(made, stages=tuple(Stage(name, FORWARD, time_s, 0) for name, time_s in stages.items()))


def test_shares_are_of_the_time_of_all_stages() -> None:
    """What is in no stage has none, and a stage is one, forward and backward."""
    assert shares_by_stage(of(197, scores=1.0, softmax=3.0)) == {"scores": 0.25, "softmax": 0.75}
    assert sum(shares_by_stage(stepwise(residual_s=1.0)).values()) == pytest.approx(1)
    stages = (Stage("scores", FORWARD, 1.0, 0), Stage("skip", FORWARD, 1.0, 0), Stage("scores", BACKWARD, 2.0, 0))
    assert shares_by_stage(dataclasses.replace(stepwise(), stages=stages)) == {"scores": 0.75, "skip": 0.25}


def test_a_series_is_in_the_order_of_its_tokens() -> None:
    """However the profiles came."""
    (found,) = stage_growths([of(577, scores=3.0, skip=1.0), of(197, scores=1.0, skip=1.0), of(1024, scores=1.0)])
    assert found.places == (197, 577, 1024)
    assert found.share_of(["scores"]) == (0.5, 0.75, 1.0)
    assert found.share_of(["skip", "scores"]) == (1.0, 1.0, 1.0)
    assert found.stages == ("scores", "skip")


def test_profiles_that_differ_in_more_than_tokens_are_series_of_their_own() -> None:
    """Modes, batches and implementations aren't mixed, and what has no stages is left out."""
    tokens = (197, 577)
    own = dataclasses.replace
    profiles = [stepwise(num_tokens=number, mode=mode) for number in tokens for mode in ("inference", "train")]
    profiles += [own(each, case=own(each.case, implementation="mine:adapt")) for each in profiles]
    profiles += [profile("sdpa", num_tokens=number) for number in tokens]
    found = list(stage_growths(profiles))
    assert len(found) == 4
    for each in found:
        assert each.places == tokens
        assert each.stages == tuple(STEPS)
        assert len({(of.case.implementation, of.case.point.mode) for of in each.profiles}) == 1
    assert list(stage_growths([stepwise(num_tokens=197), stepwise(num_tokens=577, batch=2)])) == []
