"""Calls of functions of packages that take or return something else than queries, keys and values of a batch.

Each gets the function, and queries, keys and values in its layout. Sources: the packages' own code and documentation.
"""

import importlib
import inspect
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from impls.catalogue import DTYPE, FP8
from impls.contract import Unsupported, imported
from impls.packing import Packing

PLANS = 16
"""The most shapes of which plans or graphs are kept: more than the layers of a model have."""

WORKSPACE_BYTES = 128 * 2**20
"""What FlashInfer's documentation recommends."""


def first(result: Any) -> Tensor:
    """Return the output of a function that may return others beside it."""
    output: Tensor = result if isinstance(result, Tensor) else result[0]
    return output


def line(error: BaseException) -> str:
    """Return what an error says in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def wants_gradients(*tensors: Tensor) -> bool:
    """Return whether a call is to remember how gradients of these are computed."""
    return torch.is_grad_enabled() and any(each.requires_grad for each in tensors)


def item_by_item(function: Callable[..., Tensor], q: Tensor, k: Tensor, v: Tensor, **values: Any) -> Tensor:
    """Call a function that takes one item of the batch."""
    return torch.stack([function(*each, **values) for each in zip(q, k, v, strict=True)])


def of_module(function: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, **values: Any) -> Tensor:
    """Call a function of transformers, which takes the layer first, and returns `[B, N, H, D]`."""
    layer = nn.Module()
    layer.num_key_value_groups = q.shape[1] // k.shape[1]  # type: ignore[assignment]  # no submodule
    o: Tensor = function(layer, q, k, v, **{"attention_mask": None, **values})[0]
    return o.transpose(1, 2)


def packed(function: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, *, packing: Packing, **values: Any) -> Tensor:
    """Call a function of FlashAttention for packed items, which takes and returns `[T, H, D]`."""
    offsets, longest = packing.offsets, packing.longest
    of = {"cu_seqlens_q": offsets, "cu_seqlens_k": offsets, "max_seqlen_q": longest, "max_seqlen_k": longest}
    return first(function(q[0], k[0], v[0], **of, **values)).unsqueeze(0)


def in_fp8(function: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, *, dtype: str = "", **values: Any) -> Any:
    """Call the function of FlashAttention 3, in FP8 if the option says so: each head of an item has its own scale.

    With fewer heads of keys, the queries of a group share theirs. The call makes scales and casts.
    """
    if not dtype:
        return function(q, k, v, **values)
    if dtype != FP8:
        raise Unsupported(f"{DTYPE} must be {FP8}, got {dtype!r}")
    if wants_gradients(q, k, v):
        raise Unsupported(f"FlashAttention 3 computes no gradients in {FP8}")
    heads = k.shape[2]
    (q8, q_descale), (k8, k_descale), (v8, v_descale) = (_quantized(each, heads) for each in (q, k, v))
    scales = {"q_descale": q_descale, "k_descale": k_descale, "v_descale": v_descale}
    return first(function(q8, k8, v8, **scales, **values)).to(q.dtype)


def _quantized(tensor: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Return a tensor `[B, N, H, D]` in FP8, and the factors `[B, groups]`, float32, that undo its scaling."""
    grouped = tensor.unflatten(2, (groups, -1))
    largest = grouped.abs().amax(dim=(1, 3, 4)).float()
    factors = largest.clamp(min=torch.finfo(torch.float32).tiny) / torch.finfo(torch.float8_e4m3fn).max
    scaled = grouped.float() / factors[:, None, :, None, None]
    return scaled.to(torch.float8_e4m3fn).flatten(2, 3), factors


def with_lower_triangle(
    function: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, *, causal: bool, **values: Any
) -> Any:
    """Call the function of xformers, whose causal mask is an object."""
    bias = imported("xformers.ops:LowerTriangularMask", "the causal mask of xformers")() if causal else None
    return function(q, k, v, attn_bias=bias, **values)


def keeping_keys(function: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, **values: Any) -> Any:
    """Call a function of SageAttention; version 1 writes into the keys, and gets a copy."""
    return function(q, k.clone() if _smooths_in_place(function) else k, v, **values)


@cache
def _smooths_in_place(function: Callable[..., Any]) -> bool:
    return "smooth_k" in inspect.signature(function).parameters


def planned(wrapper: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, *, causal: bool, sm_scale: float) -> Tensor:
    """Call FlashInfer's wrapper for a batch `[B * N, H, D]`, which is planned once for a shape."""
    (batch, queries, heads, width), keys, kv_heads = q.shape, k.shape[1], k.shape[2]
    plan = _plan(wrapper, batch, queries, keys, heads, kv_heads, width, causal, sm_scale, q.dtype, q.device)
    output = first(plan.run(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)))
    return output.reshape(batch, queries, *output.shape[1:])


@lru_cache(PLANS)
def _plan(
    wrapper: Callable[..., Any], batch: int, queries: int, keys: int, heads: int, kv_heads: int, width: int,
    causal: bool, sm_scale: float, dtype: torch.dtype, device: torch.device,
) -> Any:  # fmt: skip
    """Return a wrapper of FlashInfer with a plan for a batch."""
    begins = torch.arange(batch + 1, dtype=torch.int32, device=device)
    made = wrapper(_workspace(device), "NHD")
    made.plan(
        begins * queries, begins * keys, heads, kv_heads, width, causal=causal, sm_scale=sm_scale, q_data_type=dtype
    )
    return made


@cache
def _workspace(device: torch.device) -> Tensor:
    """Return the memory that all plans of FlashInfer share."""
    return torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device=device)


def in_graph(pygraph: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, **values: Any) -> Tensor:
    """Call a graph of cuDNN's frontend with its attention, which is built once for shapes and strides."""
    o = torch.empty_like(q)
    forms = tuple((each.shape, each.stride()) for each in (q, k, v, o))
    cudnn = importlib.import_module("cudnn")
    try:
        graph, names, handle, workspace = _graph(pygraph, forms, q.dtype, q.device, **values)
    except cudnn.cudnnGraphNotSupportedError as error:
        raise Unsupported(f"cuDNN: {line(error)}") from None
    cudnn.set_stream(handle, torch.cuda.current_stream(q.device).cuda_stream)
    graph.execute(dict(zip(names, (q, k, v, o), strict=True)), workspace, handle=handle)
    return o


@lru_cache(PLANS)
def _graph(
    pygraph: Callable[..., Any], forms: tuple[Any, ...], dtype: torch.dtype, device: torch.device, **values: Any
) -> tuple[Any, tuple[Any, ...], Any, Tensor]:
    """Return a graph for tensors of these shapes and strides, its names of them, a handle and its workspace."""
    cudnn = importlib.import_module("cudnn")
    types, handle = cudnn.data_type, cudnn.create_handle()
    own = {torch.bfloat16: types.BFLOAT16, torch.float16: types.HALF}[dtype]
    graph = pygraph(io_data_type=own, intermediate_data_type=types.FLOAT, compute_data_type=types.FLOAT, handle=handle)
    *inputs, (shape, stride) = forms
    q, k, v = (graph.tensor(dim=[*dim], stride=[*strides]) for dim, strides in inputs)
    o, _ = graph.sdpa(name="sdpa", q=q, k=k, v=v, generate_stats=False, **values)
    o.set_output(True).set_dim([*shape]).set_stride([*stride])
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    graph.check_support()
    graph.build_plans()
    workspace = torch.empty(graph.get_workspace_size(), dtype=torch.uint8, device=device)
    return graph, (q, k, v, o), handle, workspace
