"""Checks of replies: an implementation may have written one in its process."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from bench.engine.member import Ended
from bench.sampling.timed_inputs import TURNS
from bench.store.record import MOST, SESSION, STATUSES

REUSES = "returns the same memory for every output: a caller who keeps two of them has one"

LONG_IMPORT_S = 2.0
"""An import that takes longer is worth a line: each process pays it."""


def check_outcome(reply: Mapping[str, Any]) -> None:
    """Raise Ended for a reply that is no outcome."""
    kinds: dict[str, Callable[[Any], bool]] = {
        "status": _is_status,
        "detail": lambda detail: isinstance(detail, str),
        "metrics": lambda metrics: isinstance(metrics, dict) and not {*SESSION, "samples"} & metrics.keys(),
        "cpu_s": _is_amount,
    }
    _check(reply, kinds)


def check_sample(reply: Mapping[str, Any], timings: int) -> None:
    """Raise Ended for a reply that holds no sample of so many timings."""
    is_sample = partial(_is_sample, timings=timings)
    _check(reply, {"held": partial(_are_places, timings=timings)})
    _check(reply, {"sample": is_sample, "used_s": _is_amount, "idle_s": _is_amount, "cpu_s": _is_amount})


def calls_per_timing(metrics: Mapping[str, Any]) -> int:
    """Return the number of calls in a timing; raises Ended if the metrics have none."""
    _check(metrics, {"calls_per_timing": lambda calls: is_count(calls) and calls > 0})
    return int(metrics["calls_per_timing"])


def call_s(reply: Mapping[str, Any]) -> float:
    """Return the seconds of a call; raises Ended if the reply has none."""
    _check(reply, {"call_s": lambda seconds: _is_amount(seconds) and seconds > 0})
    return float(reply["call_s"])


def remark(reply: Mapping[str, Any]) -> str:
    """Return what an implementation says about its precision, empty if the reply has no such text."""
    value = reply.get("remark")
    return value if isinstance(value, str) else ""


def doubts(reply: Mapping[str, Any]) -> str:
    """Return what a user should know of an implementation that is prepared, empty if there is nothing."""
    words = [REUSES] if reply.get("reuses") is True else []
    import_s: Any = reply.get("import_s")
    if _is_amount(import_s) and import_s > LONG_IMPORT_S:
        words.append(f"its import takes {import_s:.1f} s in every process")
    return "; ".join(words)


def free_bytes(reply: Mapping[str, Any]) -> int | None:
    """Return the free memory of a GPU, None if the reply has none."""
    value = reply.get("free_bytes")
    return value if is_count(value) else None


def _check(reply: Mapping[str, Any], kinds: Mapping[str, Callable[[Any], bool]]) -> None:
    wrong = [name for name, is_valid in kinds.items() if not is_valid(reply.get(name))]
    if wrong:
        raise Ended("crashed", f"sent a reply without a valid {', '.join(wrong)}")


def _is_status(value: Any) -> bool:
    return isinstance(value, str) and value in STATUSES


def is_count(value: Any) -> bool:
    """Return whether a value is a whole number that a table can hold."""
    return type(value) is int and 0 <= value <= MOST[int]


def _is_amount(value: Any) -> bool:
    return is_count(value) or (type(value) is float and 0 <= value <= MOST[float])


def _are_places(value: Any, timings: int) -> bool:
    return isinstance(value, list) and len(value) == timings and all(is_count(each) and each < TURNS for each in value)


def _is_sample(value: Any, timings: int) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("timings_s"), list):
        return False
    are_times = all(_is_amount(timing) and timing > 0 for timing in value["timings_s"])
    return (
        are_times
        and len(value["timings_s"]) == timings
        and is_count(value.get("switches"))
        and is_count(value.get("faults"))
    )
