"""The check rejects an implementation of another function, and accepts one of the reference's."""

import itertools
from typing import Any

import pytest
import torch

import impls
from bench.measure import correctness, outputs, workload
from bench.plan.layers import LAYERS
from bench.sampling.inputs import AFTERWARDS, NORMAL, ROWS, TIMED
from tests import mutants
from tests.checked import SHAPES, checked, compared, expected
from tests.impls.hardware import NOT_EAGER_ON_CPU
from tests.points import OF_LAYER, of_layer, point

pytestmark = pytest.mark.slow

OTHER_LAYERS = [layer for layer in OF_LAYER if layer != "vit"]

SHIPPED = ("eager", "manual", "stepwise", "online", "sdpa", "sdpa_math", "sdpa_flash", "mha")
MODES, DTYPES = ("inference", "forward", "train"), ("float32", "bfloat16", "float16")


@pytest.mark.parametrize("implementation", SHIPPED)
def test_what_we_ship_passes_at_every_shape_and_in_every_mode_and_dtype(implementation: str) -> None:
    """One token, two, a prime number of them, heads of one channel: no shape makes the check unfair.

    Each mode meets each dtype at one of the shapes, at another one for each implementation.
    """
    said = {}
    kinds = itertools.islice(itertools.cycle(itertools.product(MODES, DTYPES)), SHIPPED.index(implementation), None)
    for shape, (mode, dtype) in zip(SHAPES, kinds, strict=False):
        at = point(**shape, mode=mode, dtype=dtype)
        if implementation == "mha" and at.token_len != at.channels:
            with pytest.raises(impls.Unsupported):
                checked(at, implementation)
            continue
        result = checked(at, implementation)
        if result.reason or not 0 <= result.error <= result.tolerance:
            said[at.name] = result
    assert said == {}


@pytest.mark.parametrize("layer", OTHER_LAYERS)
@pytest.mark.parametrize("mode", ["inference", "train"])
def test_shipped_implementations_pass_on_every_layer(mode: str, layer: str) -> None:
    """On each layer what we ship computes the reference's function, or says that it can't.

    Compiling takes long, so it is tried on one of them with one implementation, and elsewhere on the others.
    """
    for name in (each for each in impls.IMPLEMENTATIONS if each not in NOT_EAGER_ON_CPU):
        narrow_keys = (layer, name) == ("self", "sdpa_flash")  # this point's keys are narrower than its values
        if impls.IMPLEMENTATIONS[name].refusal(LAYERS[layer].class_name) or narrow_keys:
            with pytest.raises(impls.Unsupported):
                checked(of_layer(layer, mode=mode), name)
        elif not impls.compiles(name) or (layer, mode, name) == ("conv", "train", "compiled_sdpa"):
            assert checked(of_layer(layer, mode=mode), name).reason == "", name


@pytest.mark.parametrize("layer", OTHER_LAYERS)
def test_mutants_are_rejected_on_every_layer(layer: str) -> None:
    """What computes something else is rejected whatever the layer; conv's weight of the residual is not 0."""
    for mutant in ("mean_of_values", "swapped_tokens", "stale_output", "edits_its_input", "one_nan"):
        assert checked(of_layer(layer), f"tests.mutants:{mutant}").reason != "", mutant


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_an_output_one_percent_too_large_is_rejected(mode: str) -> None:
    """An error that float32 does not explain is incorrect, with a reason that names tensor, size and tolerance."""
    result = checked(point(mode=mode), "tests.foreign:wrong")
    assert "is off by" in result.reason
    assert result.error > result.tolerance


def test_the_tolerance_comes_from_the_dtype() -> None:
    """bfloat16 is allowed an error that float32 is not."""
    assert checked(point(dtype="bfloat16"), "sdpa").tolerance > 100 * checked(point(), "sdpa").tolerance


