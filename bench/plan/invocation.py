"""The suite's commands as a user types them in the current folder."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

COMMAND = "attention-bench"
"""The program that the installed package provides."""

ROOT = Path(__file__).parents[2]
"""The checkout, or the folder of the installed package."""

SUITE = __package__.rpartition(".")[0]
"""The name under which Python imports the suite's package here."""

IS_INSTALLED = SUITE != "bench"
"""Whether the suite is the installed package `attention_bench` rather than a checkout."""

RESULTS = Path("results") if IS_INSTALLED else ROOT / "results"
"""The folder for facts about this machine: in the checkout, or in the current folder for an installed package."""


def short() -> str:
    """Return the program, without a command, as the documents write it: `python -m bench`."""
    return COMMAND if Path(sys.argv[0]).name == COMMAND else f"python -m {SUITE}"


def suite() -> str:
    """Return the program, without a command, as it was called."""
    if short() != COMMAND:
        return f"{python()} -m {SUITE}"
    found = shutil.which(COMMAND)
    is_found = found and Path(found).resolve() == Path(sys.argv[0]).resolve()
    return COMMAND if is_found else shlex.quote(os.path.relpath(sys.argv[0]))


def python() -> str:
    """Return the command for this interpreter: `python` if a shell finds it under this name, else its path.

    In a nox session a shell doesn't find it. Outside the checkout the command sets PYTHONPATH so that Python finds the
    suite; the variable's other folders stay.
    """
    if IS_INSTALLED or Path.cwd() == ROOT:
        return _program()
    others = (Path(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry)
    entries = [os.path.relpath(ROOT), *(str(entry) for entry in others if entry.resolve() != ROOT)]
    return f"PYTHONPATH={shlex.quote(os.pathsep.join(entries))} {_program()}"


def without_options(words: Sequence[str], *options: str) -> list[str]:
    """Return a command's words without these options and their values."""
    pairs = zip(words, ["", *words], strict=False)
    return [word for word, before in pairs if not {word.partition("=")[0], before} & {*options}]


def _program() -> str:
    found, in_nox = shutil.which("python"), "NOX_CURRENT_SESSION" in os.environ
    if found and not in_nox and Path(found).absolute().parent == Path(sys.executable).parent:
        return "python"
    return shlex.quote(min(os.path.relpath(sys.executable), sys.executable, key=len))
