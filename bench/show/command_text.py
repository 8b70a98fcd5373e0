"""Commands in messages, as the reader can type them."""

import os
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def python() -> str:
    """Return the interpreter: in a session of nox the path of its own one, which the reader's shell doesn't find.

    In a folder that is not this checkout the variable by which Python finds the suite stands before it.
    """
    where = "" if Path.cwd() == ROOT else f"PYTHONPATH={shlex.quote(os.path.relpath(ROOT))} "
    in_nox = "NOX_CURRENT_SESSION" in os.environ
    return where + (shlex.quote(os.path.relpath(sys.executable)) if in_nox else "python")
