"""A look at a model in its process."""

import dataclasses
from typing import Any

import pytest

import impls
from bench.measure import look
from bench.store.record import STATUSES
from tests.measure.stub import Announcements
from tests.points import point

TINY = "tests.tiny_models"


def looked(name: str, settings: tuple[str, ...] = (), **columns: Any) -> dict[str, Any]:
    """Return what is seen at a tiny model."""
    at = point(layer=f"{TINY}:{name}", **columns)
    request = {"point": dataclasses.asdict(at), "seed": 1, "settings": settings}
    return look.look(request, Announcements())


@pytest.mark.parametrize(
    "name",
    [
        "Net[input=5x16]",
        "Net[kind=written,input=5x16]",
        "Heads[input=5x16]",
        "Encoder[input=5x16]",
        "normalised[input=5x16]",
    ],
)
def test_a_look_sees_what_a_plain_call_runs(name: str) -> None:
    """The same kernels, and a part of the time in cores, which are in layers."""
    seen = looked(name)
    assert seen["kernels"] == seen["observed_kernels"]
    assert len(seen["cores"]) in (1, 2)
    for call in seen["calls"]:
        assert 0 < call["core_s"] < sum(call["layers"].values()) <= call["total_s"]
        assert {*call["layers"]} == {core["layer"] for core in seen["cores"]}


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_a_written_core_is_timed_beside_a_fused_one(mode: str) -> None:
    """Pairs of seconds for each kind, and the lines of source; a fused core needs none."""
    seen = looked("Net[kind=written,input=5x16]", mode=mode)
    assert {*seen["written"]} == {"layers.0"}
    assert all(min(pair) > 0 and len(pair) == 2 for pair in seen["written"]["layers.0"])
    assert all(".py:" in each["lines"] and each["is_plain"] for each in seen["cores"])
    assert looked("Net[input=5x16]", mode=mode)["written"] == {}


def test_a_training_step_has_its_backward_pass() -> None:
    """Times are those of both passes."""
    seen = looked("Net[input=5x16]", mode="train")
    assert all(0 < call["core_s"] < call["total_s"] for call in seen["calls"])


def test_settings_are_tried() -> None:
    """One that is there, one that runs the same, and one that the model lacks."""
    found = looked("Net[input=5x16]", ("sdpa_math", "sdpa", "eager"))["settings"]
    assert {name: each["status"] for name, each in found.items()} == {
        "sdpa_math": "ok",
        "sdpa": "same",
        "eager": "unsupported",
    }
    assert "unsupported" in STATUSES


@pytest.mark.parametrize(
    ("name", "words"),
    [("plain[input=5x16]", "no attention was found"), ("Net[input=5x17]", "can't take x"), ("Net[at=x]", "--input")],
)
def test_what_can_not_be_looked_at_is_said(name: str, words: str) -> None:
    """A model without attention, another input, and none."""
    with pytest.raises((impls.Unsupported, impls.Unresolved)) as error:
        looked(name)
    assert words in str(error.value)
