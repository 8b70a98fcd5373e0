"""Stages as means over calls."""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - PyTorch's own convention
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from bench.measure import workload
from bench.plan.case import Point
from bench.plan.layers import flops, steps
from bench.profiling import stages as module
from bench.profiling.stages import stages
from bench.store.profile import BACKWARD, FORWARD, Stage
from impls.whole import stepwise
from tests.points import STEPWISE, of_layer, point
from tests.profiling.taken import captured

AT = {"batch": 2, "num_tokens": 64, "channels": 32, "num_heads": 4}
SCORES, VALUES = 4 * (2 * 4 * 64 * 64), 4 * (2 * 64 * 32)
"""Bytes of the scores, and of the values of all heads."""


def found(mode: str, implementation: str = "stepwise") -> dict[tuple[str, str], Stage]:
    """Return the stages of a case by name and direction."""
    at = point(**AT, mode=mode)
    return {(each.name, each.direction): each for each in stages(captured(at, implementation).middle_half, at)}


@pytest.mark.parametrize("mode", ["inference", "train"])
def test_the_stages_add_up_to_no_more_than_the_call(mode: str) -> None:
    """A stage takes time, and no moment belongs to two of them."""
    times = [stage.time_s for stage in found(mode).values()]
    assert min(times) > 0
    assert sum(times) <= captured(point(**AT, mode=mode), "stepwise").profiled_s


def test_forward_stages_come_in_order_and_backward_in_reverse() -> None:
    """The softmax is computed after the scores, its gradient before theirs."""
    order = list(found("train"))
    names = [name for name, direction in order if direction == FORWARD]
    assert names[0] == "qkv projection"
    assert names[-1] == "skip"
    assert [name for name, direction in order if direction == BACKWARD] == names[::-1]


def test_allocated_bytes_are_those_of_each_step() -> None:
    """By hand: scores and softmax allocate the scores, the first beside copies of queries and keys."""
    stages = found("inference")
    assert stages["softmax", FORWARD].allocated_bytes == SCORES
    assert stages["scores", FORWARD].allocated_bytes == SCORES + 2 * VALUES
    assert stages["qkv projection", FORWARD].allocated_bytes == 3 * VALUES
    assert stages["split heads", FORWARD].allocated_bytes == 0
    assert found("train")["softmax", BACKWARD].allocated_bytes == SCORES


def test_work_comes_from_the_formulas_of_the_layer() -> None:
    """Each stage knows what it must move and compute, so that rates are known; only who names its steps has any."""
    stages = found("train")
    assert stages["softmax", FORWARD].moved_bytes == 2 * SCORES
    assert stages["scores", BACKWARD].flops == 2 * stages["scores", FORWARD].flops  # type: ignore[operator]
    assert stages["softmax", FORWARD].flops is None
    assert found("inference", "eager") == {}


POINTS = [
    point(batch=2, num_tokens=16, token_len=64, channels=48, num_heads=4),
    point(batch=3, num_tokens=10, channels=12, num_heads=1, qkv_bias=True),
    *map(of_layer, STEPWISE),
    of_layer("vit", dtype="bfloat16"),
]
of_points = pytest.mark.parametrize("at", POINTS, ids=lambda at: at.name)


class Watch(TorchDispatchMode):
    """Counts what each stage reads that others made, and what it makes that others or the caller read."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.stage = ""
        self.flops: dict[str, int] = {}
        self.read: dict[str, dict[Any, int]] = defaultdict(dict)
        self._made: dict[int, tuple[str, Tensor]] = {}
        self._left: dict[str, dict[int, int]] = defaultdict(dict)

    @contextlib.contextmanager
    def label(self, name: str) -> Iterator[None]:
        """Stand in for record_function: what runs inside belongs to this stage."""
        self.stage = name
        with FlopCounterMode(display=False) as counter:
            yield
        self.stage = ""
        self.flops[name] = counter.get_total_flops()

    def moved_bytes(self, stage: str) -> int:
        """Return the bytes of a stage's inputs and outputs."""
        return sum(self.read[stage].values()) + sum(self._left[stage].values())

    def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not func.is_view and func.overloadpacket is not torch.ops.aten._unsafe_view:
            for tensor in torch.utils._pytree.tree_leaves((args, kwargs)):
                if isinstance(tensor, Tensor) and tensor.dim():
                    self.see_read(tensor)
            for tensor in torch.utils._pytree.tree_leaves(result):
                self._made.setdefault(tensor.untyped_storage().data_ptr(), (self.stage, tensor))
        return result

    def see_read(self, tensor: Tensor) -> None:
        """Note that the stage at work reads a tensor; its maker, if another, made it for that."""
        storage = tensor.untyped_storage().data_ptr()
        maker, made = self._made.get(storage, ("", tensor))
        if maker == self.stage and maker:
            return
        key = (storage, tensor.storage_offset(), tuple(sorted(tensor.shape)))
        self.read[self.stage][key] = tensor.nbytes
        if maker:
            self._left[maker][storage] = made.nbytes


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Return a watch that stepwise's labels report to."""
    found = Watch()
    monkeypatch.setattr(stepwise, "record_function", found.label)
    return found


