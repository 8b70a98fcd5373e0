"""The names that a plan may use; a user's own are checked without an import."""

from pathlib import Path

import pytest

from bench.plan import names
from tests.refusals import refusal


def is_implementation(name: str) -> bool:
    """Return whether a name may be an implementation, regardless of modules."""
    return not names.mistakes([name], None)


def test_names_of_implementations() -> None:
    """A name of the suite and `module:attribute`, each with options, may be an implementation; half of it can't."""
    right = "eager compiled_sdpa module:attribute package.module:a.b online[block_tokens=64] module:attribute[a=1]"
    wrong = ["sdap", "Eager", "", ":", "module:", ":attribute", "online[block_tokens]", "online["]
    assert [name for name in (*right.split(), *wrong) if is_implementation(name)] == right.split()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that the user stands in, with modules in it that end a process which imports them."""
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "kernels" / "inner"
    package.mkdir(parents=True)
    for file in (tmp_path / "mykernel.py", package.parent / "__init__.py", package / "fast.py"):
        file.write_text("raise SystemExit\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        *((f"{name}:anything", []) for name in ("mykernel", "kernels", "kernels.inner.fast", "math", "sys")),
        ("mykernel:attend[block=3]", []),
        ("mykernle:adapt[block=3]", ["no module mykernle", "did you mean mykernel?"]),
        ("kernels.outer:adapt", ["no module kernels.outer"]),
        ("mykernel.inner:adapt", ["no module mykernel.inner"]),
    ],
)
def test_a_module_that_is_not_there_is_refused(name: str, reasons: list[str], folder: Path) -> None:
    """One line says what to do; other mistakes are left to the import, and nothing is imported here."""
    line = names.mistake_of(name, [str(folder), *names.search_path()])
    assert bool(line) is bool(reasons)
    assert all(reason in line for reason in reasons)
    assert "\n" not in line


@pytest.mark.parametrize(
    ("name", "kind", "right"),
    [
        ("mykernel.py:adapt", "implementation", "mykernel:adapt"),
        ("pkg/mykernel:adapt", "implementation", "pkg.mykernel:adapt"),
        ("mykernel", "implementation", "mykernel:attend"),
        ("kernels/inner/fast.py", "implementation", "kernels.inner.fast:attend"),
        ("kernels", "model", "kernels:make"),
    ],
)
def test_a_file_and_a_module_that_is_here_are_refused_with_the_right_spelling(
    name: str, kind: str, right: str, folder: Path
) -> None:
    """A name without an attribute gets the usual one of its kind."""
    line = names.misspelled(name, kind)
    assert line.startswith(f"{kind} {name!r} must be module:attribute, the module by its import name")
    assert line.endswith(f"did you mean {right}?")


def test_a_layer_that_is_not_there_is_refused() -> None:
    """There is a line for each; without a path there is no check, and libraries are never looked for."""
    own = ["no_such_module:Layer", "no_such_module:Other"]
    names.check_layers(own, None)
    first, second = refusal(names.check_layers, ["vit", "timm:vit_tiny", *own], names.search_path()).splitlines()
    assert first.startswith(f"layer {own[0]!r}: there is no module")
    assert second.startswith(f"layer {own[1]!r}: ")
