"""From the name of an implementation to its adapter, with the refusals on the way."""

import importlib
import importlib.metadata
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from bench.plan import names
from impls import IMPLEMENTATIONS, Unresolved, Unsupported, build
from impls.attend import eager
from impls.catalogue import name_of
from impls.layers.self_attention import SelfAttention
from impls.layers.vit import ViTAttention
from impls.lookup import attend_of, compiles, resolve, versions
from tests.impls.reference import normal

USER_MODULE = """
import types

def adapt(layer):
    return lambda x: layer(x) + 1

box = types.SimpleNamespace(inner=types.SimpleNamespace(adapt=adapt))
number = 3

def attend(q, k, v, scale, /, *, mask=None, times=1):
    return times * (q @ k.mT * scale).softmax(-1) @ v

attend.compiles = True
"""


@pytest.fixture(autouse=True)
def _user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a user's modules on the path."""
    for path, text in {
        tmp_path / "users_kernel.py": USER_MODULE,
        tmp_path / "users_broken_kernel.py": "import a_package_that_is_not_there\n",
        tmp_path / "users_wordy_kernel.py": "raise ImportError('one\\n  two\\n')\n",
    }.items():
        path.write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)


def test_a_known_name_is_its_adapter() -> None:
    """A name of the suite resolves to the suite's adapter, and each can be imported."""
    assert resolve("eager") is eager.adapt
    assert all(callable(resolve(name)) for name in IMPLEMENTATIONS)


@pytest.mark.parametrize("name", ["users_kernel:adapt", "users_kernel:box.inner.adapt"])
def test_a_users_adapter_has_a_name(name: str) -> None:
    """An adapter of one's own is named by `module:attribute`, dotted too; a plan takes both."""
    assert not names.mistakes([name], None)
    assert name_of(name).is_own
    layer, x = nn.Linear(4, 4), normal(2, 4)
    assert (build(layer, name)(x) - layer(x)).allclose(x.new_ones(()), atol=1e-6)


def test_an_attend_is_taken_in_place_of_an_adapter() -> None:
    """A function of queries, keys and values becomes the layer's core; its keywords are options of its name."""
    layer, x = ViTAttention(8, 8, 2), normal(1, 10, 8)
    without, once, twice = (build(layer, f"users_kernel:attend[times={times}]")(x) for times in (0, 1, 2))
    torch.testing.assert_close(once, layer(x))
    torch.testing.assert_close(twice - without, 2 * (once - without))
    assert compiles("users_kernel:attend")
    assert not compiles("users_kernel:adapt")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("sdap", "unknown implementation 'sdap'; expected one of eager, as_is, "),
        ("no_such_module:adapt", "no_such_module"),
        ("users_kernel:", "users_kernel:"),
        ("users_wordy_kernel:adapt", "can't be imported: one two"),
        ("users_kernel:number", "must be callable, got int"),
        (".users_kernel:adapt", ".users_kernel"),
        ("users_broken_kernel:adapt", "a_package_that_is_not_there"),
        ("online[block=16]", "online has no option 'block'; expected one of block_tokens"),
        ("eager[mode=fast]", "eager has no option 'mode'; it has no options"),
        ("users_kernel:adapt[a=1]", "users_kernel:adapt has no option 'a'; it has no options"),
    ],
)
def test_a_name_that_leads_to_no_adapter_is_refused(name: str, reason: str) -> None:
    """In one line, with the name and the reason."""
    with pytest.raises(LookupError) as refusal:
        build(nn.Linear(4, 4), name)
    message = str(refusal.value)
    assert reason in message
    assert name.partition("[")[0] in message
    assert "\n" not in message


class Core(SelfAttention):
    """A user's layer that has the name of one of ours."""


def test_a_layer_without_the_core_of_ours_has_no_other_one() -> None:
    """Also eager, which is said of the plain formula alone; `loop` takes our layer core by its name."""
    with pytest.raises(Unsupported, match="which only core, attention and vit have"):
        build(Core(6, 6, 6), "loop")
    with pytest.raises(Unsupported, match="Linear has no attend that takes queries"):
        build(nn.Linear(3, 3), "eager")


def taking(parameters: str) -> Any:
    """Return a function with these parameters."""
    return eval(f"lambda {parameters}: None")  # noqa: S307 - these texts


class OfSizes(nn.Module):
    """A core that is a class of modules."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.width, self.heads = width, heads


@pytest.mark.parametrize(
    "function",
    [
        taking("module, query, key, value, attention_mask"),
        taking("qkv, causal=False"),
        taking("q, k, v, mask=None"),
        torch.softmax,
        torch.autograd.Function,
        OfSizes,
    ],
)
def test_any_other_function_is_refused_with_a_wrapper(function: Any) -> None:
    """The line says how to write an attend that calls it."""
    with pytest.raises(Unresolved) as refusal:
        attend_of(function, "package.module:f")
    message = str(refusal.value)
    for words in ("'package.module:f'", "from package.module import f; def attend(q, k, v, scale): return f(q, k, v"):
        assert words in message
    assert "\n" not in message


def test_what_is_lacking_is_said_before_anything_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing package is named with the command that installs it; what needs a GPU says so without one.

    Versions cover the installed packages that implementations need.
    """
    for package, version in versions(["eager", "openvino", "onnxruntime[a=1]"]).items():
        assert importlib.metadata.version(package) == version
    monkeypatch.setattr("impls.lookup.version", _missing)
    for name, reason in {
        "openvino": "openvino is not installed; pip install openvino",
        "onnxruntime": "onnxruntime is not installed; pip install onnxruntime onnx onnxscript",
        "sdpa_fa4": "it runs only on a GPU",
    }.items():
        with pytest.raises(Unsupported) as refusal:
            build(ViTAttention(8, 8, 2), name)
        assert str(refusal.value) == reason
    assert versions(["eager", "openvino", "mykernel:adapt"]) == {}


def _missing(package: str) -> str:
    raise importlib.metadata.PackageNotFoundError(package)
