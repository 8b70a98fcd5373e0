"""A call of a module as a graph of operators, which know their lines of source and their modules.

All names of torch that are private are in this file.
"""

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import PythonKeyTracer, make_fx
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from bench.modules.wrapper import Wrapper, first_tensor
from impls.contract import Unsupported

NOT_SOURCE = (
    *(f"{folder}/" for folder in (Path(torch.__file__).parent, Path(__file__).parents[1])),
    *("/einops/", "/einx/", "/opt_einsum/", "<"),
)
"""Parts of the names of files whose lines are no source of a model."""

OF_TORCH = ("aten", "prim", "prims")
"""The libraries of torch's own operators."""

FRAMES, MODULE = "frames", "module"
"""What the `meta` of a node holds: places in the source, the module."""


class Frame(NamedTuple):
    """The place of a call in the source: that of one node of the file's syntax tree, or a line of torch's own."""

    file: str
    line: int
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None


FILLS = {"zeros": 0, "ones": 1}
"""What tensors are filled with, by the beginning of an operator's name."""


class Untraceable(Unsupported):
    """A call can't be traced; the message says where and why."""


@dataclass(frozen=True)
class Traced:
    """A call of `inner` as a graph: the module that runs it takes the same tensors and returns the first tensor.

    Parameters and buffers are attributes of `module`, the same objects.
    """

    module: GraphModule
    inner: nn.Module = field(default_factory=nn.Module)
    """The module whose paths the nodes know."""
    xs: tuple[Tensor, ...] = ()
    """The inputs of the call."""
    layer_inputs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The shapes of the first tensors that modules got, by their paths."""

    def inputs_by_node(self) -> dict[Node, Tensor]:
        """Return the inputs by their nodes."""
        places = [node for node in self.module.graph.nodes if node.op == "placeholder"]
        return dict(zip(places, self.xs, strict=True))

    def held(self) -> Iterator[Node]:
        """Yield the nodes of those tensors that a measured module holds because a call of it gets them as arguments."""
        wrappers = (each for each in self.inner.modules() if isinstance(each, Wrapper))
        arguments = {id(tensor) for each in wrappers for tensor in each.arguments}
        for node in self.module.graph.find_nodes(op="get_attr"):
            if id(getattr(self.module, str(node.target), None)) in arguments:
                yield node

    def with_weights(self, node: Node) -> str:
        """Return the path of the innermost module with weights around a node, the outermost if there is none."""
        path = module_of(node)
        while path and next(self.inner.get_submodule(path).parameters(), None) is None:
            path = path.rpartition(".")[0]
        return path


def traced(function: Callable[..., Any], xs: Sequence[Tensor], inner: nn.Module | None = None) -> Traced:
    """Return a call of a function, or module, on tensors as a graph; `inner` is the module whose paths are known.

    What the call does to buffers and to random numbers is undone. The graph is one for calls with gradients, or
    without, as they are computed now. Raises `Untraceable`.
    """
    of = inner or (function if isinstance(function, nn.Module) else nn.Module())
    failed: list[Exception] = []
    for pre_dispatch in (True, False):  # flex_attention can't be traced before dispatch
        try:
            return _graph(function, xs, of, pre_dispatch=pre_dispatch)
        except Unsupported:
            raise
        except Exception as error:  # a module may raise anything
            failed.append(error)
    first = failed[0]
    reason = str(first).strip().partition("\n")[0]
    raise Untraceable(f"torch can't trace the module: {type(first).__name__}: {reason}{_at(first)}") from first


def _graph(function: Callable[..., Any], xs: Sequence[Tensor], inner: nn.Module, *, pre_dispatch: bool) -> Traced:
    def first(*tensors: Tensor) -> Tensor:
        return first_tensor(function(*tensors))

    has_gradients = torch.is_grad_enabled()  # the graph has this where a block without gradients ends
    with torch.inference_mode(False), torch.set_grad_enabled(has_gradients), _undone(inner, xs), no_fast_path():
        own = [x.detach().clone() for x in xs]
        with _with_paths(inner) as (around, layer_inputs), _with_places(around):
            graph: GraphModule = make_fx(
                first, tracing_mode="real", pre_dispatch=pre_dispatch, _error_on_data_dependent_ops=False
            )(*own)
        _take_shapes(graph)
        graph(*(x.clone() for x in own))  # what a program for scores captured may not outlive its tracing
    return Traced(graph, inner, tuple(xs), layer_inputs)


def _take_shapes(graph: GraphModule) -> None:
    """Let operators that take a tensor for its shape alone take the shape: their results don't depend on it."""
    for node in graph.graph.nodes:
        kind, value = name(node), node.meta.get("val")
        base = kind.removeprefix("new_").removesuffix("_like")
        if kind in ("expand_as", "view_as"):
            node.target = torch.ops.aten.expand.default if kind == "expand_as" else torch.ops.aten.view.default
            node.args = (node.args[0], [*value.shape])
        elif base != kind and base in (*FILLS, "full") and value.is_contiguous():
            node.target, fill = torch.ops.aten.full.default, FILLS.get(base, node.args[-1])
            node.args, node.kwargs = ([*value.shape], fill), {"dtype": value.dtype, "device": value.device}
    graph.recompile()


