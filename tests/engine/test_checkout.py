"""Checkouts: a folder as it is or a revision of it, and a user's repository in which nothing changes."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from bench.engine.checkout import checked_out
from bench.engine.duel import grounds
from bench.engine.pool import PREFIX
from bench.plan.case import AFTER, BEFORE
from bench.plan.errors import WrongRequest
from bench.plan.sides import Side
from tests.refusals import refusal

MINE = Path("inner") / "mine.py"


def git(folder: Path, *words: str) -> str:
    """Return the output of git in a folder, regardless of the user's settings."""
    who = {f"GIT_{role}_{what}": "me" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    nowhere = dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull)
    env = {**os.environ, **who, **nowhere}
    return subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository: one commit with a tag, a second one on the branch main, and changes of its files."""
    folder = tmp_path_factory.mktemp("repositories") / "mine"
    (folder / MINE).parent.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for number, tag in ((1, "first"), (2, "feature/second")):
        (folder / MINE).write_text(f"value = {number}\n")
        (folder / "same.py").touch()
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", tag)
        git(folder, *(("tag", tag) if number == 1 else ("branch", tag)))
    (folder / MINE).write_text("value = 3\n")
    return folder


def commit(folder: Path, revision: str) -> str:
    """Return the first twelve digits of a commit."""
    return git(folder, "rev-parse", "--short=12", revision).strip()


def state(folder: Path) -> dict[Path, tuple[int, bytes]]:
    """Return every file of a folder with its time and content."""
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


def test_a_folder_is_taken_as_it_is(repository: Path, tmp_path: Path) -> None:
    """It keeps its changes, including new modules, and the commit mentions them. Outside of a repository there is none.

    Nothing is written there.
    """
    os.utime(repository / "same.py")  # git would note in its index that nothing changed
    before = state(repository)
    here = checked_out(str(repository), tmp_path)
    assert state(repository) == before
    assert (here.folder, here.commit) == (repository, f"{commit(repository, 'HEAD')} with changes")
    assert [*tmp_path.iterdir()] == []
    clean = tmp_path / "clean@2"
    git(tmp_path, "clone", "--quiet", str(repository), str(clean))
    assert checked_out(str(clean), tmp_path).commit == commit(repository, "HEAD")
    (clean / "notes.txt").touch()
    (clean / "build").mkdir()
    (clean / "build" / "mine.py").touch()
    assert checked_out(str(clean), tmp_path).commit == commit(repository, "HEAD")
    (clean / "new.py").touch()
    assert checked_out(str(clean), tmp_path).commit == f"{commit(repository, 'HEAD')} with changes"
    (plain := tmp_path / "plain" / "src").mkdir(parents=True)
    outside = checked_out(str(plain.parent), tmp_path)
    assert (outside.commit, outside.paths) == ("", [str(plain), str(plain.parent)])


@pytest.mark.parametrize(("revision", "value"), [("main", 2), ("first", 1), ("feature/second", 2), ("HEAD~1", 1)])
def test_a_revision_is_written_into_a_folder_of_its_own(
    revision: str, value: int, repository: Path, tmp_path: Path
) -> None:
    """The files come from the branch, tag or commit, and nothing in the repository changes."""
    before, trees = state(repository), git(repository, "worktree", "list")
    two = [checked_out(f"{repository}@{each}", tmp_path) for each in (revision, commit(repository, revision))]
    assert len({each.folder for each in two}) == 2
    for each in two:
        assert (each.folder / MINE).read_text() == f"value = {value}\n"
        assert each.folder.is_relative_to(tmp_path)
        assert each.commit == commit(repository, revision)
    assert git(repository, "worktree", "list") == trees
    assert state(repository) == before


def test_a_folder_inside_a_repository_is_that_folder_of_the_revision(repository: Path, tmp_path: Path) -> None:
    """A folder may be named without a path, from where the command runs."""
    checkout = checked_out(f"{repository / 'inner'}@first", tmp_path)
    assert (checkout.folder / "mine.py").read_text() == "value = 1\n"
    assert checkout.place(str(checkout.folder / "mine.py")) == "mine.py"
    assert checkout.place(str(repository / "inner" / "mine.py")) == ""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(repository / "inner")
        assert (checked_out("@first", tmp_path).folder / "mine.py").read_text() == "value = 1\n"


def test_what_is_no_checkout_is_refused(repository: Path, tmp_path: Path) -> None:
    """A revision or a folder that isn't there, a folder without a repository, and one that the revision lacks."""
    (repository / "new").mkdir(exist_ok=True)
    (plain := tmp_path / "plain").mkdir()
    for given, words in (
        (f"{repository}@nosuch", "has no revision 'nosuch'; expected a branch, tag or commit"),
        (f"{repository / 'new'}@first", "can't be written"),
        (f"{plain}@main", "must be in a git repository"),
        (str(tmp_path / "nowhere"), f"there is no folder {tmp_path / 'nowhere'}"),
    ):
        said = refusal(checked_out, given, tmp_path)
        assert given in said
        assert words in said


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("revision", ["first", "nosuch"])
def test_nothing_is_left_of_a_checkout(revision: str, repository: Path, temporary: Path) -> None:
    """Neither after Ctrl-C, nor if the second one can't be made; the files are there until the end."""
    given = (f"{repository}@first", f"{repository}@{revision}")
    before, after = (Side(name, "sdpa", checkout=each) for name, each in zip((BEFORE, AFTER), given, strict=True))

    def use() -> None:
        with grounds((before, after), 1) as (one, other):
            assert one.checkout
            assert one.pool is not other.pool
            assert (one.checkout.folder / MINE).is_file()
            assert [*temporary.glob(f"{PREFIX}*")]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt if revision == "first" else WrongRequest):
        use()
    assert [*temporary.glob(f"{PREFIX}*")] == []
