"""The making of a module from its name and the columns of a point, and its input."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import impls
from bench.modules.core import BY_FUNCTION
from bench.modules.making import make, show_all
from bench.modules.wrapper import Wrapper
from impls import Unresolved, Unsupported
from impls.contract import BY_ATTEND
from tests.make.points import made, point
from tests.tiny_models import Attention, right

COLUMNS: dict[str, Any] = {
    **vars(point()),
    "token_len": 48,
    "channels": 64,
    "num_heads": 4,
    "num_tokens": 7,
    "qkv_bias": True,
    "key_channels": 24,
    "image_size": 32,
    "patch_size": 4,
    "mask": "causal",
}

HERE = "tests.modules.test_making"


class Got(nn.Module):
    """Keeps the arguments that it got beside its own, and returns its input."""

    def __init__(self, **got: Any) -> None:
        super().__init__()
        self.got = got
        self.mask = got.get("mask", "none")

    def forward(self, x: Tensor) -> Tensor:
        """Return x."""
        return x


def named(heads: int, *, chan: int, token_len: int, seq_len: int, img_size: int, dim_head: int, mask: str) -> Got:
    """Return the arguments from columns, by their own and by other names, in any order."""
    return Got(a=heads, b=chan, c=token_len, d=seq_len, e=img_size, f=dim_head, mask=mask)


def with_defaults(
    dim: int,
    nhead: int = 9,
    dropout: float = 0.5,
    device: Any = None,
    mode: str = "fan_in",
    hidden_dim: int = 9,
    qkv_bias: Any = "own",
    qk_scale: Any = "own",
    patch_size: Any = "own",
) -> Got:
    """Return the arguments of a constructor with defaults."""
    own = {"qkv_bias": qkv_bias, "qk_scale": qk_scale, "patch_size": patch_size}
    return Got(a=dim, b=nhead, c=dropout, d=(device, mode, hidden_dim), **own)


def of_open(h: int, n_state: int, max_seq_len: int, width: int = 3) -> Got:
    """Return what names gave that mean a column only without a default."""
    return Got(a=h, b=n_state, c=max_seq_len, d=width)


def curious(dim: int, colour: str, window_size: Any) -> Got:
    """Return arguments of which columns give only the width."""
    return Got(dim=dim, colour=colour, window_size=window_size)


def of_count(dim: int, heads_count: int = 4, bias: bool = True) -> Got:
    """Return heads by a name that means no column."""
    return Got(dim=dim, heads_count=heads_count, bias=bias)


def of_h(dim: int, h: int = 4) -> Got:
    """Return heads by a name that means the column only without a default."""
    return Got(dim=dim, h=h)


def any_keyword(**others: Any) -> Got:
    """Return all keyword arguments."""
    return Got(**others)


def got(name: str, **columns: Any) -> dict[str, Any]:
    """Return the arguments that a module of this file got."""
    module = make(f"{HERE}:{name}", {**COLUMNS, **columns})[0]
    assert isinstance(module, Wrapper)
    return dict(module.inner.got)  # type: ignore[arg-type]  # a dictionary


def refused(name: str, **columns: Any) -> str:
    """Return why a module can't be made, which is one line."""
    with pytest.raises(Unresolved) as refusal:
        make(name, {**COLUMNS, **columns})
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("named", {"a": 4, "b": 64, "c": 48, "d": 7, "e": 32, "f": 16, "mask": "causal"}),
        ("of_open", {"a": 4, "b": 64, "c": 7, "d": 3}),
        ("any_keyword", {}),
        # arguments in brackets take precedence over columns
        ("with_defaults[nhead=2,dropout=0,qkv_bias=no]", {"a": 48, "b": 2, "c": 0, "d": (None, "fan_in", 9),
            "qkv_bias": "no", "qk_scale": "own", "patch_size": 4}),
        ("any_keyword[a=(1, 2),b='x, y',c=None,d=true,e=False,f=[1, (2, 3)],g=max-autotune]", {"a": (1, 2),
            "b": "x, y", "c": None, "d": True, "e": False, "f": [1, (2, 3)], "g": "max-autotune"}),
        ("curious[colour=red,window_size=(7, 7)]", {"dim": 48, "colour": "red", "window_size": (7, 7)}),
    ],
)  # fmt: skip
def test_columns_go_to_the_parameters_that_name_them(name: str, expected: dict[str, Any]) -> None:
    """Only columns of shape do, by their own or other names; the suite decides where and how weights are made."""
    assert got(name) == expected


def test_what_changes_the_function_is_given_if_the_point_asks_for_it() -> None:
    """A constructor's own default stays otherwise; a column without a value is not handed over."""
    usual = {"qkv_bias": False, "qk_scale": None, "patch_size": None}
    asked = {"qkv_bias": True, "qk_scale": 0.5, "patch_size": 4}
    for columns, expected in ((usual, dict.fromkeys(usual, "own")), (asked, asked)):
        values = got("with_defaults", **columns)
        assert {name: values[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_module:Layer", ["can't be imported", "no_such_module"]),
        (f"{HERE}:curious[colour=red]", ["needs window_size,", f"write {HERE}:curious[colour=red,window_size=…]"]),
        (f"{HERE}:with_defaults[dropuot=0]", ["no argument 'dropuot'; did you mean dropout?"]),
        (f"{HERE}:point", ["must return a torch.nn.Module, got Point"]),
        (f"{HERE}:lost[dim=3]", ["can't be constructed: AssertionError: ", "second line", "its signature is (dim)"]),
        (f"{HERE}:Got[input=2x0x16]", ["input=2x0x16 must be sizes, batch first, such as 8x3x224x224"]),
        (f"{HERE}:Got[at=layers.7]", ["has no module 'layers.7'"]),
    ],
)
def test_what_makes_no_module_is_said_in_one_line(name: str, words: list[str]) -> None:
    """With the layer, the reason, and what to write in the brackets."""
    line = refused(name)
    assert all(each in line for each in words), line