@contextmanager
def _undone(inner: nn.Module, xs: Sequence[Tensor]) -> Iterator[None]:
    """Restore buffers, what modules keep in attributes, and the states of random numbers after."""
    before = [(buffer, buffer.detach().clone()) for buffer in inner.buffers()]
    kept = _kept(inner)
    try:
        with forked(xs):
            yield
    finally:
        for attributes, values in kept:
            attributes.clear()
            attributes.update(values)
        for buffer, value in before:
            with torch.inference_mode(buffer.is_inference()):  # else it can't be written
                buffer.copy_(value)


def _kept(inner: nn.Module) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return what modules keep in attributes and as buffers, each with a copy; a wrapper keeps what is said of it."""
    modules = [each for each in inner.modules() if not isinstance(each, Wrapper)]
    return [(of, {**of}) for each in modules for of in (vars(each), each._buffers)]


def fill(inner: nn.Module, xs: Sequence[Tensor]) -> None:
    """Call a module once if a call changes its attributes: it may fill tables, which later calls have."""
    with without_traces(inner, xs):
        before = _kept(inner)
        inner(*(x.clone() for x in xs))
        is_filled = any([*map(id, of.values())] != [*map(id, values.values())] for of, values in before)
    if is_filled:
        with torch.inference_mode(False), torch.no_grad(), forked(xs):
            inner(*(x.clone() for x in xs))


def forked(xs: Sequence[Tensor]) -> AbstractContextManager[None]:
    """Return a context after which the states of random numbers are as they were."""
    return torch.random.fork_rng({x.device for x in xs if x.is_cuda})


@contextmanager
def no_fast_path() -> Iterator[None]:
    """Let torch's own modules run their operators one by one inside, not as one for a whole layer."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


@contextmanager
def _with_paths(inner: nn.Module) -> Iterator[tuple[list[str], dict[str, tuple[int, ...]]]]:
    """Yield the paths of the modules that are running, the innermost last, and the shapes that modules got."""
    known, around = {id(module): path for path, module in inner.named_modules()}, [""]
    got: dict[str, tuple[int, ...]] = {}

    def enter(module: nn.Module, args: Any) -> None:
        around.append(known.get(id(module), around[-1]))
        got.setdefault(around[-1], next((tuple(each.shape) for each in args if isinstance(each, Tensor)), ()))

    def leave(_module: nn.Module, _args: Any, _output: Any) -> None:
        if len(around) > 1:
            around.pop()

    hooks = register_module_forward_pre_hook(enter), register_module_forward_hook(leave, always_call=True)
    try:
        yield around, got
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def _with_places(around: Sequence[str]) -> Iterator[None]:
    """Let each node that is traced inside know its places in the source, and the module that is running."""
    usual, is_own = PythonKeyTracer.create_node, "create_node" in vars(PythonKeyTracer)

    def create_node(self: PythonKeyTracer, *args: Any, **kwargs: Any) -> Node:
        node = usual(self, *args, **kwargs)
        node.meta[MODULE] = around[-1]
        _note(node, sys._getframe(1))
        return node

    PythonKeyTracer.create_node = create_node  # type: ignore[method-assign]
    try:
        yield
    finally:
        if is_own:
            PythonKeyTracer.create_node = usual  # type: ignore[method-assign]
        else:
            del PythonKeyTracer.create_node


