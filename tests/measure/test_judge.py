"""The judge: outputs in files, compared with what another process expects, which it computes once."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from bench.measure import outputs, reference, subjects, workload
from bench.measure.judge import obstacle
from bench.plan.case import Point
from bench.sampling.inputs import NORMAL, PEAKED, TIMED, InputValues, TimedCall
from bench.sampling.requests import Rates
from tests.make.points import point
from tests.measure.stub import SEED, SHIFTS, Announcements, Judging, path


def judge_of(at: Point) -> Judging:
    """Return a judge that has the expected outputs at a point."""
    judge = Judging()
    judge.expect(at)
    return judge


def test_a_judge_measures_rates_on_the_core_of_the_samples_and_leaves_it() -> None:
    """The judge is a process of the same replicate: later references may use every core."""
    judge = judge_of(point()).judge
    cores = os.sched_getaffinity(0)
    for core in (min(cores), None):
        rates = judge.rates(Rates(1, 0.0, core), Announcements())
        assert min(rates.flops_per_s, rates.bytes_per_s) > 1e6
        assert os.sched_getaffinity(0) == cores


def written(at: Point, check: str, change: Callable[[Tensor], Tensor] = lambda y: y, seed: int = SEED) -> str:
    """Return the file of what sdpa computes for the input of a check, with its output changed."""
    work = workload.make(at, seed)
    xs = work.inputs(InputValues(SHIFTS[check], reference.peak(work) if check == PEAKED else 1.0))
    output = outputs.compute(subjects.subject(work, "sdpa"), work, tuple(x.clone() for x in xs))
    file = path()
    outputs.write([change(output.y), *output.gradients], file)
    return file


def test_another_seed_has_other_expectations() -> None:
    """The outputs for a seed's weights and inputs are wrong for any other seed, whatever was made before."""
    judge = judge_of(point())
    judge.expect(point(), SEED + 1)
    assert judge.compare(PEAKED, written(point(), PEAKED, seed=SEED + 1))["reason"] == ""
    assert "is off by" in judge.compare(PEAKED, written(point(), PEAKED))["reason"]


def test_a_column_that_reaches_no_parameter_is_a_remark_on_the_rows_of_the_point() -> None:
    """The user's layer is measured with what it has, and the run says that its rows name something else."""
    at = point(layer="tests.measure.test_workload:Drawn")
    assert Judging().expect(at)["remark"] == f"num_heads = {at.num_heads} sets nothing; {at.layer} takes channels"


MODES = [("inference", "float32"), ("forward", "bfloat16"), ("train", "float32"), ("train", "bfloat16")]


@pytest.mark.parametrize(("mode", "dtype"), MODES)
def test_a_file_is_compared_with_the_expectation_of_its_check(mode: str, dtype: str) -> None:
    """The output for these values passes with its error; a changed one and one for other values don't."""
    at = point(mode=mode, dtype=dtype)
    judge = judge_of(at)
    for check in SHIFTS:
        reply = judge.compare(check, written(at, check))
        assert reply["reason"] == ""
        assert 0 <= reply["error"] <= reply["tolerance"]
        changed = judge.compare(check, written(at, check, lambda y: y * 1.3))
        assert changed["reason"].startswith(f"output ({check}) is off by ")
        assert changed["error"] > changed["tolerance"]
        other = PEAKED if check == NORMAL else NORMAL
        assert judge.compare(check, written(at, other))["reason"] != ""


ITEMS = [(11, 0, 1), (12, 2, 0), (11, 0, 0)]
"""Items of timed calls: the key of the timing, the place of the input in it, and the item."""


def timed(judge: Judging, where: Point, change: Callable[[int, Tensor], Tensor] = lambda _, y: y) -> str:
    """Return why the outputs of timed calls are incorrect, if one of them is changed: the whole one has number -1."""
    work = workload.make(where, SEED)

    def computed(call: TimedCall, number: int) -> list[Tensor]:
        direction = work.direction_of(call.key) if where.mode == "train" else work.direction
        of_call = dataclasses.replace(work, direction=direction)
        output = outputs.compute(subjects.subject(work, "sdpa"), of_call, work.of_call(call))
        return [change(number, output.y), *output.gradients]

    kept: list[list[Any]] = [] if where.mode == "inference" else [[10, 1, None, computed(TimedCall(10, 1), -1)]]
    for number, (key, place, item) in enumerate(ITEMS):
        tensors = computed(TimedCall(key, place), number)[: 2 if where.mode == "train" else 1]
        kept.append([key, place, item, [tensor[item] for tensor in tensors]])
    file = path()
    outputs.write(kept, file)
    reply = judge.compare_timed(file)
    assert [call[0] for call in reply["calls"]] == [key for key, *_ in kept]
    return str(reply["reason"])


