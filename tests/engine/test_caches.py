"""The compiler's caches are those of one case each, and what another process writes into them is undone."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.engine.caches import WARM, Caches

KERNEL = "fx/kernel.so"


def _write(folder: Path, content: bytes, file: str = KERNEL) -> None:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_bytes(content)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def caches(tmp_path: Path) -> Caches:
    """Return caches whose servers have compiled one kernel."""
    caches = Caches(tmp_path)
    _write(caches.path(WARM), b"warm")
    caches.take(WARM)
    return caches


def test_a_new_cache_begins_as_a_copy_of_that_of_servers(caches: Caches) -> None:
    """Each has a folder of its own."""
    caches.put_back("case")
    assert _files(caches.path("case")) == {KERNEL: b"warm"}
    assert caches.path("case") != caches.path(WARM)


def test_a_case_finds_what_it_has_compiled(caches: Caches) -> None:
    """It is kept in the engine's memory, and its folder is empty meanwhile."""
    caches.put_back("case")
    _write(caches.path("case"), b"its own", "fx/own.so")
    caches.take_away("case")
    assert not _files(caches.path("case"))
    caches.put_back("case")
    assert _files(caches.path("case")) == {KERNEL: b"warm", "fx/own.so": b"its own"}


def _zero(path: Path) -> None:
    path.write_bytes(bytes(len(path.read_bytes())))


def _remove(path: Path) -> None:
    path.unlink()


def _put_a_folder_there(path: Path) -> None:
    path.unlink()
    (path / "inside").mkdir(parents=True)


def _put_a_link_there(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"another kernel")
    path.unlink()
    path.symlink_to(other)


@pytest.mark.parametrize("harm", [_zero, _remove, _put_a_folder_there, _put_a_link_there])
def test_what_another_process_changes_is_seen_and_put_back(harm: Callable[[Path], None], caches: Caches) -> None:
    """A kernel of zeros would crash, and another kernel would be wrong, in the row of whom it belongs to."""
    caches.put_back("case")
    assert not caches.is_changed("case")
    harm(caches.path("case") / KERNEL)
    assert caches.is_changed("case")
    caches.put_back("case")
    assert not caches.is_changed("case")
    assert _files(caches.path("case")) == {KERNEL: b"warm"}


def test_a_file_that_is_written_again_with_the_same_content_is_no_change(caches: Caches) -> None:
    """The compiler does so."""
    caches.put_back("case")
    _write(caches.path("case"), b"warm")
    assert not caches.is_changed("case")


def test_what_is_changed_in_one_cache_is_in_no_other(caches: Caches) -> None:
    """That is why each case has one."""
    caches.put_back("case")
    caches.put_back("other")
    _zero(caches.path("case") / KERNEL)
    assert _files(caches.path("other")) == {KERNEL: b"warm"}
    assert not caches.is_changed("other")
