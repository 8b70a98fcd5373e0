"""From the name of an implementation to its adapter, and what is refused on the way."""

from pathlib import Path

import pytest
from torch import nn

from impls import IMPLEMENTATIONS, build
from impls.resolve import resolve
from tests.impls.reference import normal

USER_MODULE = """
import types

def adapt(layer):
    return lambda x: layer(x) + 1

box = types.SimpleNamespace(inner=types.SimpleNamespace(adapt=adapt))
number = 3
"""


@pytest.fixture(autouse=True)
def _user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a user's module, and a distribution with entry points to it, on the path."""
    (tmp_path / "users_kernel.py").write_text(USER_MODULE, encoding="utf-8")
    (tmp_path / "users_broken_kernel.py").write_text("import a_package_that_is_not_there\n", encoding="utf-8")
    distribution = tmp_path / "users_kernel-1.0.dist-info"
    distribution.mkdir()
    (distribution / "METADATA").write_text("Name: users-kernel\nVersion: 1.0\n", encoding="utf-8")
    (distribution / "entry_points.txt").write_text(
        "[attention_bench.implementations]\n"
        "installed = users_kernel:adapt\n"
        "eager = users_kernel:adapt\n"
        "broken = users_broken_kernel:adapt\n"
        "number = users_kernel:number\n"
        "[another.group]\n"
        "foreign = users_kernel:adapt\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_a_known_name_is_its_adapter(name: str) -> None:
    """A name of the suite resolves to the suite's adapter."""
    assert resolve(name, IMPLEMENTATIONS) is IMPLEMENTATIONS[name]


@pytest.mark.parametrize("name", ["users_kernel:adapt", "users_kernel:box.inner.adapt", "installed"])
def test_a_users_adapter_is_found(name: str) -> None:
    """An adapter of one's own is found by `module:attribute`, dotted too, and by its entry point."""
    layer = nn.Linear(4, 4)
    x = normal(2, 4)

    assert (build(layer, name)(x) - layer(x)).allclose(x.new_ones(()), atol=1e-6)


def test_a_known_name_comes_before_an_entry_point() -> None:
    """An installed package can't replace an implementation of the suite."""
    assert resolve("eager", IMPLEMENTATIONS) is IMPLEMENTATIONS["eager"]


@pytest.mark.parametrize("name", ["sdap", "", "Eager", "foreign"])
def test_an_unknown_name_is_refused(name: str) -> None:
    """The refusal gives the rule, the name that came and all that could have come, in one line."""
    with pytest.raises(LookupError) as refusal:
        build(nn.Linear(4, 4), name)

    message = str(refusal.value)
    assert message.startswith(f"unknown implementation {name!r}; expected one of eager, manual,")
    assert all(known in message for known in (*IMPLEMENTATIONS, "module:attribute"))
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no_such_module:adapt", "no_such_module"),
        ("users_kernel:nothing", "nothing"),
        ("users_kernel:box.nothing", "nothing"),
        ("users_kernel:", "users_kernel:"),
        ("users_kernel:adapt:adapt", "adapt:adapt"),
        ("users_broken_kernel:adapt", "a_package_that_is_not_there"),
        ("users_kernel:number", "must be callable, got int"),
        (":adapt", ":adapt"),
        (".users_kernel:adapt", ".users_kernel"),
        ("broken", "a_package_that_is_not_there"),
        ("number", "must be callable, got int"),
    ],
)
def test_what_can_not_be_imported_is_refused(name: str, reason: str) -> None:
    """A module, attribute or entry point that gives no adapter is a LookupError that names it and the reason."""
    with pytest.raises(LookupError) as refusal:
        build(nn.Linear(4, 4), name)

    message = str(refusal.value)
    assert repr(name) in message
    assert reason in message
    assert "\n" not in message
