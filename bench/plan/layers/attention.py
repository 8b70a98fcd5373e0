"""Multi-head attention as in models (`impls.layers.attention`)."""

import math

from bench.plan.case import Point, of_role
from bench.plan.columns import NONE, Role
from bench.plan.errors import WrongRequest
from bench.plan.layers.layer import Layer, Projection, Values, all_tokens, check_core

LEAST_SIDE = 2
"""The side of the smallest grid on which tokens have different positions."""

ROTATED = 4
"""A head's width must be a multiple of this for a rotary embedding, which turns pairs for the row and the column."""


class Attention(Layer):
    """The layer `attention`."""

    name, module = "attention", "layers.attention:Attention"
    meaning = "timm's Attention, optionally with context, bias, windows, norms, rotary, grouped heads"
    takes = ("qkv_bias", "qk_scale", "lengths", *of_role(Role.CONTEXT, Role.CORE, Role.QUERIES))

    def derive(self, values: Values) -> Values:
        """Also check heads, keys, mask, bias and positions."""
        check_core(values, ("relative", "alibi"))
        has_context = values.get("num_kv_tokens") is not None
        on_grid = [f"{name} = {values[name]}" for name in ("rope", "attn_bias") if values.get(name, NONE) != NONE]
        token_len = values.get("token_len", values["channels"])
        if has_context:
            window = [f"window_size = {values['window_size']}"] if values.get("window_size") is not None else []
            for each in (*on_grid, *window):
                raise WrongRequest(f"{each} needs keys at the positions of the queries; leave num_kv_tokens out")
            return {"token_len": token_len, "context_dim": token_len}
        if values.get("context_dim") is not None:
            raise WrongRequest(f"context_dim = {values['context_dim']} needs num_kv_tokens, the tokens of the context")
        _check_places(values, [each for each in on_grid if "alibi" not in each])
        return {"token_len": token_len}

    def projections(self, point: Point) -> tuple[Projection, ...]:
        """Return the projections to queries, to keys and values (from the context, if any) and to the output."""
        tokens, dim, chan, bias = all_tokens(point), point.token_len, point.channels, point.qkv_bias
        to_output = Projection(tokens, chan, chan)
        if point.num_kv_tokens is None:
            return Projection(tokens, dim, chan + 2 * kv_channels(point), bias), to_output
        keys, width = point.batch * point.kv_tokens, point.context_dim or 0
        return Projection(tokens, dim, chan, bias), Projection(keys, width, 2 * kv_channels(point), bias), to_output

    def further_weights(self, point: Point) -> int:
        """Return the number of weights in the norms of queries and keys."""
        return {NONE: 0, "rms": 2, "layer": 4}[point.qk_norm] * (point.channels // point.num_heads)


def _check_places(values: Values, on_grid: list[str]) -> None:
    tokens, window, mask = values["num_tokens"], values.get("window_size"), values.get("mask", NONE)
    side = math.isqrt(tokens)
    width = values["channels"] // values["num_heads"]
    if values.get("rope", NONE) != NONE and width % ROTATED:
        raise WrongRequest(
            f"rope = {values['rope']} needs channels / num_heads to be a multiple of {ROTATED}, got {width}"
        )
    if window is not None:
        if side**2 != tokens or side % window:
            raise WrongRequest(
                f"window_size = {window} must divide the side of a square of num_tokens = {tokens}"
                + (f", which is {side}" if side**2 == tokens else ", which is not a square")
            )
        if mask != NONE:
            raise WrongRequest(f"mask = {mask} and window_size = {window} can't be combined")
    if on_grid and (window or side) < LEAST_SIDE:
        raise WrongRequest(f"{on_grid[0]} needs a grid of at least {LEAST_SIDE}×{LEAST_SIDE} tokens, got {tokens}")


def kv_channels(point: Point) -> int:
    """Return the width of keys and of values, summed over their heads."""
    return point.channels // point.num_heads * point.kv_heads


LAYER = Attention()
