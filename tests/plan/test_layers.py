"""What follows from a layer: columns, and work and peak memory as torch and the allocator count them."""

import dataclasses
from typing import Any

import pytest
from torch.utils.flop_counter import FlopCounterMode

from bench.measure import workload
from bench.plan.case import COLUMNS, OF_LAYERS, Point
from bench.plan.columns import Role
from bench.plan.core import UNFUSED, Core
from bench.plan.grid import DEFAULTS, expand
from bench.plan.layers import LAYERS, flops, layer_of, least_bytes
from bench.plan.layers.module import of_core
from tests.make.points import OF_LAYER, of_layer, point
from tests.refusals import refusal

OWN = {"threads": 1, "layer": "mylayer:MyAttention", "num_tokens": 7, "channels": 10}

OF_FUNCTION = [name for name, column in COLUMNS.items() if column.role not in (Role.LAYER, Role.EXECUTION)]


def least(at: Point) -> dict[str, Any]:
    """Return the columns of a point that a grid must give: the unusual ones that its layer needs or takes."""
    layer = LAYERS[at.layer]
    given = {"batch", "channels", "token_len", "num_heads", *layer.needs, *layer.takes} - {*layer.fixed}
    return {name: getattr(at, name) for name in OF_FUNCTION if name in given and not COLUMNS[name].is_usual(at)}


SHAPES = [
    point(batch=2, num_tokens=16, token_len=64, channels=64, num_heads=4),
    point(batch=3, num_tokens=64, token_len=48, channels=48, num_heads=1),
    point(batch=13, num_tokens=100, token_len=49, channels=64, num_heads=4),
    *map(of_layer, OF_LAYER),
]

NORMED_GRID: dict[str, Any] = {"num_tokens": 9, "token_len": 24, "channels": 24, "qk_norm": "rms", "rope": "axial"}

FEATURES: dict[str, tuple[str, dict[str, Any]]] = {
    "context": ("attention", {"num_kv_tokens": 5, "context_dim": 10, "qkv_bias": True}),
    "one query": ("attention", {"num_tokens": 1, "num_kv_tokens": 9, "context_dim": 12}),
    "one head of keys": ("attention", {"num_kv_heads": 1, "token_len": 10}),
    "norm and rotary": ("attention", NORMED_GRID),
    "layer norm": ("attention", {"qk_norm": "layer"}),
    "relative bias": ("attention", {"attn_bias": "relative"}),
    "windows": ("attention", {"num_tokens": 36, "window_size": 3, "attn_bias": "relative"}),
    "alibi": ("attention", {"attn_bias": "alibi", "num_kv_heads": 1}),
    "other keys": ("core", {"num_kv_tokens": 5}),
    "grouped core": ("core", {"num_kv_tokens": 5, "num_kv_heads": 1}),
}
"""Tiny points of the columns that two layers have."""


def expanded(layer: str, **values: Any) -> Any:
    """Return the one point of a layer that a grid gives, on a machine with one thread."""
    given = {**DEFAULTS, "threads": 1, **least(of_layer(layer)), **values, "layer": layer}
    (only,) = expand({name: value for name, value in given.items() if value != "missing"})
    return only


@pytest.mark.parametrize(
    ("layer", "values", "expected"),
    [
        *((layer, {}, {}) for layer in LAYERS),
        ("self", {"key_channels": "missing"}, {"key_channels": 14}),
        ("self", {"token_len": "missing"}, {"token_len": 14}),
        ("patch", {"token_len": 64}, {"token_len": 64}),
        ("patch", {"num_tokens": 9}, {"num_tokens": 9}),
        ("conv", {"token_len": 16, "num_tokens": 9}, {"token_len": 16}),
        ("vit", {"qkv_bias": True, "qk_scale": 1}, {"qkv_bias": True, "qk_scale": 1.0}),
        ("attention", {"num_kv_tokens": 5}, {"num_kv_tokens": 5, "context_dim": 12}),
        ("attention", {"num_kv_tokens": 7, "context_dim": 10}, {"num_kv_tokens": 7, "context_dim": 10}),
        ("attention", {"num_kv_heads": 3}, {}),
        ("core", {"num_kv_heads": 1, "num_kv_tokens": 7}, {"num_kv_heads": 1}),
    ],
)
def test_columns_follow_from_the_layer(layer: str, values: dict[str, Any], expected: dict[str, Any]) -> None:
    """All columns follow from the free ones; a column that the layer leaves free, or that agrees, may be given."""
    assert expanded(layer, **values) == of_layer(layer, **expected)


