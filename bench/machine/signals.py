"""The signals that end a program; this module imports fast."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from bench.plan.statuses import INTERRUPTED

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Handlers = Mapping[int, Any]
"""The handler of each signal."""


def on_end(handler: Callable[..., object]) -> Handlers:
    """Make each ending signal call a handler, and return the handlers before.

    A signal that is ignored, as under nohup, stays ignored.
    """
    before: dict[int, Any] = {number: signal.getsignal(number) for number in ENDING}
    heard = {number: done for number, done in before.items() if done != signal.SIG_IGN}
    restore(dict.fromkeys(heard, handler))
    return heard


def restore(handlers: Handlers) -> None:
    """Set the handlers of signals again."""
    for number, handler in handlers.items():
        signal.signal(number, handler)


def interrupt(*_: object) -> NoReturn:
    """Raise KeyboardInterrupt at the first signal; end at once at the second, because workers end with their parent."""
    on_end(lambda *_: os._exit(INTERRUPTED))
    raise KeyboardInterrupt


@contextmanager
def held() -> Iterator[None]:
    """Delay KeyboardInterrupt to the end of the block, because importing a C extension can lose it."""
    heard: list[int] = []
    before = on_end(lambda number, _: heard.append(number))
    try:
        yield
    finally:
        restore(before)
        if heard:
            interrupt()


def forget() -> None:
    """Make Python exit with the program's status after an interrupt that the program caught.

    If the interrupt came inside `exec` of a text, which dataclasses use, CPython takes it for uncaught until the next
    `exec`, and `python -m` would kill itself by SIGINT at exit.
    """
    exec("")  # noqa: S102 - the text is empty
