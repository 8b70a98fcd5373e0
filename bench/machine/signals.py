"""The signals that end a program; nothing here is slow to import."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from bench.plan.statuses import INTERRUPTED

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Handlers = Mapping[int, Any]
"""What each signal does."""


def on_end(handler: Callable[..., object]) -> Handlers:
    """Let each signal that ends a program call a handler, and return what they did before.

    One that is ignored, as by nohup, stays so.
    """
    before: dict[int, Any] = {number: signal.getsignal(number) for number in ENDING}
    heard = {number: done for number, done in before.items() if done != signal.SIG_IGN}
    restore(dict.fromkeys(heard, handler))
    return heard


def restore(handlers: Handlers) -> None:
    """Let signals do what they did."""
    for number, handler in handlers.items():
        signal.signal(number, handler)


def interrupt(*_: object) -> NoReturn:
    """Raise KeyboardInterrupt at the first signal, and end at once at the second: workers end with their parent."""
    on_end(lambda *_: os._exit(INTERRUPTED))
    raise KeyboardInterrupt


@contextmanager
def held() -> Iterator[None]:
    """Raise KeyboardInterrupt for a signal only when the block has ended: importing a C extension can lose it."""
    heard: list[int] = []
    before = on_end(lambda number, _: heard.append(number))
    try:
        yield
    finally:
        restore(before)
        if heard:
            interrupt()


def forget() -> None:
    """Have Python end with the program's status after an interrupt that the program caught.

    If it came inside `exec` of a text, as a dataclass has it, `python -m` would kill itself by SIGINT at its end: until
    the next `exec` CPython takes the interrupt for one that nobody caught.
    """
    exec("")  # noqa: S102 - the text is empty