@of_points
def test_forward_bytes_and_flops_are_those_of_the_tensors_that_pass(at: Point, watch: Watch) -> None:
    """Stage by stage: what it reads of others, and what it makes for others, each tensor once; products by torch."""
    work = workload.make(at)
    function = workload.subject(work, "stepwise").function
    with torch.no_grad(), watch:  # inference mode would show whole operators, not the copies in them
        y = function(work.x)
    watch.see_read(y)
    assert watch.flops.keys() == steps(at).keys()
    for stage in steps(at):
        assert module.moved_bytes(at, stage, FORWARD) == watch.moved_bytes(stage), stage
        assert module.flops(at, stage, FORWARD) == (watch.flops[stage] or None), stage


@of_points
def test_the_flops_of_all_stages_are_those_of_the_layer(at: Point) -> None:
    """Forward and backward together they are what the whole layer needs in training."""
    directions = (FORWARD, BACKWARD)
    found = [module.flops(at, stage, direction) for stage in steps(at) for direction in directions]
    assert sum(each or 0 for each in found) == (flops(at) or 0) * 3


Steps = dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]]
"""Each step as a function of its inputs."""


def random(*shape: int) -> Tensor:
    """Return an input that wants a gradient."""
    return torch.randn(shape, requires_grad=True)


def core(batch: int, heads: int, tokens: int, keys: int, values: int) -> Steps:
    """Return the steps that all layers share; keys and values are the widths of one head."""
    q, k, v = (random(batch, heads, tokens, width) for width in (keys, keys, values))
    scores = random(batch, heads, tokens, tokens)
    return {
        "scale": (lambda q: q * 0.5, (q,)),
        "scores": (lambda q, k: q @ k.mT, (q, k)),
        "softmax": (lambda s: s.softmax(-1), (scores,)),
        "weighted values": (lambda a, v: a @ v, (scores, v)),
    }


def vit() -> tuple[Point, Steps]:
    """Return a layer with several heads, with its steps."""
    at = point(batch=2, num_tokens=16, token_len=64, channels=48, num_heads=4)
    return at, {
        "qkv projection": (F.linear, (random(2, 16, 64), random(144, 64))),
        "split heads": (
            lambda qkv: qkv.reshape(2, 16, 3, 4, 12).permute(2, 0, 3, 1, 4).unbind(0),
            (random(2, 16, 144),),
        ),
        **core(2, 4, 16, 12, 12),
        "merge heads": (lambda o: o.transpose(1, 2).flatten(2), (random(2, 4, 16, 12),)),
        "output projection": (F.linear, (random(2, 16, 48), random(48, 48), random(48))),
        "skip": (torch.add, (random(2, 16, 48), random(2, 16, 48))),
    }


def conv() -> tuple[Point, Steps]:
    """Return the layer whose residual is learned, with the steps that are its own."""
    at = of_layer("conv")
    maps = random(2, 16, 3, 3)
    return at, {
        "qkv projection": (F.linear, (random(2, 9, 16), random(20, 16), random(20))),
        **core(2, 1, 9, 2, 16),
        "skip": (lambda gamma, maps, x: gamma * maps + x, (random(1), maps, random(2, 16, 3, 3))),
    }


def patch() -> tuple[Point, Steps]:
    """Return the layer that embeds patches of an image, with that step."""
    at = of_layer("patch")
    convolution = nn.functional.conv2d
    return at, {
        "patch embedding": (
            lambda x, weight, bias: convolution(x, weight, bias, stride=4),
            (random(2, 3, 12, 12), random(12, 3, 4, 4), random(12)),
        ),
    }


@pytest.mark.parametrize("layer", [vit, conv, patch])
def test_backward_bytes_are_those_of_gradients_and_of_what_was_kept(layer: Callable[[], tuple[Point, Steps]]) -> None:
    """Step by step: the gradient of the output and what autograd kept are read, the gradients of inputs written."""
    at, steps = layer()
    for stage, (step, inputs) in steps.items():
        assert module.moved_bytes(at, stage, BACKWARD) == backward_bytes(step, inputs), stage


def backward_bytes(step: Callable[..., Any], inputs: tuple[Tensor, ...]) -> int:
    """Return the bytes of a step's backward pass, 0 where the gradients of its inputs are that of its output."""
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        made = step(*inputs)
        outputs = made if isinstance(made, tuple) else (made,)
    directions = [torch.randn(output.shape) for output in outputs]
    gradients = torch.autograd.grad(outputs, inputs, directions)
    given = {direction.untyped_storage().data_ptr() for direction in directions}
    written = [each.nbytes for each in gradients if each.untyped_storage().data_ptr() not in given]
    return sum(written) + sum(direction.nbytes for direction in directions) + sum(kept.values()) if written else 0


def test_a_stage_that_no_formula_knows_has_neither() -> None:
    """A label of one's own is no step of the layer."""
    assert module.moved_bytes(POINTS[0], "my stage", FORWARD) is None
    assert module.flops(POINTS[0], "my stage", FORWARD) is None