def lost(dim: int) -> nn.Module:
    """Raise an error of several lines, as a constructor that needs CUDA does."""
    raise AssertionError("Torch not compiled with CUDA enabled\nsecond line")


# Inputs


def test_queries_keys_and_values_are_all_x() -> None:
    """As of torch's own module, whose batch is made the first dimension."""
    x = torch.randn(2, 7, 12)
    torchs = made("torch.nn:MultiheadAttention")
    assert isinstance(torchs.inner, nn.MultiheadAttention)
    assert (torchs.inner.embed_dim, torchs.inner.num_heads, torchs.inner.batch_first) == (12, 3, True)
    torch.testing.assert_close(torchs(x), torchs.inner(x, x, x)[0])


class Maps(Got):
    """A layer of maps, which says so."""

    def input_shape(self, point: Any) -> tuple[int, ...]:
        """Return `[B, token_len, 3, N]`."""
        return point.batch, point.token_len, 3, point.num_tokens


def maps() -> Got:
    """Return a layer of maps; the function says so."""
    return Got()


maps.input_shape = lambda point: (point.batch, point.token_len, 5)  # type: ignore[attr-defined]  # functions take attributes


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("Got", (2, 7, 12)),
        ("Maps", (2, 12, 3, 7)),
        ("maps", (2, 12, 5)),
        ("Got[input=2x5x16]", (2, 5, 16)),
        ("Maps[input=2x5x16]", (2, 5, 16)),
    ],
)
def test_the_input_is_stated_given_or_tokens(name: str, shape: tuple[int, ...]) -> None:
    """The name takes precedence over the module's statement; the batch is the point's."""
    module, of_x = make(f"{HERE}:{name}", vars(point()))
    assert of_x == (shape,)
    assert module(torch.zeros(3, *shape[1:])).shape == (3, *shape[1:])


# The core


class Idle(Attention):
    """A layer with an attend that its forward doesn't call."""

    attend = staticmethod(right)


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("tests.tiny_models:Replaceable", BY_ATTEND),
        ("tests.tiny_models:Pair", BY_ATTEND),
        (f"{HERE}:Idle", BY_FUNCTION),
    ],
)
def test_an_attend_of_another_meaning_is_left_alone(name: str, way: str) -> None:
    """A core takes a scale, and forward calls it; else another way is found. Of two results the first one counts."""
    layer, (shape,) = make(name, vars(point()))
    x = torch.randn(shape)
    with torch.no_grad():
        y, same, other = layer(x), *(impls.build(layer, f"tests.tiny_models:{each}") for each in ("right", "wrong"))
        for built, is_same in ((same, True), (other, False)):
            assert torch.allclose(built(x), y, atol=1e-6) is is_same
        assert torch.equal(layer(x), y)
    assert getattr(same, "adapted_by", None) == way


def test_a_kernel_that_a_module_can_avoid_has_no_row_of_its_own() -> None:
    """The module would compute its own formula under the kernel's name."""
    layer, _ = make("tests.tiny_models:Careful", vars(point()))
    with pytest.raises(Unsupported, match="has a mask tensor, but the attend declares no keyword"):
        impls.build(layer, "tests.tiny_models:right")


def test_what_would_hide_the_layers_before_it_is_changed() -> None:
    """A head of zeros and a small layer scale get numbers; other weights stay, and so does a temperature."""
    layer = nn.ParameterDict({"head": torch.zeros(4, 4), "scale": torch.full((4,), 1e-5), "norm": torch.ones(4)})
    layer["temperature"] = torch.tensor(0.07)
    show_all(layer)
    assert float(layer["temperature"]) == pytest.approx(0.07)
    assert float(layer["head"].detach().std()) > 0.001
    assert float(layer["scale"].detach().min()) > 0.1
    assert torch.equal(layer["norm"], torch.ones(4))


TAKES = f"{HERE}:of_count takes dim, heads_count, bias"


@pytest.mark.parametrize(
    ("name", "columns", "said"),
    [
        ("of_count", {}, f"num_heads = 4 sets nothing; {HERE}:of_count[heads_count=4] sets heads_count; {TAKES}"),
        ("of_h", {}, f"num_heads = 4 sets nothing; {HERE}:of_h[h=4] sets h; {HERE}:of_h takes dim, h"),
        ("of_count[heads_count=3]", {}, f"num_heads = 4 sets nothing; {TAKES}"),
        ("of_count[heads_count=4]", {}, ""),
        ("of_count", {"num_heads": 1}, ""),
        ("of_count", {"num_heads": 1, "patch_size": 4}, f"patch_size = 4 sets nothing; {TAKES}"),
        ("any_keyword", {}, f"num_heads = 4 sets nothing; {HERE}:any_keyword takes others"),
        ("with_defaults", {}, ""),
        ("of_open", {}, "num_heads sets h; num_tokens sets max_seq_len"),
    ],
)
def test_a_column_that_reaches_no_parameter_or_one_of_another_name_is_said(
    name: str, columns: dict[str, Any], said: str
) -> None:
    """The remark has what the constructor takes and the option that sets a parameter of a similar name."""
    at = {**COLUMNS, "mask": "none", "image_size": None, "patch_size": None, **columns}
    assert make(f"{HERE}:{name}", at)[0].column_remarks == said
