"""A user's own implementations: found, or refused, without being imported."""

from pathlib import Path

import pytest

from bench.plan import own
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
    assert own.mistake(name, [str(folder), *own.search_path()]) == ""


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
    line = own.mistake(name, [str(folder)])

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
    line = own.misspelled(name)

    assert repr(name) in line
    assert "must be spelled module:attribute" in line
    assert line.endswith(f"did you mean {right}?")


@pytest.mark.parametrize("name", ["mykernel:adapt", "a.b:c.d", "sdap", "", ":", "module:", ":attribute", "."])
def test_what_is_no_file_is_no_misspelling(name: str) -> None:
    """A right spelling, and a name that is wrong in another way, are left to others."""
    assert own.misspelled(name) == ""


def test_a_layer_may_be_any_name_of_a_module(folder: Path) -> None:
    """A function of a module may make a layer; a name that the module doesn't have may not."""
    assert own.mistake("mykernel:attend", [str(folder)], "layer") == ""
    line = own.mistake("mykernel:Kernle", [str(folder)], "layer")
    assert line.startswith("layer 'mykernel:Kernle': ")
    assert line.endswith("did you mean Kernel?")
    assert "layer 'no_such_module:Layer'" in refusal(own.check, ["vit", "no_such_module:Layer"], "layer")
