"""The names that a plan may use; a user's own are checked without an import."""

from pathlib import Path

import pytest

from bench.plan import names
from tests.refusals import refusal

KERNEL = """
raise SystemExit("this file must not run")
import torch

def attend(q, k, v, scale=1.0):
    return q

def adapt(layer):
    return layer

def taking_options(layer, tile=8, stages=2):
    return layer

if True:
    late = box = adapt

class Kernel:
    hidden = 1
"""


@pytest.mark.parametrize("table", [names.LAYERS, names.IMPLEMENTATIONS])
def test_every_name_says_what_it_stands_for(table: dict[str, str]) -> None:
    """Each name comes with one line that says what it stands for, and no two say the same."""
    assert all(meaning.strip() and "\n" not in meaning for meaning in table.values())
    assert len(set(table.values())) == len(table)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("eager", True),
        ("compiled_sdpa", True),
        ("module:attribute", True),
        ("package.module:box.attribute", True),
        ("sdap", False),
        ("Eager", False),
        ("", False),
        (":", False),
        ("module:", False),
        (":attribute", False),
        ("online[block_tokens=64]", True),
        ("module:attribute[a=1]", True),
        ("online[block_tokens]", False),
        ("online[", False),
    ],
)
def test_is_implementation(name: str, expected: bool) -> None:
    """A name of the suite and `module:attribute` can stand for an implementation, half of the latter can't."""
    assert names.is_implementation(name) is expected


def test_an_installed_implementation_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that an installed package gives to its adapter can stand for an implementation."""
    distribution = tmp_path / "users_kernel-1.0.dist-info"
    distribution.mkdir()
    (distribution / "METADATA").write_text("Name: users-kernel\nVersion: 1.0\n", encoding="utf-8")
    (distribution / "entry_points.txt").write_text(
        "[attention_bench.implementations]\ninstalled = users_kernel:adapt\n[another.group]\nforeign = a:b\n",
        encoding="utf-8",
    )
    before = names.is_implementation("installed")
    monkeypatch.syspath_prepend(tmp_path)

    assert not before
    assert names.is_implementation("installed")
    assert not names.is_implementation("foreign")
    assert [names.is_own(name) for name in ("installed", "mykernel:adapt", "eager")] == [True, True, False]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that the user stands in, with kernels in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mykernel.py").write_text(KERNEL, encoding="utf-8")
    (tmp_path / "starred.py").write_text("from somewhere import *\n", encoding="utf-8")
    (tmp_path / "dynamic.py").write_text("def __getattr__(name): ...\n", encoding="utf-8")
    (tmp_path / "made.py").write_text("globals()['adapt'] = 1\n", encoding="utf-8")
    (tmp_path / "broken.py").write_text("def adapt(layer:\n", encoding="utf-8")
    package = tmp_path / "kernels" / "inner"
    package.mkdir(parents=True)
    (tmp_path / "kernels" / "__init__.py").write_text("raise SystemExit\n", encoding="utf-8")
    (package / "fast.py").write_text("def adapt(layer): ...\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        "mykernel:adapt",
        "mykernel:taking_options",
        "mykernel:late",
        "mykernel:box.inner.adapt",
        "mykernel:Kernel",
        "mykernel:attend",
        "mykernel:torch",
        "starred:anything",
        "dynamic:anything",
        "made:adapt",
        "kernels:inner",
        "kernels.inner.fast:adapt",
        "math:sqrt",
        "sys:path",
    ],
)
def test_nothing_speaks_against_what_may_be_there(name: str, folder: Path) -> None:
    """A name that the source binds is fine, and so is whatever a source can't tell; no file is run."""
    assert names.mistake_of(name, [str(folder), *names.search_path()]) == ""


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("mykernle:adapt", ["no module mykernle", "did you mean mykernel?"]),
        ("kernels.outer:adapt", ["no module kernels.outer"]),
        ("mykernel.inner:adapt", ["no module mykernel.inner"]),
        ("kernels.inner.fast:adpat", ["kernels.inner.fast has no adpat", "did you mean adapt?"]),
        ("mykernel:adpat", ["mykernel has no adpat", "did you mean adapt?"]),
        ("mykernel:hidden", ["mykernel has no hidden"]),
        ("broken:adapt", ["broken.py, line 1: '(' was never closed"]),
    ],
)
def test_what_cannot_be_an_implementation_is_refused(name: str, reasons: list[str], folder: Path) -> None:
    """A missing module, a missing name and a syntax error are one line that says what to do."""
    line = names.mistake_of(name, [str(folder)])

    assert all(reason in line for reason in (name, *reasons))
    assert "\n" not in line


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("./mykernel:adapt", "mykernel:adapt"),
        ("mykernel.py:adapt", "mykernel:adapt"),
        ("./mykernel.py:adapt", "mykernel:adapt"),
        ("pkg/mykernel:adapt", "pkg.mykernel:adapt"),
        ("/home/me/mykernel.py:adapt", "mykernel:adapt, and run it from that folder"),
        ("../mykernel.py:adapt", "mykernel:adapt, and run it from that folder"),
        ("mykernel.py", "mykernel:adapt"),
        ("./mykernel", "mykernel:adapt"),
        ("mykernel.adapt", "mykernel:adapt"),
    ],
)
def test_the_name_of_a_file_is_refused_with_the_right_spelling(name: str, right: str) -> None:
    """The refusal says the rule, what came, and what to write."""
    line = names.misspelled(name)

    assert repr(name) in line
    assert "must be spelled module:attribute" in line
    assert line.endswith(f"did you mean {right}?")


@pytest.mark.parametrize("name", ["mykernel:adapt", "a.b:c.d", "sdap", "", ":", "module:", ":attribute", "."])
def test_what_is_no_file_is_no_misspelling(name: str) -> None:
    """A right spelling, and a name that is wrong in another way, are left to others."""
    assert names.misspelled(name) == ""


def test_a_layer_may_be_any_name_of_a_module(folder: Path) -> None:
    """A function of a module may make a layer; a name that the module doesn't have may not."""
    assert names.mistake_of("mykernel:attend", [str(folder)], "layer") == ""
    line = names.mistake_of("mykernel:Kernle", [str(folder)], "layer")
    assert line.startswith("layer 'mykernel:Kernle': ")
    assert line.endswith("did you mean Kernel?")
    assert "layer 'no_such_module:Layer'" in refusal(names.check_own, ["vit", "no_such_module:Layer"], "layer")
