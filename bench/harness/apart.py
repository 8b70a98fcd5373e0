"""Work in a process of its own: whatever ends that one, such as an abort in a library of charts, this one goes on."""

import faulthandler
import json
import os
import select
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn

from bench.plan.errors import WrongRequest

Work = Callable[[], Iterable[Path]]
"""What writes files and returns them."""

LONGEST_S = 300.0
"""A copy of a process with threads may wait for one that it lacks, for ever. The pages of 10,000 points take less."""


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
            has_ended, _, _ = select.select([file], [], [], LONGEST_S)
            if not has_ended:
                os.kill(self._pid, signal.SIGKILL)
            said = file.read()
        _, status = os.waitpid(self._pid, 0)
        if not has_ended:
            return [], f"its process took more than {LONGEST_S:g} s"
        if said:
            files, why = json.loads(said)
            return [*map(Path, files)], why
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
            file.write(json.dumps(done(work)).encode())
    finally:
        os._exit(1)  # the reply says how it ended


def done(work: Work) -> tuple[list[str], str]:
    """Do a work here, and return its files, and why there are no more of them, empty if there are all."""
    files: list[str] = []
    try:
        files += map(str, work())
    except WrongRequest as error:
        return files, str(error)
    except Exception as error:  # whatever a library of charts raises
        return files, ": ".join(filter(None, (type(error).__name__, _reason(str(error)))))
    return files, ""


def _reason(message: str) -> str:
    """Return the first line of a message, and the next ones as long as each ends with a colon."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    number = next((at for at, line in enumerate(lines) if not line.endswith(":")), len(lines) - 1)
    return " ".join(lines[: number + 1])