@pytest.mark.parametrize(
    ("layer", "values", "message"),
    [
        ("vit", {"num_tokens": "missing"}, "num_tokens is missing; the layer vit needs it"),
        ("vit", {"key_channels": 6}, "key_channels = 6 is not used by the layer vit; leave it out"),
        ("self", {"qkv_bias": True}, "qkv_bias = true must be false in the layer self"),
        ("core", {"attn_bias": "alibi"}, "attn_bias = alibi must be none or given or learned in the layer core"),
        ("patch", {"num_heads": 5}, "channels = 12 must be divisible by num_heads = 5"),
        ("core", {"num_kv_heads": 2}, "num_heads = 3 must be divisible by num_kv_heads = 2"),
        ("patch", {"image_size": 30}, "image_size = 30 must be divisible by patch_size = 4"),
        ("patch", {"token_len": 50}, "token_len = 50 must be a multiple of patch_size² = 16"),
        ("patch", {"num_tokens": 8}, "num_tokens = 8 contradicts image_size = 12 with patch_size = 4, which makes 9"),
        ("conv", {"num_tokens": 3}, "num_tokens = 3 contradicts image_size = 3, a token for each pixel, which makes 9"),
        ("conv", {"channels": 4}, "channels = 4 must be at least 8 in the layer conv"),
        ("conv", {"token_len": 8}, "token_len = 8 must equal channels = 16 in the layer conv"),
        ("attention", {"context_dim": 10}, "context_dim = 10 needs num_kv_tokens"),
        ("attention", {"num_kv_tokens": 7, "attn_bias": "alibi"}, "attn_bias = alibi needs keys at the positions of"),
        ("attention", {"window_size": 2}, "window_size = 2 must divide the side of a square of num_tokens = 7, which"),
        ("attention", {"num_tokens": 9, "window_size": 3, "mask": "causal"}, "mask = causal and window_size = 3 can't"),
        ("attention", {"num_tokens": 3, "attn_bias": "relative"}, "attn_bias = relative needs a grid of at least 2×2"),
        ("attention", {"rope": "axial", "num_heads": 2}, "rope = axial needs channels / num_heads to be a multiple"),
    ],
)
def test_a_contradiction_is_refused(layer: str, values: dict[str, Any], message: str) -> None:
    """A missing column, an unused one, or one that the layer fixes otherwise gives one line with the numbers."""
    line = refusal(expanded, layer, **values)
    assert line.startswith(message)
    assert "\n" not in line


def test_a_users_layer_needs_tokens_and_channels() -> None:
    """The token length follows the channels, and heads need not divide them: that is the layer's own rule.

    It has no count of operations; its least bytes cover its input and output.
    """
    (point,) = expand({**DEFAULTS, **OWN, "num_heads": 3})
    assert (point.token_len, point.num_heads, point.qkv_bias, point.mask) == (10, 3, False, "none")
    without = {name: value for name, value in {**DEFAULTS, **OWN}.items() if name != "num_tokens"}
    assert refusal(lambda: list(expand(without))).startswith("num_tokens is missing; the layer mylayer:MyAttention")
    assert flops(point) is None
    assert least_bytes(point) == 4 * (8 * 7 * 10 + 8 * 7 * 10)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("my:Layer[dim=64,heads=4]", {"token_len": 64, "channels": 64, "num_heads": 4}),
        ("my:Layer[d_model=64,nhead=3]", {"token_len": 64, "channels": 64, "num_heads": 3}),
        ("my:Layer[dim=64,chan=32]", {"token_len": 64, "channels": 32}),
        ("my:Layer[seq_len=9,batch=3]", {"num_tokens": 9, "batch": 3}),
        ("my:Layer[window_size=32,img_size=32,mask=causal]", {"window_size": None, "image_size": None, "mask": "none"}),
        ("my:Layer[heads=0,dim=x,mask=true,device=cuda]", {"num_heads": 1, "token_len": 10, "mask": "none"}),
    ],
)
def test_arguments_in_a_name_are_columns(name: str, columns: dict[str, Any]) -> None:
    """Those of x, with a value that the column can have; an option such as `window_size` is the module's own."""
    usual = {**DEFAULTS, "threads": 1, "num_tokens": 7, "channels": 10}
    (at,) = expand({"layer": name}, usual=usual)
    assert {column: getattr(at, column) for column in columns} == columns


def test_what_a_module_shows_are_columns_of_its_points() -> None:
    """They take the place of the usual ones; a batch that is given stays."""
    usual = {**DEFAULTS, "threads": 1, "num_tokens": 7, "channels": 10}
    name, shown = "my:Layer[input=my:inputs,heads=2]", dict(zip(OF_LAYERS, (5, 16, 16, 4), strict=True))
    for given, expected in (({}, 3), ({"batch": 2}, 2)):
        (at,) = expand({"layer": name, **given}, usual, {**shown, "batch": 3})
        assert {column: getattr(at, column) for column in (*OF_LAYERS, "batch")} == {**shown, "batch": expected}
    (at,) = expand({"layer": name}, usual, shown)
    assert at.batch == DEFAULTS["batch"]


