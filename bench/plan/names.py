"""The names that a plan may use, each with what it stands for.

They are kept apart from `impls`, because planning and reading results import no torch.
A test holds the two against each other.
"""

from importlib.metadata import entry_points

LAYERS = {
    "vit": "multi-head self-attention with output projection and a skip that adds the values",
    "self": "one head, unscaled, without an output projection",
    "patch": "patch embedding of an image, multi-head self-attention, output projection",
    "conv": "attention over the pixels of a map, keys an eighth of values, a learned residual",
}

IMPLEMENTATIONS = {
    "eager": "the origin's spelling: two matrix products with a softmax between them",
    "manual": "the articles' steps one by one, head by head",
    "stepwise": "each step a labelled stage, for profiles",
    "online": "softmax over blocks of keys, memory linear in tokens",
    "sdpa": "scaled_dot_product_attention, PyTorch's choice of backend",
    "sdpa_math": "scaled_dot_product_attention, the unfused backend alone",
    "sdpa_flash": "scaled_dot_product_attention, FlashAttention alone",
    "sdpa_efficient": "scaled_dot_product_attention, the memory-efficient backend alone",
    "sdpa_cudnn": "scaled_dot_product_attention, cuDNN's backend alone",
    "flex": "flex_attention, compiled; the rest of the layer eager",
    "compiled_eager": "torch.compile of eager",
    "compiled_sdpa": "torch.compile of sdpa",
    "mha": "torch.nn.MultiheadAttention with the layer's weights",
    "mha_weights": "the same, asked for the attention weights too",
}

_MHA_SELF = "nn.MultiheadAttention has a scale and an output projection, this layer has neither"
_MHA_CONV = "nn.MultiheadAttention makes queries and keys as wide as values, here they are narrower"
_ONE_WIDTH = "FlashAttention needs queries, keys and values of one width, here keys are an eighth of values"

CANNOT = {
    ("self", "mha"): _MHA_SELF,
    ("self", "mha_weights"): _MHA_SELF,
    ("conv", "sdpa_flash"): _ONE_WIDTH,
    ("conv", "mha"): _MHA_CONV,
    ("conv", "mha_weights"): _MHA_CONV,
}
"""Layer and implementation that don't go together whatever the shape and the machine, with the reason."""

CONDITIONS = {
    "sdpa_flash": "where queries, keys and values have one width, which a self layer may not have",
    "sdpa_efficient": "on a GPU",
    "sdpa_cudnn": "on a GPU",
    "flex": "in training on a GPU alone",
    "compiled_eager": "where there is a compiler",
    "compiled_sdpa": "where there is a compiler",
    "mha": "where token_len = channels and qk_scale is the layer's own",
    "mha_weights": "where token_len = channels and qk_scale is the layer's own",
}
"""Implementations that hold for some shapes or machines, and for which."""

DTYPES = ("float32", "bfloat16", "float16")

MODES = {
    "inference": "torch.inference_mode",
    "forward": "the forward pass with its graph kept",
    "train": "forward and backward",
}

ALLOCATORS = {
    "retained": "freed memory stays with the process",
    "system": "the C library's defaults",
}

TIMINGS = {
    "host": "wall time, the device synchronised",
    "device-cold": "CUDA events, L2 overwritten before each slot",
    "device-hot": "CUDA events, L2 as the last call left it",
}

ENTRY_POINT_GROUP = "attention_bench.implementations"


def is_implementation(name: str) -> bool:
    """Return whether a name can stand for an implementation; `module:attribute` is judged when it is imported."""
    module, colon, attribute = name.partition(":")
    if colon:
        return bool(module and attribute)
    return name in IMPLEMENTATIONS or name in known_names()


def known_names() -> tuple[str, ...]:
    """Return the implementations that have a name: the suite's own, and those that installed packages bring."""
    installed = (entry.name for entry in entry_points(group=ENTRY_POINT_GROUP))
    return tuple(dict.fromkeys((*IMPLEMENTATIONS, *installed)))


def is_own(name: str) -> bool:
    """Return whether an implementation is a user's own: `module:attribute`, or from an installed package."""
    return name not in IMPLEMENTATIONS
