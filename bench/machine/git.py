"""Git, asked about a folder: nothing is written into its repository, not even its index."""

import os
import shutil
import subprocess
from pathlib import Path

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