def test_an_argument_in_a_name_holds_and_so_does_what_a_module_shows() -> None:
    """A column that says something else is refused."""
    message = "num_heads = 2 must be 4 in the layer my:Layer[heads=4]"
    given = {**DEFAULTS, **OWN, "layer": "my:Layer[heads=4]", "num_heads": 2}
    assert refusal(lambda: [*expand(given)]) == message
    shown = {"num_tokens": 5, "token_len": 10, "channels": 10, "num_heads": 2}
    assert refusal(lambda: [*expand({**given, "layer": "timm:vit"}, shown=shown)]).startswith("num_tokens = 7 must be")


def test_a_core_shows_the_columns_of_its_module() -> None:
    """Tokens come from the queries; a name takes precedence."""
    core = Core("", "Layer", UNFUSED, ((8, 6, 197, 64), (8, 6, 49, 64), (8, 6, 49, 64)), "float32", 0.125)
    assert tuple(of_core(core, "my:Layer")[column] for column in OF_LAYERS) == (197, 384, 384, 6)
    assert of_core(core, "my:Layer[dim=96,num_heads=3]")["num_heads"] == 3


# Work and memory


@pytest.mark.parametrize(
    "at", [*SHAPES, *(of_layer(layer, **columns) for layer, columns in FEATURES.values())], ids=lambda at: at.name
)
def test_flops_are_those_that_torch_counts_in_the_layer(at: Point) -> None:
    """Forward, backward and both, each layer's formula agrees with torch's counter to the last operation.

    The shape of its output is the declared one. Grouped heads count as if they were repeated, a bias, norms and
    rotations have no product, windows have fewer keys.
    """
    work = workload.make(dataclasses.replace(at, mode="train"))
    inputs = [each.requires_grad_() for each in work.inputs()]
    with FlopCounterMode(display=False) as counter:
        y = work.layer(*inputs)
        assert y.shape == layer_of(at.layer).output(at)
        forward = counter.get_total_flops()
        y.backward(work.direction)
        whole = counter.get_total_flops()
    counted = {"inference": forward, "forward": forward, "train": whole, "backward": whole - forward}
    assert {mode: flops(dataclasses.replace(at, mode=mode)) for mode in counted} == counted


@pytest.mark.parametrize(
    ("layer", "halves"),
    [
        # B·N²·(width of keys + width of values) multiplications become half as many
        ("self", 2 * 7**2 * (6 + 14)),
        ("patch", 2 * 9**2 * (12 + 12)),
        ("conv", 2 * 9**2 * (2 + 16)),
    ],
)
@pytest.mark.parametrize(("mode", "times"), [("inference", 1), ("train", 3)])
def test_a_causal_mask_halves_the_products_of_the_core(layer: str, halves: int, mode: str, times: int) -> None:
    """Half of the scores are needed, and no projection changes; a multiplication is two operations."""
    whole, causal = (flops(of_layer(layer, mode=mode, mask=mask)) or 0 for mask in ("none", "causal"))
    assert whole - causal == times * halves


@pytest.mark.parametrize(
    ("columns", "pairs"),
    [
        # the pairs of a query and a key that sees it, in all items, of one head
        ({"mask": "causal", "num_tokens": 4, "num_kv_tokens": 10}, 2 * 4 * 4 // 2),  # from the upper left corner
        ({"mask": "causal", "num_tokens": 10, "num_kv_tokens": 4}, 2 * (4 * 4 // 2 + 6 * 4)),
    ],
)
def test_a_core_has_the_products_of_visible_pairs(columns: dict[str, Any], pairs: int) -> None:
    """A causal mask hides half of the square in the corner; two products of width 12 each."""
    assert flops(of_layer("core", **columns)) == 2 * 2 * 12 * pairs


@pytest.mark.parametrize(
    ("layer", "columns"),
    [
        *((layer, {}) for layer in OF_LAYER),
        ("vit", {"dtype": "bfloat16"}),
        *FEATURES.values(),
        ("core", {"attn_bias": "given", "num_kv_tokens": 5}),
        ("core", {"attn_bias": "learned"}),
    ],
)
def test_the_least_bytes_are_those_of_input_weights_and_output(layer: str, columns: dict[str, Any]) -> None:
    """Each tensor from outside the call counts once, including a mask and a bias; a worker reports the same."""
    at = of_layer(layer, **columns)
    work = workload.make(at)
    tensors = [*work.inputs(), work.direction, *work.layer.state_dict().values()]
    assert least_bytes(at) == sum(tensor.nbytes for tensor in tensors) == work.least_work.least_bytes
