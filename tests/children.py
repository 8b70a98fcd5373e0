"""Functions that run in a forked child, so that their changes to the process end with it.

They must not compute with torch: its threads don't exist in a fork.
"""

import os
import signal
from collections.abc import Callable


def in_child(function: Callable[[], str]) -> str:
    """Return the text that a function returns in a forked child, or how it failed there: its exception, or a signal."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = function()
        except BaseException as error:
            text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return f"ended by {signal.Signals(-status).name}" if status < 0 else text
