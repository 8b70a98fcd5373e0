"""Checkouts that a side of a duel imports from: a folder as it is, or one of its revisions in a temporary folder."""

import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from bench.machine.git import commit as commit_of
from bench.machine.git import environment, git
from bench.plan.errors import WrongRequest

SOURCE = "src"
"""The folder in which many repositories have their packages."""


@dataclass(frozen=True)
class Checkout:
    """A folder that comes first where a side looks for modules.

    `given` is the user's text, `folder` its path, and `commit` its commit: empty outside of a repository, followed by
    `with changes` if files differ from it.
    """

    given: str
    folder: Path
    commit: str

    @property
    def paths(self) -> list[str]:
        """The folders that are searched for modules: the source folder, then the folder itself."""
        folders = [self.folder / SOURCE, self.folder]
        return [str(folder) for folder in folders if folder.is_dir()]

    def place(self, file: str) -> str:
        """Return a file's path relative to the checkout; empty for a file outside of it."""
        path = Path(file).resolve()
        return str(path.relative_to(self.folder)) if path.is_relative_to(self.folder) else ""


def checked_out(given: str, temporary: Path) -> Checkout:
    """Return the checkout that `PATH` or `PATH@REVISION` names; a revision is written into a new folder.

    Raises WrongRequest for a missing folder, repository or revision.
    """
    name, at, revision = given.rpartition("@")
    if Path(given).is_dir() or not at:
        return Checkout(given, _folder(given, given), commit_of(Path(given), " with changes", new="*.py"))
    folder = _folder(name or ".", given)
    if not shutil.which("git"):
        raise WrongRequest(f"--checkout {given} needs git, which is not installed")
    top = git(folder, "rev-parse", "--show-toplevel")
    if not top:
        raise WrongRequest(f"--checkout {given}: {folder} must be in a git repository to have @{revision}")
    commit = git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if not commit:
        raise WrongRequest(
            f"--checkout {given}: {top} has no revision {revision!r}; expected a branch, tag or commit "
            "(a shallow clone may lack it)"
        )
    new = temporary / f"checkout-{len([*temporary.glob('checkout-*')])}"
    archive = new.with_suffix(".tar")
    done = subprocess.run(  # only the files of this folder; the repository stays unchanged
        ["git", "archive", f"--output={archive}", commit],
        cwd=folder, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise WrongRequest(f"--checkout {given} can't be written: {''.join(done.stderr.splitlines()[-1:])}")
    with tarfile.open(archive) as files:
        files.extractall(new, filter="data")
    return Checkout(given, new.resolve(), commit[:12])


def _folder(path: str, given: str) -> Path:
    folder = Path(path)
    if not folder.is_dir():
        raise WrongRequest(f"--checkout {given} must be a folder, or FOLDER@REVISION, but there is no folder {path}")
    return folder.resolve()