def test_on_large_shapes_items_at_random_are_compared_with_float64_and_all_with_plain_eager(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Above the limit float64 computes two items that the seed draws; an error in another one is seen all the same."""
    monkeypatch.setattr(correctness, "WHOLE_BATCH_SCORES", 1)
    drawn = set()
    for seed in range(4):
        work = workload.make(point(batch=4, mode="train"), seed)
        checks = expected(work)
        (exact, plain), x = checks[0].expected, work.x
        assert (exact.tensors[0].dtype, exact.tensors[0].shape) == (torch.float64, (2, 7, 12))
        assert (plain.items, plain.tensors[0].dtype, plain.tensors[1].shape) == ([0, 1, 2, 3], torch.float32, x.shape)
        assert compared(workload.subject(work, "sdpa"), work, checks).reason == ""
        drawn.add(tuple(exact.items))
        for item in range(4):
            off = _off_in_one_item(workload.subject(work, "eager"), item)
            assert "output" in compared(off, work, checks).reason
    assert len(drawn) > 1


def _off_in_one_item(subject: workload.Subject, item: int) -> workload.Subject:
    """Return an implementation that is wrong in one item of the batch."""

    def call(x: torch.Tensor) -> torch.Tensor:
        factor = torch.ones(len(x), 1, 1)
        factor[item] = 1.01
        return subject.function(x) * factor

    return workload.Subject(subject.layer, call)


def test_a_reference_in_float64_is_what_outputs_are_held_against() -> None:
    """The expected output is that of the layer in float64 on the same weights and input."""
    work = workload.make(point())
    target = expected(work)[0].expected[0].tensors[0]
    assert target.dtype == torch.float64
    with torch.inference_mode():
        assert torch.allclose(target, work.layer(work.x).double(), atol=1e-6)
        assert not torch.equal(target, work.layer(work.x).double())


@pytest.mark.parametrize("mode", ["inference", "train"])
@pytest.mark.parametrize("mutant", mutants.ALL)
def test_every_mutant_is_rejected(mutant: str, mode: str) -> None:
    """What was seen to be wrong in kernels does not pass, in either mode and dtype."""
    for dtype in ("float32", "bfloat16"):
        at = point(batch=3, num_tokens=24, channels=32, num_heads=4, mode=mode, dtype=dtype)
        if (mutant, mode) == ("stale_output", "train"):
            with pytest.raises(RuntimeError, match="backward through the graph a second time"):
                checked(at, f"tests.mutants:{mutant}")
        else:
            assert checked(at, f"tests.mutants:{mutant}").reason != "", dtype


@pytest.mark.parametrize("mode", ["inference", "train"])
@pytest.mark.parametrize("honest", ["tests.foreign:twin", "tests.foreign:talkative", "tests.foreign:copying"])
def test_honest_implementations_of_users_are_accepted(honest: str, mode: str) -> None:
    """What computes the reference's function passes, whoever wrote it."""
    assert checked(point(mode=mode), honest).reason == ""


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_one_that_computes_two_items_of_the_batch_is_rejected(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The items that float64 computes are drawn at random, and the whole batch is compared with plain eager."""
    monkeypatch.setattr(correctness, "WHOLE_BATCH_SCORES", 1)
    assert "output" in checked(point(batch=8, mode=mode), "tests.mutants:two_items").reason


@pytest.mark.parametrize("name", [TIMED, AFTERWARDS])
def test_later_checks_have_other_values_and_fewer_exact_items(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An output for one shift is no output for another; above the limit one item is compared with float64."""
    monkeypatch.setattr(correctness, "WHOLE_BATCH_SCORES", 1)
    work = workload.make(point(batch=4))
    here, there = (correctness.expect(work, name, shift) for shift in (3, 4))
    with torch.inference_mode():
        y = work.layer(correctness.values(work, name, 3))
    assert len(here.expected[0].items) == 1
    assert correctness.compare(work, here, [y]).reason == ""
    assert f"({name})" in correctness.compare(work, there, [y]).reason


@pytest.mark.parametrize("mode", ["inference", "forward", "train"])
@pytest.mark.parametrize("layer", OF_LAYER)
def test_long_sequences_are_checked_without_all_scores(layer: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What we ship passes, and a mutant is rejected, on every layer."""
    monkeypatch.setattr(correctness, "LONG_SCORES", 1)
    at = of_layer(layer, mode=mode)
    short, result = checked(at, "eager"), checked(at, "sdpa")
    assert (short.reason, result.reason) == ("", "")
    assert result.error <= result.tolerance
    assert checked(at, "tests.mutants:mean_of_values").reason


def test_one_wrong_row_of_a_hundred_is_found() -> None:
    """In at least 99 of 100 draws."""
    assert (1 - 0.01) ** ROWS < 0.01


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda w: w[:, 64:].fill_(True), "tokens 64 to 196"),
        (lambda w: w[1, 3].fill_(True), "item 1, token 3"),
        (lambda w: w[2:, :, 8:16].fill_(True), "items 2 to 3, channels 8 to 15"),
        (lambda w: w[:, ::64].fill_(True), "4 of 197 tokens, the first is 0"),
        (lambda w: w.fill_(True), ""),
    ],
)
def test_the_place_of_an_error_names_what_is_wrong(wrong: Any, text: str) -> None:
    """As a tile's edge, an item of the batch, or a head's channels; an axis that is all wrong says nothing."""
    mask = torch.zeros(4, 197, 32, dtype=torch.bool)
    wrong(mask)
    assert correctness.place(mask, range(4)) == text


def test_items_have_the_numbers_that_they_have_in_the_batch() -> None:
    """Only some of them are compared."""
    mask = torch.zeros(3, 5, 4, dtype=torch.bool)
    mask[1] = True
    assert correctness.place(mask, [3, 5, 8]) == "item 5"


def test_a_kernel_that_is_wrong_from_a_token_on_is_told_where() -> None:
    """In the reason of its row, with the item's own number if only some are compared."""
    work = workload.make(point(batch=2, num_tokens=9))
    check = correctness.expect(work, NORMAL)
    y = outputs.compute(workload.subject(work, "sdpa"), work.x.clone(), None).y.clone()
    y[1, 5:] *= 1.1
    assert correctness.compare(work, check, [y]).reason.endswith(", at item 1, tokens 5 to 8")
