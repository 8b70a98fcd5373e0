"""The signals that end a program; nothing here is slow to import."""

import signal
from collections.abc import Callable, Mapping
from typing import Any

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
