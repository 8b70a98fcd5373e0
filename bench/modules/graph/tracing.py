"""Trace a call of a module as a graph of operators that know their source lines and their modules."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import PythonKeyTracer, get_proxy_slot, make_fx
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._pytree import tree_leaves

from bench.modules.wrapper import Wrapper, first_tensor
from impls.contract import Unsupported

NOT_SOURCE = (
    *(f"{folder}/" for folder in (Path(torch.__file__).parent, Path(__file__).parents[1])),
    *("/einops/", "/einx/", "/opt_einsum/", "<"),
)
"""Parts of file names; lines in such files are not a model's source."""

OF_TORCH = ("aten", "prim", "prims")
"""The libraries of torch's own operators."""

PLACE, MODULE, RETURNED = "place", "module", "returned"
"""Keys of a node's `meta`: its file and line, its module, and the outermost module that returns it beside an output."""


class Untraceable(Unsupported):
    """A call can't be traced; the message says where and why."""


@dataclass(frozen=True)
class Traced:
    """A call of `inner` as a graph: `module` takes the same tensors and returns the first tensor of the output.

    `module` has the same parameters, and buffers unless a call in inference mode made them, as attributes.
    """

    module: GraphModule
    inner: nn.Module = field(default_factory=nn.Module)
    """The module to which the nodes' paths refer."""
    xs: tuple[Tensor, ...] = ()
    """The inputs of the call."""

    def inputs(self) -> list[Node]:
        """Return the nodes of its inputs, and of the arguments that wrappers hold."""
        wrappers = (each for each in self.inner.modules() if isinstance(each, Wrapper))
        arguments = {id(tensor) for each in wrappers for tensor in each.arguments}
        held = self.module.graph.find_nodes(op="get_attr")
        return [
            *self.module.graph.find_nodes(op="placeholder"),
            *(node for node in held if id(getattr(self.module, str(node.target), None)) in arguments),
        ]

    def with_weights(self, node: Node) -> str:
        """Return the path of the innermost module with weights around a node; the outermost module if there is none."""
        path = module_of(node)
        while path and next(self.inner.get_submodule(path).parameters(), None) is None:
            path = path.rpartition(".")[0]
        return path


def traced(function: Callable[..., Any], xs: Sequence[Tensor]) -> Traced:
    """Return a call of a function, or module, on tensors as a graph.

    Buffers, attributes and random states are restored after the call. The graph is for calls with or without
    gradients, according to the current mode. Raises `Untraceable`.
    """
    of = function if isinstance(function, nn.Module) else nn.Module()
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

    has_gradients = torch.is_grad_enabled()  # a block without gradients restores this mode in the graph
    with torch.inference_mode(False), torch.set_grad_enabled(has_gradients), _restored(inner, xs), no_fast_path():
        own = [x.detach().clone() for x in xs]
        with _annotated(inner):
            graph: GraphModule = make_fx(
                first, tracing_mode="real", pre_dispatch=pre_dispatch, _error_on_data_dependent_ops=False
            )(*own)
        first_use = dict[Any, Node]()
        for node in graph.graph.find_nodes(op="get_attr"):  # each use of a buffer is a node of its own
            if first_use.setdefault(node.target, node) is not node:
                node.replace_all_uses_with(first_use[node.target])
        graph.recompile()
        graph(*(x.clone() for x in own))  # fails if tensors that a score_mod captured are gone
    return Traced(graph, inner, tuple(xs))


@contextmanager
def _restored(inner: nn.Module, xs: Sequence[Tensor]) -> Iterator[None]:
    """Restore buffers, attributes of modules and random states at the end."""
    kept = _kept(inner)
    clones = dict[int, Tensor]()
    for attributes, values in kept:  # outside of inference mode its tensors can't be changed in place
        made = [key for key, each in values.items() if isinstance(each, Tensor) and each.is_inference()]
        attributes.update({key: clones.setdefault(id(values[key]), values[key].clone()) for key in made})
    before = [(buffer, buffer.detach().clone()) for buffer in inner.buffers()]
    try:
        with forked(xs):
            yield
    finally:
        for attributes, values in kept:
            attributes.clear()
            attributes.update(values)
        for buffer, value in before:
            buffer.copy_(value)


def _kept(inner: nn.Module) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the attributes and buffers of all modules but wrappers, each dictionary with a copy."""
    modules = [each for each in inner.modules() if not isinstance(each, Wrapper)]
    return [(of, {**of}) for each in modules for of in (vars(each), each._buffers)]


def fill(inner: nn.Module, xs: Sequence[Tensor]) -> None:
    """Call a module once if a call changes its attributes, so that it has filled its tables."""
    with without_traces(inner, xs):
        before = _kept(inner)
        inner(*(x.clone() for x in xs))
        is_filled = any([*map(id, of.values())] != [*map(id, values.values())] for of, values in before)
    if is_filled:
        with torch.inference_mode(False), torch.no_grad(), forked(xs):
            inner(*(x.clone() for x in xs))


def forked(xs: Sequence[Tensor]) -> AbstractContextManager[None]:
    """Return a context that restores the random states at its end."""
    return torch.random.fork_rng({x.device for x in xs if x.is_cuda})


@contextmanager
def no_fast_path() -> Iterator[None]:
    """Turn off the fast path of torch's own modules, so that they run their operators one by one."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


