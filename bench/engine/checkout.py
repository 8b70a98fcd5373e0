"""Checkouts that a side of a duel imports from: a folder as it is, or a revision of it in a temporary one."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.machine.git import commit as commit_of
from bench.machine.git import environment, git
from bench.plan.errors import WrongRequest

SOURCE = "src"
"""The folder in which many repositories keep their packages."""


@dataclass(frozen=True)
class Checkout:
    """A folder that comes first where a side looks for modules.

    `given` is how it was asked for, `folder` where it lies, and `commit` what git says of it: empty outside of a
    repository, `with changes` behind it if the files differ from it.
    """

    given: str
    folder: Path
    commit: str

    @property
    def paths(self) -> list[str]:
        """The folders that are searched for modules: the one with the sources before the folder itself."""
        folders = [self.folder / SOURCE, self.folder]
        return [str(folder) for folder in folders if folder.is_dir()]

    def place(self, file: str) -> str:
        """Return a file of the checkout as seen from it, empty for a file outside of it."""
        path = Path(file).resolve()
        return str(path.relative_to(self.folder)) if path.is_relative_to(self.folder) else ""


def checked_out(given: str, temporary: Path) -> Checkout:
    """Return the checkout that `PATH` or `PATH@REVISION` names; a revision is written into a new folder.

    That folder has the objects of the repository, in which nothing is written. Raises WrongRequest if there is no
    such folder, repository or revision.
    """
    name, at, revision = given.rpartition("@")
    if Path(given).is_dir() or not at:
        return Checkout(given, _folder(given, given), commit_of(Path(given), " with changes", new="*.py"))
    folder = _folder(name or ".", given)
    if not shutil.which("git"):
        raise WrongRequest(f"--checkout {given} needs git, and there is none")
    top = git(folder, "rev-parse", "--show-toplevel")
    if not top:
        raise WrongRequest(f"--checkout {given}: {folder} is in no git repository, which @{revision} needs")
    commit = git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if not commit:
        raise WrongRequest(
            f"--checkout {given}: {top} has no revision {revision!r}; expected a branch, tag or commit, "
            "which a shallow clone may lack"
        )
    inner = folder.relative_to(Path(top).resolve())
    new = temporary / f"checkout-{len([*temporary.glob('checkout-*')])}"
    _write(folder, new, commit, given)
    if not (new / inner).is_dir():
        raise WrongRequest(f"--checkout {given}: the revision has no folder {inner}")
    return Checkout(given, (new / inner).resolve(), commit[:12])


def _folder(path: str, given: str) -> Path:
    folder = Path(path)
    if not folder.is_dir():
        raise WrongRequest(f"--checkout {given} must be a folder, or FOLDER@REVISION, and there is no folder {path}")
    return folder.resolve()


def _write(folder: Path, new: Path, commit: str, given: str) -> None:
    """Write the files of a commit into a new repository that borrows the objects of another one."""
    objects = git(folder, "rev-parse", "--path-format=absolute", "--git-path", "objects")
    new.mkdir(parents=True)
    git(new, "init", "--quiet")
    (new / ".git" / "objects" / "info" / "alternates").write_text(f"{objects}\n")
    done = subprocess.run(
        ["git", "-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", commit],
        cwd=new, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        last = "".join(done.stderr.splitlines()[-1:])
        raise WrongRequest(f"--checkout {given} can't be written: {last}")
