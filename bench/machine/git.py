"""Read the commits of the suite and of user code from git, without writing anything, not even an index."""

import importlib.metadata
import os
import shutil
import subprocess
from pathlib import Path

from bench.plan.invocation import COMMAND, IS_INSTALLED, ROOT

BUILT_FROM = "commit.txt"
"""The file in an installed suite with the commit from which it was built, if it was built from a checkout."""

BUILD = "build/*"
"""The pattern of files that an installation leaves, which aren't the user's."""


def environment() -> dict[str, str]:
    """Return the environment variables without the ones that point to another repository, as in a git hook."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or "CEILING" in name}
    return {**kept, "GIT_OPTIONAL_LOCKS": "0"}


def git(folder: Path, *words: str) -> str:
    """Run git in a folder and return its output; empty if it fails or isn't installed."""
    if not shutil.which("git"):
        return ""
    command = ["git", *words]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    return "" if done.returncode else done.stdout.strip()


def commit(folder: Path, changes: str, *, new: str = "") -> str:
    """Return the commit of a folder, followed by `changes` if files differ from it; empty outside a repository.

    Untracked files count if they match the pattern `new`. `git describe --dirty` isn't used, because it writes the
    index.
    """
    name = git(folder, "rev-parse", "--verify", "--quiet", "HEAD")[:12]
    differs = name and git(folder, "status", "--porcelain", "--untracked-files=no")
    has_new = (
        name and new and git(folder, "ls-files", "--others", "--exclude-standard", "--", new, f":(exclude){BUILD}")
    )
    return f"{name}{changes}" if differs or has_new else name


def of_suite() -> str:
    """Return the suite's commit, followed by `+` if the working tree differs from it; empty outside a checkout.

    For an installed suite, return the commit from which it was built, or its version. If the working folder is in
    another repository, that repository's name and commit are appended.
    """
    here = "" if IS_INSTALLED else _top(Path(__file__).parent)
    by_top = {top: commit(Path(top), "+") for top in (here, _top(Path.cwd())) if top}
    every = [name if top == here else f"{Path(top).name} {name}" for top, name in by_top.items() if name]
    return ", ".join([*([_built_from()] if IS_INSTALLED else []), *every])


def _built_from() -> str:
    built = ROOT / BUILT_FROM
    return built.read_text(encoding="utf-8") if built.exists() else importlib.metadata.version(COMMAND)


def _top(folder: Path) -> str:
    return git(folder, "rev-parse", "--show-toplevel")


def described(file: str, digest: str) -> dict[str, str]:
    """Return the relative path of a user's module, its commit, and its digest.

    The commit is followed by `with changes` if the working tree differs from it, and is empty for an untracked file.
    """
    folder, is_kept = Path(file).parent, git(Path(file).parent, "ls-files", "--", Path(file).name)
    name = commit(folder, " with changes") if is_kept else ""
    return {"file": os.path.relpath(file), "commit": name, "digest": digest}