@contextmanager
def _annotated(inner: nn.Module) -> Iterator[None]:
    """Record the source line and the running module in each node that is traced inside."""
    known, around = {id(module): path for path, module in inner.named_modules()}, [""]
    usual, is_own = PythonKeyTracer.create_node, "create_node" in vars(PythonKeyTracer)
    tracers = list[PythonKeyTracer]()

    def create_node(self: PythonKeyTracer, *args: Any, **kwargs: Any) -> Node:
        node = usual(self, *args, **kwargs)
        node.meta |= {MODULE: around[-1], PLACE: _place(sys._getframe(1))}
        tracers[:] = [self]
        return node

    def enter(module: nn.Module, _args: Any) -> None:
        around.append(known.get(id(module), around[-1]))

    def leave(_module: nn.Module, _args: Any, output: Any) -> None:
        for each in tree_leaves(output)[1:]:
            if tracers and isinstance(each, Tensor) and (slot := get_proxy_slot(each, tracers[0], None)):
                slot.proxy.node.meta[RETURNED] = around[-1]
        around[1:] = around[1:-1]

    hooks = register_module_forward_pre_hook(enter), register_module_forward_hook(leave, always_call=True)
    PythonKeyTracer.create_node = create_node  # type: ignore[method-assign]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        if is_own:
            PythonKeyTracer.create_node = usual  # type: ignore[method-assign]
        else:
            del PythonKeyTracer.create_node


def _place(frame: FrameType | None) -> str:
    """Return the innermost line of a model's source, else one of torch's modules, as `/home/me/model.py:12`."""
    of_torch = ""
    while frame is not None and (frame.f_code.co_filename, frame.f_code.co_name) != (__file__, "first"):
        file, place = frame.f_code.co_filename, f"{frame.f_code.co_filename}:{frame.f_lineno}"
        if not any(part in file for part in NOT_SOURCE):
            return place
        if not of_torch and "/torch/nn/" in file and not file.endswith("/torch/nn/modules/module.py"):
            of_torch = place
        frame = frame.f_back
    return of_torch


def _at(error: BaseException) -> str:
    """Return the last line of a model's source in a traceback, as ` at model.py:12`; empty without one."""
    at, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not any(part in file for part in NOT_SOURCE):
            at = f" at {_short(file)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return at


def _short(file: str) -> str:
    return file.rpartition("site-packages/")[-1]


def place_of(node: Node) -> str:
    """Return the file and the line of a node in the model's source: `/home/me/model.py:12`; empty if unknown."""
    place: str = node.meta.get(PLACE, "")
    return place


def where(node: Node) -> str:
    """Return the source line of a node for messages, `package/file.py:12`, or "?"."""
    return _short(place_of(node)) or "?"


def module_of(node: Node) -> str:
    """Return the path of the module whose call made a node."""
    path: str = node.meta.get(MODULE, "")
    return path


def name(node: Node) -> str:
    """Return the name of a node's operator without overload and in-place underscore, such as `matmul`.

    Operators of other libraries keep the library's name, such as `mine::softmax`.
    """
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        if is_foreign(node):
            return target._schema.name
        return target._schema.name.rpartition("::")[-1].rstrip("_")
    return getattr(target, "__name__", str(target))


def is_foreign(node: Node) -> bool:
    """Return whether a node's operator comes from a library other than torch."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target.namespace not in OF_TORCH


def shape(node: Node) -> tuple[int, ...]:
    """Return the shape of a node's tensor."""
    return tuple(node.meta["val"].shape)


def dtype(node: Node) -> torch.dtype:
    """Return the dtype of a node's tensor."""
    kind: torch.dtype = node.meta["val"].dtype
    return kind


def is_mutable(node: Node) -> bool:
    """Return whether a node changes memory in place; detach_, which `torch.tensor` calls, changes no number."""
    if not isinstance(node.target, torch._ops.OpOverload) or node.target is torch.ops.aten.detach_.default:
        return False
    return node.target._schema.is_mutable


def memory(node: Node) -> Node:
    """Return the node whose memory a node views; the node itself if it is no view."""
    schema = getattr(node.target, "_schema", None)
    is_view = schema is not None and any(each.alias_info for each in schema.returns)
    return memory(node.args[0]) if is_view and is_tensor(node.args[0]) else node  # type: ignore[arg-type]


def changed(node: Node) -> Node | None:
    """Return the node whose memory a node changes in place; None without one."""
    return memory(node.args[0]) if is_mutable(node) and is_tensor(node.args[0]) else None  # type: ignore[arg-type]


def is_tensor(node: Any) -> bool:
    """Return whether a value is a node with a tensor."""
    return isinstance(node, Node) and isinstance(node.meta.get("val"), Tensor)


def reached(nodes: Iterable[Node], following: Callable[[Node], Iterable[Node]], most: int | None = None) -> list[Node]:
    """Return the nodes and all that `following` reaches from them, the nearest first, `most` at most."""
    found = [*dict.fromkeys(nodes)]
    known = {*found}
    for number, node in enumerate(found):  # grows meanwhile
        if number == most:
            break
        new = [each for each in dict.fromkeys(following(node)) if each not in known]
        known.update(new)
        found += new
    return found[:most]


@contextmanager
def without_traces(inner: nn.Module, xs: Sequence[Tensor]) -> Iterator[None]:
    """Run calls inside as a traced call runs, and restore buffers, attributes and random states at the end."""
    with torch.inference_mode(False), torch.no_grad(), _restored(inner, xs), no_fast_path():
        yield
