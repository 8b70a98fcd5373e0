"""Work in a process of its own: whatever ends that one, such as an abort in a library of charts, this one goes on."""

import faulthandler
import json
import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn

from bench.plan.errors import WrongRequest

Work = Callable[[], Iterable[Path]]
"""What writes files and returns them."""


class Apart:
    """Work that has begun in a copy of this process, whose output nobody sees; raises OSError if none can be made."""

    def __init__(self, work: Work) -> None:
        self._replies, reply = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _do(work, reply)
        os.close(reply)

    def result(self) -> tuple[list[Path], str]:
        """Wait for the end, and return the files, and why there are no more of them, empty if there are all."""
        with os.fdopen(self._replies, "rb") as file:
            said = file.read()
        _, status = os.waitpid(self._pid, 0)
        if said:
            reply = json.loads(said)
            return [*map(Path, reply["files"])], reply["error"]
        code = os.waitstatus_to_exitcode(status)
        return (
            [],
            f"its process ended by {signal.Signals(-code).name}" if code < 0 else f"its process ended with {code}",
        )


def done_apart(*works: Work) -> list[tuple[list[Path], str]]:
    """Do works side by side, each in a process of its own, and return the `result` of each."""
    begun = [_begun(work) for work in works]
    return [each.result() if isinstance(each, Apart) else ([], each) for each in begun]


def _begun(work: Work) -> Apart | str:
    try:
        return Apart(work)
    except OSError as error:
        return f"no process can be made: {error.strerror}"


def _do(work: Work, reply: int) -> NoReturn:
    """Do the work, send its result, and end without what a program does at its end."""
    try:
        faulthandler.disable()  # it has an output of its own
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        with os.fdopen(reply, "wb") as file:
            file.write(json.dumps(_outcome(work)).encode())
    finally:
        os._exit(1)  # the reply says how it ended


def _outcome(work: Work) -> dict[str, Any]:
    files: list[str] = []
    try:
        files += map(str, work())
    except WrongRequest as error:
        return {"files": files, "error": str(error)}
    except Exception as error:  # whatever a library of charts raises
        first = next(iter(str(error).splitlines()), "")
        return {"files": files, "error": ": ".join(filter(None, (type(error).__name__, first)))}
    return {"files": files, "error": ""}
