"""The suite's commands as they are typed in the reader's shell, from the folder in which this process runs."""

import os
import shlex
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The checkout."""


def python() -> str:
    """Return the interpreter of this process: `python` if a shell finds it under this name, else its path.

    In a session of nox a shell doesn't find it. In a folder that is not this checkout PYTHONPATH stands before it, so
    that Python finds the suite; folders that the variable has already stay.
    """
    if Path.cwd() == ROOT:
        return _program()
    others = (Path(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry)
    entries = [os.path.relpath(ROOT), *(str(entry) for entry in others if entry.resolve() != ROOT)]
    return f"PYTHONPATH={shlex.quote(os.pathsep.join(entries))} {_program()}"


def pytest_bench() -> str:
    """Return the command that measures, without options."""
    return f"{python()} -m pytest {shlex.quote(os.path.relpath(ROOT / 'bench'))}"


def _program() -> str:
    found, in_nox = shutil.which("python"), "NOX_CURRENT_SESSION" in os.environ
    if found and not in_nox and Path(found).absolute().parent == Path(sys.executable).parent:
        return "python"
    return shlex.quote(min(os.path.relpath(sys.executable), sys.executable, key=len))
