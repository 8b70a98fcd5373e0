"""The command that measures one row again asks for this row: its point, implementation, baseline and control."""

import argparse
import dataclasses
import shlex
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from bench.harness import options
from bench.machine import facts
from bench.plan.again import Again
from bench.plan.case import AS_IS, COLUMNS, CONTROL, OF_LAYERS, Case, Point
from bench.plan.columns import ValueKind
from bench.plan.errors import WrongRequest
from bench.plan.grid import expand
from bench.plan.invocation import suite
from bench.plan.layers import LAYERS, is_own, shapes_itself
from bench.plan.layers.layer import GRIDS
from bench.plan.sweep import Effort, Sweep
from bench.store import plan
from impls.catalogue import FIXED, PADDING
from tests.make.points import of_layer, point

PARSER = argparse.ArgumentParser()
options.add(lambda _title: PARSER.add_argument)

OWN_LAYERS = (
    "mylayer:MyAttention",
    "timm.layers:Attention[num_heads=4]",
    "my.layers:Window[a=1]",
    "mylayer:A[text='it, is',sizes=(1, [2, 3]),other=\"x,y\"]",
    "mylayer:A[text=O'Brien $HOME `x` | y]",
    "mylayer:A[dim=64,heads=4]",
    "timm:swin_tiny_patch4_window7_224[at=layers.0.blocks.0.attn]",
    "torchvision.ops:SqueezeExcitation[input=2x3x56x56]",
)

IMPLEMENTATIONS = (
    "eager", "sdpa", AS_IS, "compiled_sdpa[mode=max-autotune]", "online[block_tokens=64]", "math:hypot",
    "math:hypot[text='a, b',sizes=(1, 2)]",
)  # fmt: skip

BY_KIND: dict[ValueKind, st.SearchStrategy[Any]] = {
    ValueKind.COUNT: st.integers(1, 4096),
    ValueKind.NUMBER: st.floats(allow_nan=False, allow_infinity=False),
    ValueKind.TRUTH: st.booleans(),
}

OF_COLUMN: dict[str, st.SearchStrategy[Any]] = {
    "layer": st.sampled_from([*LAYERS, *OWN_LAYERS]),
    "device": st.sampled_from(["cpu", "cuda", "cuda:1"]),
    "lengths": st.sampled_from(["fixed", "uniform:0.8"]),
}

DERIVED = ("token_len", "qkv_bias", "qk_scale", "key_channels", "image_size", "patch_size", "num_tokens", "timing")


def values(name: str) -> st.SearchStrategy[Any]:
    """Return the values of a column."""
    of = COLUMNS[name]
    if name in OF_COLUMN:
        return OF_COLUMN[name]
    return st.sampled_from([*of.choices]) if of.choices else BY_KIND[of.kind]


@st.composite
def points(draw: st.DrawFn) -> Point:
    """Draw a point that a sweep file can ask for, with what a worker would see at a module with an input of its own."""
    drawn = {name: draw(values(name)) for name in COLUMNS if name not in DERIVED or draw(st.booleans())}
    layer = LAYERS.get(drawn["layer"])
    without, needs = (layer.without, layer.needs) if layer else ((), ())
    if layer:
        drawn |= layer.fixed
        drawn["channels"] = 8 * drawn["num_heads"]
    if "image_size" in needs:
        patch = draw(st.integers(1, 8))
        drawn |= {"patch_size": patch, "image_size": patch * draw(st.integers(1, 9))}
        drawn.pop("num_tokens", None)
        if drawn.pop("token_len", None) and "patch_size" in needs:
            drawn["token_len"] = patch**2 * draw(st.integers(1, 5))
    elif layer or not shapes_itself(drawn["layer"]):
        drawn.setdefault("num_tokens", draw(values("num_tokens")))
    if drawn["mask"] == PADDING or not layer or any(drawn.get(name) not in (None, "none") for name in GRIDS):
        drawn["lengths"] = FIXED
    try:
        (made,) = expand({name: value for name, value in drawn.items() if name not in without})
    except WrongRequest:  # an argument in the name says otherwise
        assume(False)
        raise
    if is_own(made.layer) and shapes_itself(made.layer):
        made = dataclasses.replace(made, **{name: draw(values(name)) for name in OF_LAYERS})
    return made


def asked(words: list[str], original: Point) -> Sweep:
    """Return the sweep that the words ask for on a machine with a GPU and threads of its own; no worker is started."""
    seen = {name: getattr(original, name) for name in OF_LAYERS}

    def shaped(points: tuple[Point, ...]) -> tuple[Point, ...]:
        return tuple(
            dataclasses.replace(each, **seen) if is_own(each.layer) and shapes_itself(each.layer) else each
            for each in points
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(options, "_shaped", shaped)
        patch.setattr(facts, "default_threads", lambda: 77)
        return plan.wanted(options.request(PARSER.parse_args(words)))


@given(points(), st.sampled_from([*IMPLEMENTATIONS, CONTROL]), st.sampled_from(IMPLEMENTATIONS), st.booleans())
@example(point(layer="mylayer:A", qk_scale=-1e-05, key_channels=6), "sdpa", "eager", True)
@example(of_layer("patch", token_len=160), "eager", "eager", False)
@example(of_layer("conv"), CONTROL, "sdpa", True)
@example(of_layer("self"), "sdpa", "manual", True)
@example(of_layer("core", num_tokens=1, num_kv_tokens=9, mask="padding"), "sdpa", "eager", True)
def test_the_command_asks_for_the_row_alone(original: Point, implementation: str, baseline: str, control: bool) -> None:
    """The options of the suite read its words as this point, this implementation, the same baseline and control."""
    command = Again(baseline, control).command(Case(original, implementation))
    assert command.startswith(f"{suite()} run ")
    sweep = asked(shlex.split(command.removeprefix(f"{suite()} run")), original)
    assert sweep.points == (original,)
    assert sweep.baseline == baseline
    assert sweep.control is control
    rows = (baseline,) if implementation == CONTROL else (baseline, implementation)
    assert sweep.implementations == tuple(dict.fromkeys(rows))


@pytest.mark.parametrize(
    "effort",
    [Effort(race=True), Effort(), Effort(race=True, oversubscribe=True), Effort(allow_error=0.05)],
)
def test_the_way_to_measure_is_that_of_the_run(effort: Effort) -> None:
    """A race or none, more threads than cores, another accuracy; the seconds are usual."""
    again = asked(Again("eager", True, effort).words(Case(point(), "sdpa")), point()).effort
    assert (again.race, again.oversubscribe, again.allow_error) == (
        effort.race, effort.oversubscribe, effort.allow_error
    )  # fmt: skip


def test_a_command_says_no_more_than_it_must() -> None:
    """What is usual, what the layer gives and what the name of a module says stand in no command."""
    words = Again("eager").words(Case(of_layer("conv"), "sdpa"))
    assert {"--num-tokens", "--token-len", "--qkv-bias", "--num-heads", "--mask", "--timing"}.isdisjoint(words)
    assert {"--baseline", "--no-control"}.isdisjoint(words)
    own = point(layer="m:L[input=2x3x56x56]", batch=2)
    assert {"--num-tokens", "--channels", "--batch"}.isdisjoint(Again(AS_IS).words(Case(own, "sdpa")))