def _note(node: Node, frame: FrameType | None) -> None:
    """Write the places of a node into its meta, the innermost first."""
    places: list[Frame] = []
    of_torch: Frame | None = None
    while frame is not None and frame.f_code.co_filename != __file__:
        frame = frame.f_back if frame.f_code.co_name != "first" else None
        if frame is None:
            break
        file = frame.f_code.co_filename
        if not any(part in file for part in NOT_SOURCE):
            places.append(Frame(file, *_position(frame.f_code, frame.f_lasti)))
        elif of_torch is None and "/torch/nn/" in file and not file.endswith("/torch/nn/modules/module.py"):
            of_torch = Frame(file, frame.f_lineno)
    node.meta[FRAMES] = places or [each for each in (of_torch,) if each]


@cache
def _position(code: CodeType, instruction: int) -> Any:
    line, *rest = next(itertools.islice(code.co_positions(), instruction // 2, None))
    return (line or code.co_firstlineno, *rest)


def _at(error: BaseException) -> str:
    """Return the last line of a model's source in a traceback, with words before it; empty without one."""
    at, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not any(part in file for part in NOT_SOURCE):
            at = f" at {_short(file)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return at


def _short(file: str) -> str:
    return file.rpartition("site-packages/")[-1]


def frames(node: Node) -> list[Frame]:
    """Return the places of a node in the model's source, the innermost first."""
    every: list[Frame] = node.meta.get(FRAMES, [])
    return every


def where(node: Node) -> str:
    """Return the place of a node in words, `package/file.py:12`, or "?"."""
    every = frames(node)
    return f"{_short(every[0].file)}:{every[0].line}" if every else "?"


def module_of(node: Node) -> str:
    """Return the path of the module whose call made a node."""
    path: str = node.meta.get(MODULE, "")
    return path


def name(node: Node) -> str:
    """Return the name of a node's operator without its overload, such as `matmul`; in place too.

    One of another library than torch has that before it: `mine::softmax` may be anything.
    """
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        if is_foreign(node):
            return target._schema.name
        return target._schema.name.rpartition("::")[-1].rstrip("_")
    return getattr(target, "__name__", str(target))


def is_foreign(node: Node) -> bool:
    """Return whether a node's operator is one of another library than torch."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target.namespace not in OF_TORCH


def shape(node: Node) -> tuple[int, ...]:
    """Return the shape of a node's tensor."""
    return tuple(node.meta["val"].shape)


def dtype(node: Node) -> torch.dtype:
    """Return the type of a node's tensor."""
    kind: torch.dtype = node.meta["val"].dtype
    return kind


def is_mutable(node: Node) -> bool:
    """Return whether a node changes memory in place; `torch.tensor` calls detach_, which changes no number."""
    if not isinstance(node.target, torch._ops.OpOverload) or node.target is torch.ops.aten.detach_.default:
        return False
    return node.target._schema.is_mutable


def is_tensor(node: Any) -> bool:
    """Return whether something is a node that holds a tensor."""
    return isinstance(node, Node) and isinstance(node.meta.get("val"), Tensor)


def reached(nodes: Iterable[Node], following: Callable[[Node], Iterable[Node]], most: int | None = None) -> list[Node]:
    """Return nodes and those that follow from them, the nearest first, `most` at most."""
    found = [*dict.fromkeys(nodes)]
    known = {*found}
    for number, node in enumerate(found):  # which grows
        if number == most:
            break
        new = [each for each in dict.fromkeys(following(node)) if each not in known]
        known.update(new)
        found += new
    return found[:most]


@contextmanager
def without_traces(inner: nn.Module, xs: Sequence[Tensor]) -> Iterator[None]:
    """Let calls inside compute what a traced call computes, and leave buffers and random numbers as they were."""
    with torch.inference_mode(False), torch.no_grad(), _undone(inner, xs), no_fast_path():
        yield
