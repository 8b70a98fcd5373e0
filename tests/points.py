"""Points for tests: small, with every column given."""

from typing import Any

from bench.plan.case import Point

TINY: dict[str, Any] = {
    "layer": "vit",
    "device": "cpu",
    "dtype": "float32",
    "mode": "inference",
    "batch": 2,
    "num_tokens": 7,
    "token_len": 12,
    "channels": 12,
    "num_heads": 3,
    "qkv_bias": False,
    "threads": 1,
    "allocator": "retained",
    "timing": "host",
}


def point(**columns: Any) -> Point:
    """Return a tiny point with some columns changed; token_len follows channels unless it is given."""
    followed = {"token_len": columns["channels"]} if "channels" in columns else {}
    return Point(**{**TINY, **followed, **columns})
