"""The code that a user's names bring in: which file, and whether two processes have the same."""

import sys
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path

import pytest

from bench.measure.user_code import imported_since, raised
from impls.contract import Unresolved, imported

WRAPPER = "import json\nimport users_library.inner\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder on the path with a wrapper around a library; imports from it are forgotten."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "users_wrapper.py").write_text(WRAPPER, encoding="utf-8")
    (tmp_path / "users_library").mkdir()
    for name in ("__init__", "inner"):
        (tmp_path / "users_library" / f"{name}.py").write_text("x = 1\n", encoding="utf-8")
    yield tmp_path
    forget()


def forget() -> None:
    """Forget the modules of the tests."""
    for name in [name for name in sys.modules if name.startswith("users_")]:
        del sys.modules[name]
    invalidate_caches()


def brought_in() -> dict[str, tuple[str, str]]:
    """Return the modules that importing the wrapper brings in, as in a new process."""
    forget()
    before = {*sys.modules} - {"json"}
    import_module("users_wrapper")
    return imported_since(before)


def test_a_wrapper_brings_in_its_library(folder: Path) -> None:
    """Each top-level name has its first file; the standard library isn't the user's."""
    files = {name: Path(file) for name, (file, _) in brought_in().items()}
    assert files == {
        "users_library": folder / "users_library" / "__init__.py",
        "users_wrapper": folder / "users_wrapper.py",
    }
    assert imported_since({*sys.modules}) == {}
    assert imported_since({*sys.modules} - {"users_library.inner"}) == {}


def test_a_change_of_any_file_that_is_imported_changes_the_digest(folder: Path) -> None:
    """The same sources in another process have the same one."""
    before = brought_in()
    assert brought_in() == before
    (folder / "users_library" / "unused.py").write_text("y = 1\n", encoding="utf-8")
    assert brought_in() == before
    (folder / "users_library" / "inner.py").write_text("x = 2  # slower\n", encoding="utf-8")
    after = brought_in()
    assert [name for name in before if before[name] != after[name]] == ["users_library"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import torch\n\ntorch.zeros(2) @ torch.zeros(3)\n", ("raises: RuntimeError: ", "(users_broken.py, line 3)")),
        ("import users_nothing\n", ("raises: ModuleNotFoundError: ", "'users_nothing' (users_broken.py, line 1)")),
        ("x = 1\ndef f(:\n", ("raises: SyntaxError: ", "(users_broken.py, line 2)")),
    ],
)
def test_an_error_of_user_code_has_its_place(folder: Path, text: str, words: tuple[str, str]) -> None:
    """It is the last line of the user's own, not that in torch or in the suite, which only passed it on."""
    (folder / "users_broken.py").write_text(text, encoding="utf-8")
    invalidate_caches()
    with pytest.raises(Unresolved) as error:
        imported("users_broken:f", "layer")
    text = raised(error.value)
    assert text.startswith(words[0])
    assert text.endswith(words[1])
