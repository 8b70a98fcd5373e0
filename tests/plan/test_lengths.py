"""Lengths of items: the quantiles of distributions and lists, their refusals, and their work."""

from typing import Any

import pytest

from bench.measure import workload
from bench.plan.case import Point
from bench.plan.layers import flops, least_bytes
from bench.plan.lengths import of_items
from bench.plan.sweep import Request, load_sweep
from tests.make.points import of_layer
from tests.refusals import refusal

SHAPE: dict[str, Any] = {"layer": "vit", "batch": 4, "num_tokens": 16, "channels": 8, "num_heads": 2}


def planned(lengths: str, **columns: Any) -> Point:
    """Return the one point that a run with these options plans."""
    options = {name: [value] for name, value in {**SHAPE, "lengths": lengths, **columns}.items()}
    (point,) = load_sweep(Request("quick", product=True, overrides=options, implementations=("eager",))).points
    return point


@pytest.mark.parametrize(
    ("lengths", "batch", "longest", "expected"),
    [
        ("fixed", 3, 7, (7, 7, 7)),
        # the middles of four equal parts of the items are 1/8, 3/8, 5/8 and 7/8, which the longest takes
        ("uniform", 4, 64, (64, 40, 24, 8)),
        ("zipf", 4, 256, (256, 32, 8, 2)),  # 256^(1/8) = 2, 256^(3/8) = 8, 256^(5/8) = 32
        ("bimodal", 4, 64, (64, 8, 8, 8)),  # three in four are short
        ("bimodal", 8, 64, (64, 64, 8, 8, 8, 8, 8, 8)),
        *((name, 1, 9, (9,)) for name in ("uniform", "zipf", "bimodal")),
        ("uniform", 2, 64, (64, 16)),
        ("zipf", 2, 256, (256, 4)),
        ("bimodal", 2, 64, (64, 8)),
        ("uniform", 4, 2, (2, 1, 1, 1)),  # no item has 0 tokens
        ("list:3+9+1", 3, 16, (9, 3, 1)),
    ],
)
def test_items_are_the_quantiles_of_a_distribution(
    lengths: str, batch: int, longest: int, expected: tuple[int, ...]
) -> None:
    """The longest comes first and has all tokens; the others are at the middles of their parts."""
    assert of_items(lengths, batch, longest) == expected


def test_a_list_is_the_same_in_any_order() -> None:
    """Its point is one, the longest first."""
    assert planned("list:3+16+1+7") == planned("list:16+7+3+1")
    assert planned("list:3+16+1+7").items == (16, 7, 3, 1)


@pytest.mark.parametrize(
    ("lengths", "columns", "message"),
    [
        ("list:3+0+1+7", {}, "lengths = list:3+0+1+7 has 0; a length must be from 1 to num_tokens = 16"),
        ("list:3+17+1+7", {}, "lengths = list:3+17+1+7 has 17; a length must be from 1 to num_tokens = 16"),
        ("list:3+7", {}, "lengths = list:3+7 has 2 lengths, and batch = 4 needs 4"),
        *(
            (text, {}, f"lengths = '{text}' must be fixed, uniform, zipf, bimodal, or list:A+B+… with a length for ")
            for text in ("normal", "uniform:0.5", "zipf:2", "list:", "list:3,4", "list:-1", "file:a")
        ),
        *(
            ("uniform", {"layer": layer, "num_heads": 1}, f"lengths = uniform is not used by the layer {layer}; leave")
            for layer in ("self", "my:Layer")
        ),
        *(
            ("uniform", {"layer": layer, name: value}, f"{name} = {value} needs items of equal length; leave it or")
            for layer, name, value in (
                ("core", "num_kv_tokens", 4),
                ("attention", "num_kv_tokens", 4),
                ("attention", "window_size", 2),
                ("attention", "rope", "axial"),
            )
        ),
    ],
)
def test_what_cannot_be_is_refused(lengths: str, columns: dict[str, Any], message: str) -> None:
    """An unknown distribution, a list that doesn't fit the batch, a layer without lengths, and columns for a grid."""
    assert refusal(planned, lengths, **columns).startswith(message)


LENGTHS = {"batch": 3, "num_tokens": 7, "lengths": "list:7+4+2", "channels": 12, "token_len": 10}
TOKENS, PAIRS = 7 + 4 + 2, 7 * 7 + 4 * 4 + 2 * 2

PROJECTED = {
    # elements of a token at the input, and of the weights
    "core": (12 + 2 * 12, 0),
    "vit": (10, 10 * 3 * 12 + 12 * 12),
    "attention": (10, 10 * 3 * 12 + 12 * 12),
}


@pytest.mark.parametrize("mode", ["inference", "train", "backward"])
@pytest.mark.parametrize("layer", PROJECTED)
def test_flops_are_those_of_real_tokens(layer: str, mode: str) -> None:
    """The core has 4·C·Σn², half of it if causal, a projection 2 for each token and weight; a gradient twice that."""
    columns = {name: value for name, value in LENGTHS.items() if (layer, name) != ("core", "token_len")}
    times = {"inference": 1, "train": 3, "backward": 2}[mode]
    projections = 2 * TOKENS * PROJECTED[layer][1]
    at = of_layer(layer, mode=mode, **columns)
    assert flops(at) == times * (4 * 12 * PAIRS + projections)
    causal = of_layer(layer, mode=mode, mask="causal", **columns)
    assert flops(causal) == times * (2 * 12 * PAIRS + projections)


@pytest.mark.parametrize("layer", PROJECTED)
def test_bytes_are_those_of_real_tokens(layer: str) -> None:
    """Input and output have no padding and no mask, and a worker reports the same for each implementation."""
    columns = {name: value for name, value in LENGTHS.items() if (layer, name) != ("core", "token_len")}
    width, weights = PROJECTED[layer]
    at = of_layer(layer, **columns)
    bias = 12 if weights else 0  # of the output projection
    assert least_bytes(at) == 4 * (TOKENS * (width + 12) + weights + bias)
    assert workload.make(at).least_work.least_bytes == least_bytes(at)
