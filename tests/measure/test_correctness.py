"""The check rejects an implementation of another function, and accepts one of the reference's."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import impls
from bench.measure import correctness, outputs, reference, subjects, workload
from bench.plan.case import Point
from bench.plan.layers import LAYERS
from bench.sampling.inputs import NORMAL, InputValues
from tests import mutants, mutants_of_attention
from tests.impls.reference import NOT_EAGER_ON_CPU
from tests.make.checks import SHAPES, checked, compared, expected
from tests.make.points import OF_LAYER, WITH_CONTEXT, of_layer, point

pytestmark = pytest.mark.slow

OTHER_LAYERS = [layer for layer in OF_LAYER if layer != "vit"]

SHIPPED = ("eager", "manual", "online", "sdpa", "sdpa_math", "sdpa_flash", "mha")
MODES, DTYPES = ("inference", "forward", "train"), ("float32", "bfloat16", "float16")


KINDS = [*itertools.product(MODES, DTYPES)]


@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_what_we_ship_passes_at_every_shape_and_in_every_mode_and_dtype(number: int) -> None:
    """A single token, two, a prime number of them, heads of one channel: no shape makes the check unfair.

    Each shape meets two modes and dtypes, and each of these at least two shapes.
    """
    for mode, dtype in (KINDS[number % len(KINDS)], KINDS[(number + 4) % len(KINDS)]):
        at = point(**SHAPES[number], mode=mode, dtype=dtype)
        for name in SHIPPED:
            if name == "mha" and at.token_len != at.channels:
                with pytest.raises(impls.Unsupported):
                    checked(at, name)
                continue
            result = checked(at, name)
            assert (result.reason, 0 <= result.error <= result.tolerance) == ("", True), (name, at.name)


@pytest.mark.parametrize("layer", OTHER_LAYERS)
@pytest.mark.parametrize("mode", ["inference", "train"])
def test_shipped_implementations_pass_on_every_layer(mode: str, layer: str) -> None:
    """On each layer every shipped implementation computes the reference's function, or says that it can't."""
    for name in (each for each in impls.IMPLEMENTATIONS if each not in NOT_EAGER_ON_CPU):
        narrow_keys = name == "sdpa_flash" and layer in ("self", "conv")  # keys are narrower than values there
        if impls.IMPLEMENTATIONS[name].refusal(LAYERS[layer].class_name) or narrow_keys:
            with pytest.raises(impls.Unsupported):
                checked(of_layer(layer, mode=mode), name)
        elif not impls.compiles(name):
            assert checked(of_layer(layer, mode=mode), name).reason == "", name


@pytest.mark.parametrize("layer", OTHER_LAYERS)
def test_mutants_are_rejected_on_every_layer(layer: str) -> None:
    """Implementations of another function are rejected on every layer; conv's weight of the residual is not 0."""
    for mutant in ("mean_of_values", "swapped_tokens", "stale_output", "edits_its_input", "one_nan"):
        assert checked(of_layer(layer), f"tests.mutants:{mutant}").reason != "", mutant


def square(layer: str, side: int) -> dict[str, int]:
    """Return the columns that give a layer a square of tokens with this side."""
    at = of_layer(layer)
    image = {"image_size": side * (at.patch_size or 1)} if at.image_size else {}
    return {"num_tokens": side**2, **image}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layer", OF_LAYER)
def test_what_computes_no_attention_is_rejected_with_few_tokens_and_many(layer: str, dtype: str) -> None:
    """In a half type too, where the tolerance is wide and attention differs little from a mean; sdpa passes.

    The longest are for layers that add something large to the core's output.
    """
    for side in (4, 14, 45) if dtype == "bfloat16" and layer in ("vit", "conv") else (4, 14):
        at = of_layer(layer, dtype=dtype, **square(layer, side))
        work = workload.make(at)
        checks = expected(work)
        wrong = {
            name: compared(subjects.subject(work, f"tests.mutants:{name}"), work, checks).reason
            for name in mutants.NO_ATTENTION
        }
        assert [name for name, reason in wrong.items() if not reason] == [], at.num_tokens
        assert compared(subjects.subject(work, "sdpa"), work, checks).reason == ""


