"""The shapes of well-known models, for `model = "vit_b_16_384"` in a sweep file and `--model`."""

from typing import Any

from bench.plan.errors import WrongRequest, unknown_names


def _vit(num_tokens: int, channels: int, num_heads: int) -> dict[str, Any]:
    return {
        "layer": "vit",
        "num_tokens": num_tokens,
        "channels": channels,  # token_len follows from them, even if an option replaces them
        "num_heads": num_heads,
        "qkv_bias": True,
    }


def _t2t(num_tokens: int, token_len: int) -> dict[str, Any]:
    return {
        "layer": "vit",
        "num_tokens": num_tokens,
        "token_len": token_len,
        "channels": 64,
        "num_heads": 1,
        "qkv_bias": False,
    }


MODELS: dict[str, dict[str, Any]] = {
    "deit_ti_16_224": _vit(197, 192, 3),
    "deit_s_16_224": _vit(197, 384, 6),
    "vit_b_16_224": _vit(197, 768, 12),
    "vit_b_16_384": _vit(577, 768, 12),
    "vit_l_16_224": _vit(197, 1024, 16),
    "vit_l_16_384": _vit(577, 1024, 16),
    "vit_h_14_224": _vit(257, 1280, 16),
    "vit_b_16_1024": _vit(4097, 768, 12),
    "t2t_stage_1": _t2t(3136, 147),
    "t2t_stage_2": _t2t(784, 576),
}
"""The columns of each model; a name has the patch and the image side.

A ViT's tokens include the class token; the stages of T2T-ViT have none.
Sources: Dosovitskiy et al. 2020 (arXiv 2010.11929), Touvron et al. 2020 (arXiv 2012.12877),
Yuan et al. 2021 (arXiv 2101.11986). A test compares the ViTs with timm's constructors.
"""

COLUMNS = frozenset(column for model in MODELS.values() for column in model)
"""The columns that a model gives."""


def expand_models(grid: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a grid's values once for each model that it names, with the model replaced by its columns.

    Raises WrongRequest for an unknown model, and for a value of the grid that contradicts the model's.
    """
    if "model" not in grid:
        return [grid]
    names = grid["model"] if isinstance(grid["model"], list) else [grid["model"]]
    if not names:
        raise WrongRequest("model = [] must hold at least one value")
    rest = {key: value for key, value in grid.items() if key != "model"}
    unknown = [name for name in names if not isinstance(name, str) or name not in MODELS]
    if unknown:
        raise WrongRequest(unknown_names("model", unknown, MODELS))
    return [{**_shape(name, rest), **rest} for name in names]


def _shape(name: str, grid: dict[str, Any]) -> dict[str, Any]:
    for key, value in MODELS[name].items():
        if key in grid and grid[key] not in (value, [value]):
            raise WrongRequest(f"{key} = {grid[key]!r} contradicts model = {name}, which has {value}; leave one out")
    return MODELS[name]
