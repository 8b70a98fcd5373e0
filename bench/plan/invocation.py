"""The suite's commands as they are typed in the reader's shell, from the folder in which this process runs."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

COMMAND = "attention-bench"
"""The program that an installed package brings."""

ROOT = Path(__file__).parents[2]
"""The checkout, or the folder of the installed package."""

SUITE = __package__.rpartition(".")[0]
"""The package of the suite, as Python imports it here."""

IS_INSTALLED = SUITE != "bench"
"""Whether the suite is an installed package, `attention_bench`, and no checkout."""

RESULTS = Path("results") if IS_INSTALLED else ROOT / "results"
"""The folder in which facts about this machine are kept: that of the checkout, else one where the command runs."""


def short() -> str:
    """Return the command as the documents write it, before the name of one of its commands: `python -m bench`."""
    return COMMAND if Path(sys.argv[0]).name == COMMAND else f"python -m {SUITE}"


def suite() -> str:
    """Return the command as it was called, before the name of one of its commands."""
    if short() != COMMAND:
        return f"{python()} -m {SUITE}"
    found = shutil.which(COMMAND)
    is_found = found and Path(found).resolve() == Path(sys.argv[0]).resolve()
    return COMMAND if is_found else shlex.quote(os.path.relpath(sys.argv[0]))


def python() -> str:
    """Return the interpreter of this process: `python` if a shell finds it under this name, else its path.

    In a session of nox a shell doesn't find it. In a folder that is not this checkout PYTHONPATH stands before it, so
    that Python finds the suite; folders that the variable has already stay.
    """
    if IS_INSTALLED or Path.cwd() == ROOT:
        return _program()
    others = (Path(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry)
    entries = [os.path.relpath(ROOT), *(str(entry) for entry in others if entry.resolve() != ROOT)]
    return f"PYTHONPATH={shlex.quote(os.pathsep.join(entries))} {_program()}"


def without_options(words: Sequence[str], *options: str) -> list[str]:
    """Return the words of a command without these options and their values."""
    pairs = zip(words, ["", *words], strict=False)
    return [word for word, before in pairs if not {word.partition("=")[0], before} & {*options}]


def _program() -> str:
    found, in_nox = shutil.which("python"), "NOX_CURRENT_SESSION" in os.environ
    if found and not in_nox and Path(found).absolute().parent == Path(sys.executable).parent:
        return "python"
    return shlex.quote(min(os.path.relpath(sys.executable), sys.executable, key=len))
