"""The share of each stage along the tokens."""

import dataclasses

import pytest

from bench.analyse.scaling.stage_growth import shares_by_stage, stage_growths
from bench.store.profile import BACKWARD, FORWARD, Profile, Stage
from tests.profiles import STEPS, profile, stepwise


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