@pytest.mark.parametrize("layer", OF_LAYER)
def test_a_core_with_the_mask_passes_and_one_that_ignores_it_is_rejected(layer: str) -> None:
    """A core that declares no mask can't be used at a causal point."""
    at = of_layer(layer, mask="causal")
    assert [checked(at, name).reason for name in ("eager", "sdpa")] == ["", ""]
    assert checked(at, "tests.mutants:ignores_the_mask").reason != ""
    with pytest.raises(impls.Unsupported, match=r"does not declare the keyword (attn_)?mask"):
        checked(at, "tests.foreign:twin")


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_an_output_one_percent_too_large_is_rejected(mode: str) -> None:
    """An error that float32 does not explain is incorrect, with a reason that names tensor, size and tolerance.

    The tolerance comes from the dtype: bfloat16 is allowed an error that float32 is not.
    """
    result = checked(point(mode=mode), "tests.foreign:wrong")
    assert "is off by" in result.reason
    assert result.error > result.tolerance
    assert (
        checked(point(mode=mode, dtype="bfloat16"), "sdpa").tolerance
        > 100 * checked(point(mode=mode), "sdpa").tolerance
    )


@pytest.mark.parametrize("mode", ["inference", "train"])
@pytest.mark.parametrize("mutant", mutants.ALL)
def test_every_mutant_is_rejected(mutant: str, mode: str) -> None:
    """Faults that occurred in kernels are rejected, in either mode and dtype."""
    for dtype in ("float32", "bfloat16"):
        at = point(batch=3, num_tokens=24, channels=32, num_heads=4, mode=mode, dtype=dtype)
        if (mutant, mode) == ("stale_output", "train"):
            with pytest.raises(RuntimeError, match="backward through the graph a second time"):
                checked(at, f"tests.mutants:{mutant}")
        else:
            assert checked(at, f"tests.mutants:{mutant}").reason != "", dtype


def at_a_fault(layer: str, columns: dict[str, Any], **more: Any) -> Point:
    """Return a point of a layer, small enough to be quick, at which a mutant of attention is wrong."""
    context = {"context_dim": None if layer == "core" else 12} if "num_kv_tokens" in columns else {}
    width = 16 if layer == "core" else 12
    sizes = {"num_tokens": 10, "channels": 16, "token_len": width, "num_heads": 4}
    return of_layer(layer, **{**sizes, **columns, **context, **more})


def faults() -> Iterator[tuple[str, str, dict[str, Any], list[str]]]:
    """Yield layer, mode and columns of the points at which mutants of attention are wrong, and these mutants."""
    taken = {"num_kv_tokens", "context_dim", "num_kv_heads", "mask", "lengths"}
    of_core = {
        name: [columns for columns in mutants_of_attention.WRONG[name] if {*columns} <= taken]
        for name in mutants_of_attention.OF_CORE
    }
    for layer, mode, wrong in (
        ("attention", "inference", mutants_of_attention.WRONG),
        ("core", "inference", of_core),
        ("attention", "backward", mutants_of_attention.WRONG_GRADIENTS),
    ):
        points = {str(sorted(columns.items())): columns for each in wrong.values() for columns in each}
        for columns in points.values():
            yield layer, mode, columns, [name for name, each in wrong.items() if columns in each]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("layer", "mode", "columns", "names"), [*faults()])
def test_what_is_wrong_with_a_feature_of_attention_is_rejected(
    layer: str, mode: str, columns: dict[str, Any], names: list[str], dtype: str
) -> None:
    """Masks, biases, groups, places, norms, windows and contexts that are wrong in one way; sdpa passes there."""
    work = workload.make(at_a_fault(layer, columns, mode=mode, dtype=dtype))
    checks = expected(work)
    for name in names:
        subject = subjects.subject(work, f"tests.mutants_of_attention:{name}")
        assert compared(subject, work, checks).reason != "", name
    assert compared(subjects.subject(work, "sdpa"), work, checks).reason == ""


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("columns", [{}, {"mask": "causal"}, {"lengths": "uniform"}, {"num_kv_heads": 2}], ids=str)
def test_what_we_ship_passes_as_a_core_of_many_tokens_in_a_half_type(columns: dict[str, Any], dtype: str) -> None:
    """A peaked input has logits that such a type rounds much, and no projection after them hides it."""
    work = workload.make(
        of_layer("core", num_tokens=197, channels=384, token_len=384, num_heads=6, dtype=dtype, **columns)
    )
    checks = expected(work)
    for name in ("eager", "manual", "online", "sdpa"):
        assert compared(subjects.subject(work, name), work, checks).reason == "", name


