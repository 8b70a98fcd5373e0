"""A call as a CUDA graph, on a GPU that is made up: it computes the same, of new inputs each time."""

import random

import pytest
import torch
from torch import Tensor

from bench.measure import cuda, subjects, workload
from bench.measure.graphs import Graph
from bench.measure.timed_calls import TimedCalls
from bench.plan.device import GRAPH
from impls.contract import Unsupported
from tests.make.points import point
from tests.make.simulated_gpu import Gpu, gpu

__all__ = ["gpu"]


def _tensors(result: object) -> list[Tensor]:
    y, gradients = result if isinstance(result, tuple) else (result, ())
    return [y.detach(), *gradients]


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_a_replay_computes_what_the_call_computes_for_the_next_inputs(mode: str, gpu: Gpu) -> None:
    """In training, with the gradients for the direction of the timing."""
    work = workload.make(point(mode=mode))
    subject, inputs = subjects.subject(work, "eager"), subjects.Inputs(work)
    inputs.renew(3, 1)
    graph = Graph(subject, work, inputs)
    inputs.renew(3, 2)
    results = []
    for _ in range(3):
        graph.renew()
        results.append(graph.keep(graph()))
    call = subjects.step(subject, work, inputs)
    inputs.renew(3, 2)
    for result in results:
        with work.gradient_mode():
            expected = call()
        for one, other in zip(_tensors(result), _tensors(expected), strict=True):
            assert torch.allclose(one, other, atol=1e-6)
    assert not torch.equal(_tensors(results[0])[0], _tensors(results[1])[0])


def test_a_timing_of_a_graph_holds_the_output_of_a_drawn_replay(gpu: Gpu) -> None:
    """Each has its own inputs, and the held output belongs to them; the time excludes copies of inputs and outputs."""
    work = workload.make(point())
    subject, inputs = subjects.subject(work, "eager"), subjects.Inputs(work)
    graph = Graph(subject, work, inputs)
    timed = TimedCalls(graph, inputs, cuda.timer(GRAPH), random.Random(1), reuses=False)
    drawn = set()
    for key in range(8):
        held: list[tuple[int, object]] = []
        taken = timed.timing(graph, 4, key, lambda number, result, held=held: held.append((number, result)))  # type: ignore[misc]
        assert taken.call_s == pytest.approx(1e-5)
        ((number, result),) = held
        drawn.add(number)
        with work.gradient_mode():
            assert torch.allclose(_tensors(result)[0], subject.function(*inputs.of_call(number)[1]), atol=1e-6)
    assert len(drawn) > 1
    assert not timed.reuses


def test_a_call_that_cannot_be_captured_says_torchs_reason(gpu: Gpu) -> None:
    """Here it looks at a value, for which the host must wait. The end of the capture says less."""
    work = workload.make(point(layer="tests.own_layers:OfValues", num_heads=1))
    with pytest.raises(
        Unsupported, match=r"can't be captured as a CUDA graph: .*not permitted when stream is capturing$"
    ):
        Graph(subjects.subject(work, "as_is"), work, subjects.Inputs(work))
    assert gpu.current is gpu.streams[0]


@pytest.mark.parametrize("mode", ["forward", "backward"])
def test_a_part_of_a_training_step_is_no_graph(mode: str, gpu: Gpu) -> None:
    """A replay leaves nothing for a backward pass, and one alone would have the forward pass in it."""
    work = workload.make(point(mode=mode))
    with pytest.raises(Unsupported, match=f"timing graph needs mode inference or train, got {mode}"):
        Graph(subjects.subject(work, "eager"), work, subjects.Inputs(work))
