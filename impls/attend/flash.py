"""FlashAttention of other packages: through torch's registry, or called directly. No GPU has run this yet."""

from torch import Tensor, nn
from torch.nn.attention import SDPBackend, activate_flash_attention_impl, current_flash_attention_impl

from impls.attend.sdpa import pinned
from impls.contract import Adapt, Implementation, with_attend


def registered(version: str) -> Adapt:
    """Return the adapter of `sdpa` whose flash kernels are those of a package, "FA3" or "FA4".

    They stay in use for the whole process. Source: PyTorch documentation, `torch.nn.attention`.
    """

    def adapt(layer: nn.Module) -> Implementation:
        if current_flash_attention_impl() != version:
            activate_flash_attention_impl(version)
        return with_attend(pinned(SDPBackend.FLASH_ATTENTION))(layer)

    return adapt


def attend_direct(q: Tensor, k: Tensor, v: Tensor, scale: float, *, mask: str | None = None) -> Tensor:
    """Return `flash_attn_func` of q, k, v `[B, H, N, D]`, which it takes as `[B, N, H, D]`.

    Source: Dao-AILab/flash-attention, README.
    """
    from flash_attn import flash_attn_func

    q, k, v = (heads.transpose(1, 2) for heads in (q, k, v))
    o: Tensor = flash_attn_func(q, k, v, softmax_scale=scale, causal=mask is not None)
    return o.transpose(1, 2)


adapt_fa3 = registered("FA3")
adapt_fa4 = registered("FA4")
adapt_direct = with_attend(attend_direct)
