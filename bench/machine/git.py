"""Git, asked for the commits of the suite and of a user's code: nothing is written, not even an index."""

import importlib.metadata
import os
import shutil
import subprocess
from pathlib import Path

from bench.plan.invocation import COMMAND, IS_INSTALLED, ROOT

BUILT_FROM = "commit.txt"
"""The file in an installed suite with the commit from which it was built, if that was a checkout."""

BUILD = "build/*"
"""The files that an installation leaves, which are none of a user's own."""


def environment() -> dict[str, str]:
    """Return the environment variables without those that name another repository, as they are in a hook of git."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or "CEILING" in name}
    return {**kept, "GIT_OPTIONAL_LOCKS": "0"}


def git(folder: Path, *words: str) -> str:
    """Return the answer of git in a folder, empty if it has none, or if there is no git."""
    if not shutil.which("git"):
        return ""
    command = ["git", *words]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    return "" if done.returncode else done.stdout.strip()


def commit(folder: Path, changes: str, *, new: str = "") -> str:
    """Return the commit of a folder, with `changes` behind it if its files differ; empty if it has none.

    Files that git doesn't have count if their names fit the pattern `new`. `git describe --dirty` would write the index
    anew.
    """
    name = git(folder, "rev-parse", "--verify", "--quiet", "HEAD")[:12]
    differs = name and git(folder, "status", "--porcelain", "--untracked-files=no")
    has_new = (
        name and new and git(folder, "ls-files", "--others", "--exclude-standard", "--", new, f":(exclude){BUILD}")
    )
    return f"{name}{changes}" if differs or has_new else name


def of_suite() -> str:
    """Return the suite's commit, with `+` if the tree differs from it; empty outside a checkout.

    An installed suite has the commit from which it was built, or its version. If the working folder is in another
    repository, that folder's name and commit are appended.
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
    """Return a module of a user's own: its file as seen from here, the commit that has it, and its digest.

    The commit says `with changes` if its tree differs from it, and is empty for a file that git doesn't have.
    """
    folder, is_kept = Path(file).parent, git(Path(file).parent, "ls-files", "--", Path(file).name)
    name = commit(folder, " with changes") if is_kept else ""
    return {"file": os.path.relpath(file), "commit": name, "digest": digest}
