"""The names that a plan may use; a user's own are checked without an import."""

from pathlib import Path

import pytest

from bench.plan import names
from tests.make.points import point
from tests.refusals import refusal

KERNEL = """
raise SystemExit("this file must not run")
import torch

def attend(q, k, v, scale=1.0):
    return q

def adapt(layer):
    return layer

if True:
    late = box = adapt

def make():
    global fresh
    fresh = 1

class Kernel:
    hidden = 1
"""


def test_is_implementation() -> None:
    """A name of the suite and `module:attribute`, each with options, may be an implementation; half of it can't."""
    right = "eager compiled_sdpa module:attribute package.module:a.b online[block_tokens=64] module:attribute[a=1]"
    wrong = ["sdap", "Eager", "", ":", "module:", ":attribute", "online[block_tokens]", "online["]
    assert [name for name in (*right.split(), *wrong) if names.is_implementation(name)] == right.split()


def test_an_installed_implementation_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that an installed package gives to its adapter may be an implementation, and is a user's own."""
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
        *(f"mykernel:{name}" for name in ("adapt", "late", "box.inner.adapt", "Kernel", "torch", "fresh")),
        "starred:anything",
        "dynamic:anything",
        "made:adapt",
        "kernels:inner",
        "kernels.inner.fast:adapt",
        "math:sqrt",
        "sys:path",
    ],
)
def test_what_may_be_there_is_no_mistake(name: str, folder: Path) -> None:
    """A name that the source binds is fine, and so is whatever a source can't say; no file is run."""
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
        ("mykernel.py", "mykernel:attend"),
        ("./mykernel", "mykernel:attend"),
        ("mykernel.adapt", "mykernel:adapt"),
    ],
)
def test_the_name_of_a_file_is_refused_with_the_right_spelling(name: str, right: str) -> None:
    """The refusal says the rule, what came, and what to write."""
    line = names.misspelled(name)

    assert repr(name) in line
    assert "must be spelled module:attribute" in line
    assert line.endswith(f"did you mean {right}?")


@pytest.mark.parametrize(
    ("name", "kind", "right"),
    [
        ("mykernel", "implementation", "mykernel:attend"),
        ("mykernel.py", "implementation", "mykernel:attend"),
        ("mykernel", "layer", "mykernel:Kernel"),
        ("broken", "implementation", "broken:attend"),
        ("kernels/inner/fast.py", "implementation", "kernels.inner.fast:adapt"),
        ("kernels", "model", "kernels:make"),
    ],
)
def test_a_module_that_is_here_is_proposed_with_what_it_defines(name: str, kind: str, right: str, folder: Path) -> None:
    """The usual attribute if it has it, else its first function or class, a class for a layer."""
    assert names.misspelled(name, kind).endswith(f"did you mean {right}?")


OPTIONS = """
import functools
from impls import with_attend
from somewhere import attend as other

def attend(q, k, v, scale, *, mask=None, attn_mask=None, enable_gqa=False, block=64, width=1): ...
def adapt(layer, *, mask="none"): ...
@functools.cache
def cached(layer, *, size=1): ...
made = with_attend(attend)
def twice(layer): ...
def twice(layer, *, size=1): ...
class Kernel: ...
"""


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("attend[block=3,width=2]", []),
        ("attend[blok=3,size=1]", ["no option 'blok'; expected one of block, width; did you mean block?", "'size'"]),
        ("attend[mask=causal]", ["'mask'"]),
        ("attend[enable_gqa=true]", ["no option 'enable_gqa'; expected one of block, width"]),
        ("adapt[mask=causal]", []),
        ("adapt[size=1]", ["no option 'size'; expected one of mask"]),
        *((f"{name}[anything=1]", []) for name in ("cached", "made", "twice", "Kernel")),
    ],
)
def test_an_option_that_a_function_does_not_declare_is_refused(name: str, reasons: list[str], folder: Path) -> None:
    """The refusal has a line with those that exist; of what a source doesn't show, nothing is said before the start."""
    (folder / "optional.py").write_text(OPTIONS, encoding="utf-8")
    lines = names.mistake_of(f"optional:{name}", [str(folder)]).splitlines()
    assert len(lines) == len(reasons)
    assert all(reason in line for reason, line in zip(reasons, lines, strict=True))


@pytest.mark.parametrize("name", ["mykernel:adapt", "a.b:c.d", "sdap", "", ":", "module:", ":attribute", "."])
def test_what_is_no_file_is_no_misspelling(name: str) -> None:
    """A right spelling, and a name that is wrong in another way, are left to others."""
    assert names.misspelled(name) == ""


def test_the_check_of_layers_names_them_as_such(folder: Path) -> None:
    """A function of a module may make a layer; a module that isn't there may not, and names of the suite are passed."""
    assert names.mistake_of("mykernel:attend", [str(folder)], "layer") == ""
    message = refusal(names.check_own, ["vit", "no_such_module:Layer", "no_such_module:Other"], "layer")
    first, second = message.splitlines()
    assert first.startswith("layer 'no_such_module:Layer': there is no module")
    assert second.startswith("layer 'no_such_module:Other': ")


def test_a_layer_that_is_not_there_beside_others_ends_its_own_rows() -> None:
    """If none is there, the request is wrong, with a line for each."""
    wrong = [point(layer=f"no_such_module:{name}") for name in ("Layer", "Other")]
    names.check_layers([point(), *wrong])
    assert len(refusal(names.check_layers, wrong).splitlines()) == 2
