"""Commands in messages, as the reader can type them."""

import os
import shlex
import sys


def python() -> str:
    """Return the interpreter: in a session of nox the path of its own one, which the reader's shell doesn't find."""
    in_nox = "NOX_CURRENT_SESSION" in os.environ
    return shlex.quote(os.path.relpath(sys.executable)) if in_nox else "python"
