"""Functions that run in a forked child, so that what they change in the process ends with it.

They must not compute with torch: its threads don't exist in a fork.
"""

import os
from collections.abc import Callable


def in_child(function: Callable[[], str]) -> str:
    """Return the text that a function returns in a forked child, or the exception that it raises there."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = function()
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    os.waitpid(pid, 0)
    return text
