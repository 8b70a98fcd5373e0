"""Replies with their types: an implementation may have written one in its process."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct

from bench.engine.member import Ended
from bench.sampling.timed_inputs import TURNS
from bench.store.record import SESSION, Status
from bench.store.typed import Amount, Count, Positive, Seconds, convert

REUSES = "returns the same memory for every output: a caller who keeps two of them has one"

LONG_IMPORT_S = 2.0
"""An import that takes longer is worth a line: each process pays it."""

Reply = TypeVar("Reply", bound=Struct)


class Outcome(Struct):
    """How a request ended, and what was measured."""

    status: Status
    detail: str
    metrics: dict[str, Any]
    cpu_s: Amount

    def __post_init__(self) -> None:
        if taken := {*SESSION, "samples"} & self.metrics.keys():
            raise ValueError(f"metrics must not hold {', '.join(sorted(taken))}")


class Prepared(Struct):
    """What is known of an implementation that is prepared; `remark` is what it says about its precision."""

    call_s: Seconds
    remark: str = ""
    reuses: bool = False
    import_s: Amount = 0.0
    free_bytes: Count | None = None

    @property
    def doubts(self) -> str:
        """What a user of the implementation should know, empty if there is nothing."""
        words = [REUSES] if self.reuses else []
        if self.import_s > LONG_IMPORT_S:
            words.append(f"its import takes {self.import_s:.1f} s in every process")
        return "; ".join(words)


class Taken(Struct):
    """The values of a sample."""

    timings_s: list[Seconds]
    switches: Count
    faults: Count


class Sampled(Struct):
    """A sample, the inputs whose outputs are held, and the seconds of the process."""

    sample: Taken
    held: list[Annotated[int, Meta(ge=0, lt=TURNS)]]
    used_s: Amount
    idle_s: Amount
    cpu_s: Amount


def read(reply: Mapping[str, Any], kind: type[Reply]) -> Reply:
    """Return a reply with its type; raises Ended for another one."""
    return _valid(reply, kind, "")  # type: ignore[no-any-return]


def sampled(reply: Mapping[str, Any], timings: int) -> Sampled:
    """Return a sample of so many timings; raises Ended for a reply that is none."""
    taken = read(reply, Sampled)
    for name, values in (("held", taken.held), ("sample.timings_s", taken.sample.timings_s)):
        if len(values) != timings:
            raise _invalid(f"{name} must have {timings} values, got {len(values)}")
    return taken


def calls_per_timing(metrics: Mapping[str, Any]) -> int:
    """Return the number of calls in a timing; raises Ended if the metrics have none."""
    return int(_valid(metrics.get("calls_per_timing"), Positive, "calls_per_timing"))


def _valid(value: Any, kind: Any, name: str) -> Any:
    try:
        return convert(value, kind, name)
    except ValueError as error:
        raise _invalid(error) from None


def _invalid(reason: object) -> Ended:
    return Ended("crashed", f"sent a reply that is not valid: {reason}")
