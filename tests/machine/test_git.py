"""The commits of the suite and of a user's code."""

import contextlib
from pathlib import Path

import pytest

from bench.machine import git as asked
from tests.engine.test_checkout import git


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of one commit that holds the machine module, and takes its place."""
    module = tmp_path / "bench" / "machine" / "git.py"
    module.parent.mkdir(parents=True)
    module.write_text("the first version\n", encoding="utf-8")
    monkeypatch.setattr(asked, "__file__", str(module))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def committed(folder: Path) -> str:
    """Make a repository of a folder's contents, and return the name of its only commit."""
    for command in ("init --quiet", "add .", "commit --quiet --message First"):
        git(folder, *command.split())
    return git(folder, "rev-parse", "HEAD")


def test_commit(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first twelve digits of the checkout's, with a plus once a file differs from it.

    It is empty outside a checkout, and on a machine without git.
    """
    assert asked.of_suite() == ""
    head = committed(checkout)
    git(checkout, "tag", "--annotate", "v1", "--message", "One")
    assert asked.of_suite() == head[:12]
    Path(asked.__file__).write_text("the second version\n", encoding="utf-8")
    assert asked.of_suite() == head[:12] + "+"
    monkeypatch.setenv("PATH", str(checkout))
    assert asked.of_suite() == ""


def test_a_module_is_described_by_its_file_and_the_commit_that_has_it(checkout: Path) -> None:
    """The file is seen from here. A tree with changes says so; a file that git doesn't have gets no commit."""
    kernel = checkout / "kernels" / "mykernel.py"
    kernel.parent.mkdir()
    kernel.write_text("x = 1\n", encoding="utf-8")
    head = committed(checkout)[:12]
    described = {"file": "kernels/mykernel.py", "digest": "0f"}
    assert asked.described(str(kernel), "0f") == {**described, "commit": head}
    kernel.write_text("x = 2\n", encoding="utf-8")
    assert asked.described(str(kernel), "0f") == {**described, "commit": f"{head} with changes"}
    git(checkout, "rm", "--quiet", "--cached", "kernels/mykernel.py")
    assert asked.described(str(kernel), "0f") == {**described, "commit": ""}


def test_the_commit_of_a_users_repository(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The repository's commit follows the suite's, with its folder's name: two commits of a kernel are told apart."""
    users = tmp_path_factory.mktemp("mykernel")
    (users / "inner").mkdir()
    (users / "mykernel.py").touch()
    own, theirs = committed(checkout)[:12], committed(users)[:12]
    with contextlib.chdir(users / "inner"):
        assert asked.of_suite() == f"{own}, {users.name} {theirs}"