@pytest.mark.parametrize(("mode", "dtype"), [mode for mode in MODES if mode != ("train", "float32")])
def test_items_of_timed_calls_are_compared_beside_a_whole_output(mode: str, dtype: str) -> None:
    """All are right, or the one is named that is not; an item that is not judged may be anything."""
    at = point(mode=mode, dtype=dtype, batch=3, num_tokens=130)
    judge = judge_of(at)
    assert timed(judge, at) == ""

    def wrong_at(wrong: int) -> str:
        return timed(judge, at, lambda number, y: y * (1.3 if number == wrong else 1.0))

    assert wrong_at(-1).startswith("" if mode == "inference" else f"output ({TIMED}) is off by ")
    for wrong, (_, _, item) in enumerate(ITEMS):
        assert wrong_at(wrong).startswith(f"output of item {item} ({TIMED}) is off by ")
    assert timed(judge, at, lambda number, y: torch.cat([y[:2], y[2:] * (1 + (number >= 0))])) == ""
    assert "is not finite" in timed(judge, at, lambda number, y: y * float("nan") if number == 1 else y)


ONE = dict.fromkeys(("num_tokens", "channels", "num_heads"), 1)
"""The sizes of a point of a model, which has its own."""


@pytest.mark.parametrize(
    "at",
    [
        point(layer="conv", batch=2, num_tokens=144, channels=32, image_size=12, token_len=32),
        point(layer="tests.tiny_models:Net[kind=masked,input=1x5x16]", batch=2, **ONE),
    ],
    ids=["conv", "masked"],
)
def test_a_layer_that_mixes_tokens_and_a_model_are_compared_in_all_rows(at: Point) -> None:
    """Some rows of a core would say nothing of an output after which tokens are mixed.

    Other arguments of a model's cores, such as a mask tensor, are only for torch's own function.
    """
    judge = judge_of(at)
    assert timed(judge, at) == ""
    assert "is off by" in timed(judge, at, lambda number, y: y * (1.1 if number == 0 else 1.0))


def test_an_output_that_is_not_finite_has_no_error_as_a_number() -> None:
    """JSON knows no infinity."""
    file = written(point(), PEAKED, lambda y: y * float("nan"))
    reply = judge_of(point()).compare(PEAKED, file)
    assert (reply["error"], reply["reason"]) == (None, f"output is not finite ({PEAKED})")


def test_a_file_of_another_form_is_incorrect() -> None:
    """The process that wrote it may have written anything; the judge goes on."""
    judge, nothing, other = judge_of(point()), path(), path()
    Path(nothing).write_bytes(b"1234")
    outputs.write([torch.zeros(2, 7, 11)], other)
    for file in (nothing, other):
        reply = judge.compare(PEAKED, file)
        assert (reply["error"], reply["tolerance"]) == (None, None)
        assert reply["reason"].endswith(f"({PEAKED})")
    assert judge.compare(PEAKED, written(point(), PEAKED))["reason"] == ""


@pytest.mark.parametrize(
    ("columns", "devices", "reason"),
    [
        ({"timing": "device-hot"}, 0, "timing = device-hot can't be used on cpu; expected host"),
        (
            {"device": "cuda", "timing": "device-cold"},
            0,
            f"no CUDA device (see docs/gpu.md): torch {torch.__version__} sees none: it gives no reason",
        ),
        ({"device": "cuda:0"}, 1, ""),
    ],
)
def test_a_point_that_the_machine_can_not_run_is_unsupported(
    columns: dict[str, str], devices: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is measured on another device than the one asked for, nor by another clock."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: devices > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: devices)
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    at = point(**columns)
    assert obstacle(at) == reason
    if reason:
        reply = Judging().expect(at)
        assert (reply["status"], reply["detail"]) == ("unsupported", reason)


def test_a_layer_that_leaves_the_process_changed_can_not_be_judged() -> None:
    """Its change would affect everything that is computed after it."""
    reply = Judging().expect(point(layer="tests.own_layers:MultiThreaded"))
    assert reply["status"] == "error"
    assert "left torch's threads changed: 2 instead of 1 (when the layer was made or called)" in reply["detail"]
