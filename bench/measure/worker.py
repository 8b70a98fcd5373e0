"""The worker process: it imports torch once, then serves requests until its parent closes the pipe."""

import contextlib
import dataclasses
import gc
from typing import Any

import impls
from bench.measure import adapters, compilation, facts, heap, system_memory, visit
from bench.measure.channel import Channel, serve
from bench.measure.seat import Seat
from bench.plan.case import Case, Point
from bench.plan.names import is_own
from bench.sampling.rounds import Sample, StoppingRule
from bench.store.roofline import Roof

_SEAT = Seat()
"""The prepared implementation of this process in a paired A/B run."""


def _check(request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
    """Reply with torch's facts about the machine, and a line for each implementation that can't be imported."""
    mistakes = []
    for name in request["implementations"]:
        try:
            adapters.resolve(name)
        except impls.Unresolved as error:
            mistakes.append(str(error))
    return {"mistakes": mistakes, "facts": facts.torch_facts()}


def _warm(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Use the compiler for the first time if an implementation compiles; errors are left to the cases that have them.

    A user's own module is not imported here, so that an error of its import ends only its own case.
    """
    channel.announce("", "toolchain")
    with contextlib.suppress(Exception):
        if any(impls.compiles(name) for name in request["implementations"] if not is_own(name)):
            for device in request["devices"]:
                compilation.warm_toolchain(device)
    gc.collect()
    gc.freeze()  # collecting garbage then skips what torch's import left, which takes 0.2 s each time
    return {}


def _visit(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    outcomes = visit.make(_visit_request(request), channel.announce)
    heap.give_back()  # other workers measure next and may need the memory
    return dataclasses.asdict(outcomes)


def _prepare(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Prepare one implementation, and keep it for its samples."""
    outcome = _SEAT.prepare(_visit_request(request), channel.announce, request["core"])
    return dataclasses.asdict(outcome)


def _sample(_request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
    """Take one sample; reply with it, or with the outcome if the case has ended."""
    result = _SEAT.sample()
    if isinstance(result, Sample):
        return {"status": "ok", "sample": result._asdict()}
    return dataclasses.asdict(result)


def _finish(_request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
    """End the rounds of the prepared implementation."""
    outcomes = _SEAT.finish()
    heap.give_back()  # other workers measure next and may need the memory
    return dataclasses.asdict(outcomes)


def _visit_request(request: dict[str, Any]) -> visit.Request:
    return visit.Request(
        point=Point(**request["point"]),
        implementations=tuple(request["implementations"]),
        baseline=request["baseline"],
        limits=StoppingRule(**request["limits"]),
        seed=request["seed"],
        thorough=request["thorough"],
        beside=request.get("beside"),
        ceiling=Roof(**request["ceiling"]) if request.get("ceiling") else None,
    )


def _memory(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Reply with the peak memory of one call of a case, as the operating system sees it."""
    channel.announce(request["implementation"], "memory")
    case = Case(Point(**request["point"]), request["implementation"])
    return {"peak_bytes": system_memory.of_case(case)}


if __name__ == "__main__":
    serve(
        {
            "check": _check,
            "warm": _warm,
            "visit": _visit,
            "memory": _memory,
            "prepare": _prepare,
            "sample": _sample,
            "finish": _finish,
        }
    )