@pytest.mark.parametrize("mode", ["inference", "train"])
@pytest.mark.parametrize("honest", ["tests.foreign:twin", "tests.foreign:talkative", "tests.foreign:copying"])
def test_honest_implementations_of_users_are_accepted(honest: str, mode: str) -> None:
    """A user's implementation of the reference's function passes."""
    assert checked(point(mode=mode), honest).reason == ""


def off_in_one_gradient(layer: torch.nn.Module) -> Any:
    """Return the layer with the right output and gradients, except that the last input's gradient is doubled."""
    return lambda *xs: layer(*xs[:-1], 2 * xs[-1] - xs[-1].detach())


@pytest.mark.parametrize("mode", ["forward", "train", "backward"])
@pytest.mark.parametrize(
    ("columns", "last"),
    [(WITH_CONTEXT, "input 2"), ({"layer": "core"}, "input 3"), ({}, "x")],
    ids=["context", "core", "x"],
)
def test_the_gradient_of_every_input_is_compared(columns: dict[str, Any], last: str, mode: str) -> None:
    """A kernel that gives a wrong one for its context or its values is incorrect, and is told which it is."""
    at = point(**columns, mode=mode)
    assert checked(at, "sdpa").reason == ""
    result = checked(at, "tests.measure.test_correctness:off_in_one_gradient")
    assert result.reason.startswith(f"gradient of {last} (")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("mode", ["inference", "backward"])
@pytest.mark.parametrize("name", ["Crossed", "CrossedBySDPA"])
def test_a_users_layer_of_two_inputs_is_checked_with_each_core(name: str, mode: str, dtype: str) -> None:
    """Shipped cores pass in its place, and the mean of the values doesn't, whether it has an attend or not."""
    at = point(**{**WITH_CONTEXT, "layer": f"tests.own_layers:{name}"}, mode=mode, dtype=dtype)
    for implementation in ("as_is", "eager", "manual", "online", "sdpa", "sdpa_math"):
        assert checked(at, implementation).reason == "", implementation
    assert checked(at, "tests.mutants:uniform_weights").reason != ""


@pytest.mark.parametrize(
    ("at", "wrong", "place"),
    [
        (point(batch=2, num_tokens=9), (1, slice(5, None)), "item 1, tokens 5 to 8"),
        (point(layer="core"), (1, 2, slice(4, None)), "item 1, head 2, tokens 4 to 6"),
        (point(batch=4), (slice(2, None), slice(None), slice(8, None)), "items 2 to 3, channels 8 to 11"),
        (point(num_tokens=197), (slice(None), slice(None, None, 64)), "4 of 197 tokens, the first is 0"),
    ],
    ids=["tokens", "head", "channels", "some tokens"],
)
def test_a_kernel_that_is_wrong_from_a_token_on_is_told_where(at: Point, wrong: tuple[Any, ...], place: str) -> None:
    """The reason in its row has the place; a core's output has heads where a map has channels."""
    work = workload.make(at)
    check = reference.expect(work, NORMAL, InputValues())
    y = outputs.compute(subjects.subject(work, "sdpa"), work, work.inputs()).y.clone()
    y[wrong] *= 1.1
    assert correctness.compare(work, check, [y]).reason.endswith(f", at {place}")


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_nothing_is_right_beside_what_is_not_finite(value: float) -> None:
    """Neither zeros nor the layer's own output pass, at any tolerance."""
    work = workload.make(point())
    check = reference.expect(work, NORMAL, InputValues())
    y = work.layer(*work.inputs()).detach()
    for target in check.targets:
        target.tensor.fill_(value)
    for output in (y, torch.zeros_like(y)):
        assert "because the expected value is not finite" in correctness.compare(work, check, [output]).reason
