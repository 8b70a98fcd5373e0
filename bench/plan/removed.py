"""What earlier versions had, and what takes its place."""

import argparse
from collections.abc import Sequence
from typing import Any

REMOVED = {
    "compare --rerun": "a duel measures both sides in turn, such as duel sdpa --python OLD --python NEW",
    "history": "compare two runs at a time: compare BASE NEW",
    "selfcheck": "compare estimates how much two runs differ from its own rows; a duel measures both sides in one run",
    "profile --diff": "profile prints the operators of each case, and with --report the page has all of a run",
    "run --allocator retained-huge": "run --allocator retained asks for huge pages wherever the system has them",
    "run --machine-name": "merge calls each machine by its processor",
    "implementation jax": "use openvino, onnxruntime, aot_eager, aot_sdpa, or an impls.Runtime of your own",
}
"""A command, one with its option or a value of it, or an `implementation`, and what takes its place.

The options of `run` are those of `pytest bench` too.
"""


def gone(*words: str) -> str:
    """Return that what these words name is gone, and what takes its place; empty if it isn't gone."""
    name = " ".join(words)
    return f"{name} is gone: {REMOVED[name]}" if name in REMOVED else ""


def gone_of_command(words: Sequence[str]) -> str:
    """Return what is gone of the words of a command line, empty if nothing is."""
    command, *given = (part for word in words or [""] for part in word.split("=", 1))
    return next((gone(name) for name in REMOVED if _is_in(name.split(), command, given)), "")


def _is_in(name: Sequence[str], command: str, given: Sequence[str]) -> bool:
    return name[0] == command and {*name[1:]} <= {*given}


class Gone(argparse.Action):
    """An option of `run` that is gone: the parser ends with what takes its place."""

    def __call__(self, parser: argparse.ArgumentParser, _space: Any, _values: Any, option: str | None = None) -> None:
        """End with one line."""
        parser.error(gone("run", str(option)))


def options_of_run() -> list[str]:
    """Return the options of `run` that are gone, whatever their value is."""
    return [name.removeprefix("run ") for name in REMOVED if name.startswith("run --") and name.count(" ") == 1]
