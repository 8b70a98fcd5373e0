"""Functions of other packages as kernels: those of the table are adapted, others are refused with the wrapper."""

import sys
from collections.abc import Callable
from itertools import pairwise
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor, nn

from impls import Unresolved, Unsupported, ViTAttention, build, with_attend
from impls.attend import foreign
from impls.attend.foreign import KNOWN, attend_of
from impls.catalogue import FP8, IMPLEMENTATIONS
from impls.contract import declared_options
from impls.packing import Packing, pack
from tests.impls.reference import error, normal

SCALE = 0.4

sdpa = F.scaled_dot_product_attention


def flash(
    q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """Take `[B, N, H, D]` and return the output with another tensor, as flash-attn may."""
    q, k, v = (each.transpose(1, 2) for each in (q, k, v))
    return sdpa(q, k, v, None, dropout_p, causal, scale=softmax_scale, enable_gqa=True).transpose(1, 2), torch.zeros(1)


def flash_3(
    q: Tensor, k: Tensor, v: Tensor, softmax_scale: float | None = None, causal: bool = False, qv: Any = None,
    q_descale: Tensor | None = None, k_descale: Tensor | None = None, v_descale: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Take FP8 too, with a factor for each item and head of keys, and then return bfloat16."""
    assert qv is None
    if q.dtype != torch.float8_e4m3fn:
        return flash(q, k, v, softmax_scale=softmax_scale, causal=causal)[0]
    assert q_descale is not None
    assert k_descale is not None
    assert v_descale is not None
    assert q_descale.dtype == torch.float32
    heads, of = k.shape[2], q.shape[2] // k.shape[2]
    q_descale = q_descale.repeat_interleave(of, dim=1)
    pairs = ((q, q_descale), (k, k_descale), (v, v_descale))
    assert k_descale.shape == v_descale.shape == (len(q), heads)
    qs, ks, vs = (each.double() * factor.double()[:, None, :, None] for each, factor in pairs)
    return flash(qs, ks, vs, softmax_scale=softmax_scale, causal=causal)[0].bfloat16()


def flash_4(
    q: Tensor, k: Tensor, v: Tensor, qv: Any = None, gather_kv_indices: Any = None, softmax_scale: float | None = None,
    causal: bool = False, window_size: Any = (None, None),
) -> tuple[Tensor, None]:  # fmt: skip
    """Take other parameters before the scale."""
    assert qv is gather_kv_indices is None
    return flash(q, k, v, softmax_scale=softmax_scale, causal=causal)[0], None


def sage(
    q: Tensor, k: Tensor, v: Tensor, tensor_layout: str = "HND", is_causal: bool = False, sm_scale: float | None = None
) -> Tensor:
    """Take `[B, H, N, D]`, as SageAttention does by default."""
    assert tensor_layout == "HND"
    return sdpa(q, k, v, is_causal=is_causal, scale=sm_scale, enable_gqa=True)


def sage_1(
    q: Tensor, k: Tensor, v: Tensor, tensor_layout: str = "HND", is_causal: bool = False, sm_scale: float | None = None,
    smooth_k: bool = True, **_: Any,
) -> Tensor:  # fmt: skip
    """Write into the keys, as version 1.0.6 does."""
    if smooth_k:
        k -= k.mean(dim=2, keepdim=True)
    return sage(q, k, v, tensor_layout, is_causal, sm_scale)


class LowerTriangularMask:
    """The causal mask of xformers, which begins in the upper left corner."""


def xformers(
    query: Tensor, key: Tensor, value: Tensor, attn_bias: Any = None, p: float = 0.0, scale: float | None = None
) -> Tensor:
    """Take `[B, N, H, D]`; masks are objects of the package."""
    assert attn_bias is None or isinstance(attn_bias, LowerTriangularMask)
    return flash(query, key, value, softmax_scale=scale, causal=attn_bias is not None)[0]


def flashinfer(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, sm_scale: float | None = None) -> Tensor:
    """Take `[N, H, D]`, an item."""
    return flash(q[None], k[None], v[None], softmax_scale=sm_scale, causal=causal)[0][0]


class FlashInfer:
    """FlashInfer's wrapper for a batch of items `[N, H, D]`, one after the other."""

    plans = 0

    def __init__(self, float_workspace_buffer: Tensor, kv_layout: str = "NHD") -> None:
        assert kv_layout == "NHD"
        assert float_workspace_buffer.dtype == torch.uint8

    def plan(
        self, qo_indptr: Tensor, kv_indptr: Tensor, num_qo_heads: int, num_kv_heads: int, head_dim_qk: int,
        *, causal: bool = False, sm_scale: float | None = None,
        q_data_type: str | torch.dtype = "float16",
    ) -> None:  # fmt: skip
        """Note where the items begin, and the rest."""
        assert qo_indptr.dtype == kv_indptr.dtype == torch.int32
        self.begins, self.of = (qo_indptr.tolist(), kv_indptr.tolist()), {"causal": causal, "softmax_scale": sm_scale}
        self.form = (num_qo_heads, num_kv_heads, head_dim_qk, q_data_type)
        FlashInfer.plans += 1

    def run(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Compute the items by the plan."""
        assert (q.shape[1], k.shape[1], q.shape[2], q.dtype) == self.form
        (queries, keys), outputs = self.begins, []
        for at in range(len(queries) - 1):
            of_queries, of_keys = (slice(each[at], each[at + 1]) for each in (queries, keys))
            outputs.append(flash(q[None, of_queries], k[None, of_keys], v[None, of_keys], **self.of)[0][0])  # type: ignore[arg-type]
        return torch.cat(outputs)


def transformers(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **of: Any
) -> tuple[Tensor, None]:
    """Take the layer first, and return `[B, N, H, D]`."""
    assert module.num_key_value_groups == query.shape[1] // key.shape[1]
    scale, is_causal = of["scaling"], of.get("is_causal", False)
    return sdpa(query, key, value, attention_mask, 0, is_causal, scale=scale, enable_gqa=True).transpose(1, 2), None


def diffusers(query: Tensor, key: Tensor, value: Tensor, *, backend: str | None = None, **of: Any) -> Tensor:
    """Take `[B, N, H, D]`, and an option."""
    assert backend in (None, "native")
    q, k, v = (each.transpose(1, 2) for each in (query, key, value))
    return sdpa(q, k, v, **of).transpose(1, 2)


STAND_INS: dict[str, Callable[..., Any]] = {
    "torch.nn.functional:scaled_dot_product_attention": sdpa,
    "torch:ops.aten.scaled_dot_product_attention": torch.ops.aten.scaled_dot_product_attention,
    "flash_attn:flash_attn_func": flash,
    "flash_attn.cute:flash_attn_func": flash_4,
    "flash_attn_interface:flash_attn_func": flash_3,
    "xformers.ops:memory_efficient_attention": xformers,
    **{name: sage for name in KNOWN if name.startswith("sageattention:")},
    "sageattention.core:sageattn": sage_1,
    "flashinfer:single_prefill_with_kv_cache": flashinfer,
    "flashinfer:BatchPrefillWithRaggedKVCacheWrapper": FlashInfer,
    "transformers.integrations.sdpa_attention:sdpa_attention_forward": transformers,
    "diffusers.models.attention_dispatch:dispatch_attention_fn": diffusers,
}
"""Functions with the parameters and layouts of those of the table."""

APART = ("flash_attn:flash_attn_varlen_func", "flash_attn_interface:flash_attn_varlen_func", "cudnn:pygraph")
"""Functions of the table that take something else than a batch; they have tests of their own."""


@pytest.fixture(autouse=True)
def _xformers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the mask of xformers be imported."""
    stand_in(monkeypatch, "xformers.ops", LowerTriangularMask=LowerTriangularMask)


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **attributes: Any) -> None:
    """Let a module of a package be imported that has these attributes."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:end]), ModuleType(".".join(parts[:end])))
    vars(sys.modules[name]).update(attributes)


def known(name: str) -> Any:
    """Return the attend of a stand-in."""
    return attend_of(STAND_INS[name], name)


@pytest.mark.parametrize("name", STAND_INS)
def test_a_known_function_computes_our_core(name: str) -> None:
    """The result is attention with our scale, and with each mask and the grouped heads that it declares."""
    attend, q, k, v = known(name), *torch.randn(3, 2, 4, 20, 16)
    options = declared_options(attend)
    numbers = torch.randn(2, 1, 20, 20)
    asked: list[tuple[dict[str, Any], dict[str, Any]]] = [({}, {}), ({"mask": "causal"}, {"is_causal": True})]
    asked += [({"attn_mask": mask},) * 2 for mask in (numbers > 0, numbers)]
    for ours, torchs in asked:
        if options.issuperset(ours):
            torch.testing.assert_close(attend(q, k, v, SCALE, **ours), sdpa(q, k, v, scale=SCALE, **torchs))
    if "enable_gqa" in options:
        k, v = k[:, :2], v[:, :2]
        expected = sdpa(q, k, v, scale=SCALE, enable_gqa=True)
        torch.testing.assert_close(attend(q, k, v, SCALE, enable_gqa=True), expected)
    if "backend" in options:
        attend(q, q, q, SCALE, backend="native")


def test_the_table_has_a_stand_in_for_each_function() -> None:
    """So each entry is tried; a name counts by its package and its last part."""
    tried = {f"{name.partition(':')[0].partition('.')[0]}:{name.rpartition(':')[2]}" for name in STAND_INS}
    assert tried.union(APART) >= KNOWN.keys()


def test_a_function_that_writes_into_its_keys_gets_a_copy() -> None:
    """Others get the keys themselves, so that no time goes into copies."""
    q, k, v = torch.randn(3, 1, 2, 6, 8)
    before, seen = k.clone(), list[Tensor]()
    known("sageattention.core:sageattn")(q, k, v, 1.0)
    assert torch.equal(k, before)
    attend = attend_of(lambda *qkv, **_: (seen.extend(qkv), qkv[0])[1], "sageattention:sageattn")  # type: ignore[func-returns-value]
    assert attend is not None
    attend(q, k, v, 1.0)
    assert seen[1] is k


def test_a_shape_is_planned_once() -> None:
    """Another scale is another plan."""
    q = torch.randn(2, 3, 7, 16)
    attend, before = known("flashinfer:BatchPrefillWithRaggedKVCacheWrapper"), FlashInfer.plans
    for scale in (0.123, 0.123, 0.321):
        attend(q, q, q, scale)
    assert FlashInfer.plans == before + 2


@pytest.mark.parametrize("mask", [None, "causal"])
@pytest.mark.parametrize("kv_heads", [2, 4])
def test_fp8_is_right_for_items_and_heads_of_very_different_sizes(kv_heads: int, mask: str | None) -> None:
    """The error is that of three bits, more than bfloat16's; a scale for all would lose the small ones."""
    attend = known("flash_attn_interface:flash_attn_func")
    sizes = 10.0 ** torch.arange(-2 * kv_heads, 0).reshape(2, kv_heads, 1, 1)
    q, k, v = torch.randn(3, 2, 4, 50, 16)
    k, v = (k[:, :kv_heads] * sizes).bfloat16(), (v[:, :kv_heads] * sizes).bfloat16()
    q = (q / sizes.repeat_interleave(4 // kv_heads, dim=1)).bfloat16()
    of = {"enable_gqa": True} if kv_heads < 4 else {}
    exact = sdpa(q.double(), k.double(), v.double(), scale=SCALE, is_causal=mask is not None, enable_gqa=True)
    largest = exact.abs().amax(dim=(2, 3), keepdim=True)
    errors = {
        dtype: float(((attend(q, k, v, SCALE, mask=mask, **of, **asked).double() - exact).abs() / largest).max())
        for dtype, asked in (("bfloat16", {}), (FP8, {"dtype": FP8}))
    }
    assert errors["bfloat16"] < 0.02 < errors[FP8] < 0.2
    assert attend(q.half(), k.half(), v.half(), SCALE, dtype=FP8, **of).dtype == torch.float16


def test_another_type_and_gradients_in_fp8_are_unsupported() -> None:
    """The line says what came, and what may come."""
    attend, q = known("flash_attn_interface:flash_attn_func"), torch.randn(1, 2, 3, 8, requires_grad=True)
    with pytest.raises(Unsupported, match="dtype must be float8_e4m3, got 'int4'"):
        attend(q, q, q, 1.0, dtype="int4")
    with pytest.raises(Unsupported, match="no gradients in float8_e4m3"):
        attend(q, q, q, 1.0, dtype=FP8)


def flash_varlen(
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int, max_seqlen_k: int,
    dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False,
) -> Tensor:  # fmt: skip
    """Take packed items `[T, H, D]`."""
    assert cu_seqlens_q.dtype == cu_seqlens_k.dtype == torch.int32
    assert max_seqlen_q == max_seqlen_k >= int(cu_seqlens_q.diff().max())
    begins = cu_seqlens_q.tolist()
    items = [slice(begin, end) for begin, end in pairwise(begins)]
    of = {"softmax_scale": softmax_scale, "causal": causal}
    return torch.cat([flash(q[None, at], k[None, at], v[None, at], **of)[0][0] for at in items])  # type: ignore[arg-type]


@pytest.mark.parametrize("mask", [None, "causal"])
@pytest.mark.parametrize("name", APART[:2])
def test_packed_items_are_those_of_their_own_cores(name: str, mask: str | None) -> None:
    """With fewer heads of keys, and a causal mask that begins anew in each item; gradients too."""
    lengths, attend = (3, 7, 1), attend_of(flash_varlen, name)
    assert attend is not None
    q, k = torch.randn(1, 4, 11, 8, requires_grad=True), torch.randn(1, 2, 11, 8)
    packing = Packing(lengths, 9, torch.tensor([0, 3, 10, 11], dtype=torch.int32))
    got = attend(q, k, k.flip(1), SCALE, packing=packing, mask=mask, enable_gqa=True)
    parts = [each.split(lengths, dim=2) for each in (q, k, k.flip(1))]
    of = {"scale": SCALE, "is_causal": mask is not None, "enable_gqa": True}
    expected = torch.cat([sdpa(*item, **of) for item in zip(*parts, strict=True)], dim=2)  # type: ignore[arg-type]
    torch.testing.assert_close(got, expected)
    gradients = [torch.autograd.grad(each.pow(2).sum(), q)[0] for each in (got, expected)]
    torch.testing.assert_close(*gradients)


def test_the_entry_for_packed_items_computes_each_item_of_a_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer whose items have one length has no use for it."""
    stand_in(monkeypatch, "flash_attn", flash_attn_varlen_func=flash_varlen)
    layer, x = ViTAttention(32, 32, 2, mask="causal", lengths="uniform").bfloat16(), normal(1, 8, 32).bfloat16()
    packing = foreign.flash_attn_varlen(layer)
    pack(packing, (3, 5), 6, x.device)
    expected = torch.cat([layer(x[:, :3]), layer(x[:, 3:])], dim=1)
    torch.testing.assert_close(packing(x), expected, atol=0.02, rtol=0.02)
    with pytest.raises(Unsupported, match="all items of the layer have the same length"):
        foreign.flash_attn_varlen(ViTAttention(32, 32, 2))


class Named:
    """A tensor of a graph of cuDNN."""

    def __init__(self, dim: list[int], stride: list[int]) -> None:
        self.dim, self.stride, self.is_output = dim, stride, False

    def set_output(self, value: bool) -> "Named":
        """Say that it is an output."""
        self.is_output = value
        return self

    def set_dim(self, dim: list[int]) -> "Named":
        """Say its shape."""
        self.dim = dim
        return self

    def set_stride(self, stride: list[int]) -> "Named":
        """Say its strides."""
        self.stride = stride
        return self


class NotSupported(Exception):  # noqa: N818 - as cuDNN's
    """What cuDNN raises for a graph that it can't compute."""


class Graph:
    """A graph of cuDNN's frontend that has its attention alone."""

    STEPS = ("validate", "build_operation_graph", "create_execution_plans", "check_support", "build_plans")
    made = 0

    def __init__(
        self, *, io_data_type: str, intermediate_data_type: str, compute_data_type: str, handle: object
    ) -> None:
        assert (intermediate_data_type, compute_data_type) == ("FLOAT", "FLOAT")
        self.dtype, self.steps, self.handle = io_data_type, list[str](), handle
        Graph.made += 1

    def __getattr__(self, name: str) -> Any:
        assert name in self.STEPS
        return lambda *_: self.steps.append(name)

    def tensor(self, *, dim: list[int], stride: list[int]) -> Named:
        """Make a tensor."""
        return Named(dim, stride)

    def sdpa(
        self, *, name: str, q: Named, k: Named, v: Named, generate_stats: bool, attn_scale: float,
        use_causal_mask: bool,
    ) -> tuple[Named, None]:  # fmt: skip
        """Note the attention."""
        assert not generate_stats
        if q.dim[-1] > 64:
            raise NotSupported(f"{name}:\n{q.dim[-1]} channels")
        self.inputs, self.o = (q, k, v), Named([], [])
        self.of = {"scale": attn_scale, "is_causal": use_causal_mask, "enable_gqa": True}
        return self.o, None

    def get_workspace_size(self) -> int:
        """Return the bytes of the workspace."""
        return 12

    def execute(self, tensors: dict[Named, Tensor], workspace: Tensor, *, handle: object) -> None:
        """Compute the output."""
        assert tuple(self.steps) == self.STEPS
        assert self.o.is_output
        assert (workspace.dtype, len(workspace), handle) == (torch.uint8, 12, self.handle)
        for named, tensor in tensors.items():
            assert (named.dim, named.stride) == ([*tensor.shape], [*tensor.stride()])
            assert tensor.dtype == getattr(torch, self.dtype.lower())
        q, k, v = (tensors[each] for each in self.inputs)
        tensors[self.o].copy_(sdpa(q, k, v, **self.of))  # type: ignore[arg-type]


def test_a_graph_of_cudnn_is_built_once_for_shapes_and_strides(monkeypatch: pytest.MonkeyPatch) -> None:
    """It computes our core, also of a view and with fewer heads of keys; what cuDNN refuses is unsupported."""
    streams = list[tuple[object, int]]()
    stand_in(
        monkeypatch, "cudnn", pygraph=Graph, cudnnGraphNotSupportedError=NotSupported,
        data_type=SimpleNamespace(HALF="HALF", BFLOAT16="BFLOAT16", FLOAT="FLOAT"),
        heur_mode=SimpleNamespace(A="A", FALLBACK="FALLBACK"),
        create_handle=lambda: "handle", set_stream=lambda handle, stream: streams.append((handle, stream)),
    )  # fmt: skip
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _device: SimpleNamespace(cuda_stream=5))
    attend, before = attend_of(Graph, "cudnn:pygraph"), Graph.made
    assert attend is not None
    whole = torch.randn(2, 9, 3, 4, 16, dtype=torch.bfloat16).permute(2, 0, 3, 1, 4)
    q, k, v = whole[0], whole[1, :, :2], whole[2, :, :2]
    for of, torchs in (({}, {}), ({"mask": "causal"}, {"is_causal": True}), ({}, {})):
        expected = sdpa(q, k, v, scale=SCALE, enable_gqa=True, **torchs)  # type: ignore[arg-type]
        torch.testing.assert_close(attend(q, k, v, SCALE, enable_gqa=True, **of), expected)
    assert Graph.made == before + 2
    assert streams == [("handle", 5)] * 3
    wide = torch.randn(1, 1, 3, 80, dtype=torch.float16)
    with pytest.raises(Unsupported, match="cuDNN: sdpa: 80 channels"):
        attend(wide, wide, wide, 1.0)


BATCHED = [name for name, entry in IMPLEMENTATIONS.items() if entry.function in STAND_INS]


@pytest.mark.parametrize("name", BATCHED)
def test_an_entry_computes_a_layer_with_the_function_of_its_package(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In bfloat16 and in inference, within the precision of the type."""
    function = IMPLEMENTATIONS[name].function
    module, _, attribute = function.partition(":")
    stand_in(monkeypatch, module, **{attribute: STAND_INS[function], "LowerTriangularMask": LowerTriangularMask})
    layer, x = ViTAttention(128, 128, 2, mask="causal").bfloat16(), normal(2, 5, 128).bfloat16()
    with torch.no_grad():
        torch.testing.assert_close(getattr(foreign, name)(layer)(x), layer(x), atol=0.02, rtol=0.02)


def test_what_an_entry_or_its_package_refuses_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limits the function isn't called; the reason of the package stands in one line."""
    calls = []

    def function(*_: Any, **__: Any) -> Tensor:
        calls.append(1)
        raise AssertionError("headdim should\nbe in [64, 96]")

    stand_in(monkeypatch, "sageattention", sageattn=function)
    core, x = foreign.sageattention(ViTAttention(128, 128, 2).bfloat16()), normal(2, 5, 128)
    with pytest.raises(Unsupported, match="it computes no gradients"):
        core(x.bfloat16())
    with torch.no_grad():
        for wrong in (torch.float32, torch.float64):
            with pytest.raises(Unsupported, match=f"takes bfloat16 and float16, got {str(wrong)[6:]}"):
                foreign.sageattention(ViTAttention(128, 128, 2).to(wrong))(x.to(wrong))
        assert calls == []
        with pytest.raises(Unsupported, match=r"^sageattention:sageattn: headdim should be in \[64, 96\]$"):
            core(x.bfloat16())


def test_what_a_known_function_can_not_do_is_unsupported() -> None:
    """A kernel whose causal mask begins in the lower right corner, and a causal mask beside another one."""
    q, k = normal(1, 2, 5, 8), normal(1, 2, 6, 8)
    with pytest.raises(Unsupported, match="only for as many keys as queries"):
        known("flash_attn:flash_attn_func")(q, k, k, 1.0, mask="causal")
    both = {"mask": "causal", "attn_mask": torch.ones(5, 5, dtype=torch.bool)}
    with pytest.raises(Unsupported, match="beside another"):
        known("torch.nn.functional:scaled_dot_product_attention")(q, q, q, 1.0, **both)


def test_a_layer_with_a_foreign_core_has_its_gradients() -> None:
    """Also that of the implementation `flash_attn`, which is a function of the table; both compile without a break."""
    layer, x = ViTAttention(8, 8, 2), normal(2, 5, 8)
    adapted = with_attend(known("flash_attn:flash_attn_func"))(layer)
    assert error(adapted(x), layer, x) < 5e-5
    got, expected = (torch.autograd.grad(each(x).sum(), layer.qkv.weight)[0] for each in (adapted, layer))
    torch.testing.assert_close(got, expected)
    compiled = torch.compile(adapted, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), layer(x))
    with pytest.raises(Unsupported, match="runs on a GPU alone"):
        build(layer, "flash_attn")


def ours(q: Tensor, k: Tensor, v: Tensor, s: float) -> Tensor:
    """Have our contract."""
    return sdpa(q, k, v, scale=s)


def ours_with_a_default(q: Tensor, k: Tensor, v: Tensor, scale: float = 1.0, b: int = 1, *, mask: Any = None) -> Tensor:
    """Have our contract too."""
    return sdpa(q, k, v, scale=scale)


class Whole(nn.Module):
    """An adapter that is a class of modules."""

    def __init__(self, layer: nn.Module, *, size: int = 1) -> None:
        super().__init__()
        self.layer, self.size = layer, size


def test_our_own_contract_and_adapters_are_left_as_they_are() -> None:
    """A core may have another name for its scale, or a default; what takes a layer is an adapter."""
    for attend in (ours, ours_with_a_default, lambda q, _k, _v, *_: q):
        assert attend_of(attend, "package:attend") is attend
    for adapt in (lambda layer: layer, lambda layer, *, _block=1: layer, Whole, with_attend(ours)):
        assert attend_of(adapt, "package:adapt") is None


class Function(torch.autograd.Function):
    """A core with a backward of its own."""


class Core(nn.Module):
    """A core that is a class of modules."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.width, self.heads = width, heads


@pytest.mark.parametrize(
    "function",
    [
        *(
            eval(f"lambda {parameters}: None")  # noqa: S307 - these texts
            for parameters in ("module, query, key, value, attention_mask", "qkv, causal=False", "q, k, v, mask=None")
        ),
        Function,
        Core,
    ],
)
def test_any_other_function_is_refused_with_a_wrapper(function: Callable[..., Any]) -> None:
    """The line says how to write an attend that calls it."""
    with pytest.raises(Unresolved) as refusal:
        attend_of(function, "package.module:f")
    message = str(refusal.value)
    for words in ("'package.module:f'", "from package.module import f; def attend(q, k, v, scale): return f(q, k, v"):
        assert words in message
    assert "\n" not in message
