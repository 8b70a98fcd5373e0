"""Checkouts that a side of a duel imports from: a folder as it is, or a revision of it in a temporary one."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

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
        return Checkout(given, _folder(given, given), _commit(Path(given)))
    folder = _folder(name or ".", given)
    top = _git(folder, "rev-parse", "--show-toplevel")
    if not top:
        raise WrongRequest(f"--checkout {given}: {folder} is in no git repository, which @{revision} needs")
    commit = _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if not commit:
        raise WrongRequest(f"--checkout {given}: {top} has no revision {revision!r}; expected a branch, tag or commit")
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


def _commit(folder: Path) -> str:
    """Return the commit of a folder, empty without one or without git; `git describe` would write the index anew."""
    commit = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD") if shutil.which("git") else ""
    has_changes = commit and _git(folder, "status", "--porcelain", "--untracked-files=no")
    return f"{commit[:12]}{' with changes' if has_changes else ''}"


def _write(folder: Path, new: Path, commit: str, given: str) -> None:
    """Write the files of a commit into a new repository that borrows the objects of another one."""
    objects = _git(folder, "rev-parse", "--path-format=absolute", "--git-path", "objects")
    new.mkdir(parents=True)
    _git(new, "init", "--quiet")
    (new / ".git" / "objects" / "info" / "alternates").write_text(f"{objects}\n")
    done = subprocess.run(
        ["git", "-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", commit],
        cwd=new, env=_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        last = "".join(done.stderr.splitlines()[-1:])
        raise WrongRequest(f"--checkout {given} can't be written: {last}")


def _git(folder: Path, *words: str) -> str:
    """Return the answer of git in a folder, empty if it has none."""
    command = ["git", *words]
    try:
        done = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, text=True, check=False)
    except OSError as error:
        raise WrongRequest(f"git can't be run: {error.strerror}") from None
    return "" if done.returncode else done.stdout.strip()


def _environment() -> dict[str, str]:
    """Return the environment variables without those that name another repository, as in a hook of git.

    Git then writes nothing that it doesn't need to.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**inherited, "GIT_OPTIONAL_LOCKS": "0"}
