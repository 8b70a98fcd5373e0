"""Checks of replies: an implementation may have written one in its process."""

from collections.abc import Callable, Mapping
from typing import Any

from bench.engine.member import Ended
from bench.store.record import STATUSES


def check_outcome(reply: Mapping[str, Any]) -> None:
    """Raise Ended for a reply that is no outcome."""
    kinds: dict[str, Callable[[Any], bool]] = {
        "status": _is_status,
        "detail": lambda detail: isinstance(detail, str),
        "metrics": lambda metrics: isinstance(metrics, dict),
        "busy_s": _is_amount,
        "cpu_s": _is_amount,
    }
    _check(reply, kinds)


def check_sample(reply: Mapping[str, Any]) -> None:
    """Raise Ended for a reply that holds no sample."""
    _check(reply, {"sample": _is_sample, "used_s": _is_amount, "idle_s": _is_amount, "cpu_s": _is_amount})


def check_pace(metrics: Mapping[str, Any]) -> None:
    """Raise Ended for metrics without the number of calls in a timing."""
    _check(metrics, {"calls_per_timing": lambda calls: _is_count(calls) and calls > 0})


def _check(reply: Mapping[str, Any], kinds: Mapping[str, Callable[[Any], bool]]) -> None:
    wrong = [name for name, is_valid in kinds.items() if not is_valid(reply.get(name))]
    if wrong:
        raise Ended("crashed", f"sent a reply without a valid {', '.join(wrong)}")


def _is_status(value: Any) -> bool:
    return isinstance(value, str) and value in STATUSES


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < float("inf")


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_sample(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("timings_s"), list) or not value["timings_s"]:
        return False
    timings = all(_is_amount(timing) and timing > 0 for timing in value["timings_s"])
    return timings and _is_count(value.get("switches")) and _is_count(value.get("faults"))
