"""The worker process: imports torch once, then answers requests for as long as its parent wants."""

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
from bench.sampling.rounds import Limits, Reading
from bench.store.roofline import Roof

_SEAT = Seat()
"""This process's part in a duel with another."""


def _check(request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
    """Say what torch knows of the machine, and which of the implementations that were named can't be imported."""
    objections = []
    for name in request["implementations"]:
        try:
            adapters.resolve(name)
        except impls.Unresolved as error:
            objections.append(str(error))
    return {"objections": objections, "facts": facts.torch_facts()}


def _warm(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Use the compiler for the first time, if an implementation will; a trouble is told by the case that has it.

    A user's own module is not imported here: what its import does is the trouble of its case alone.
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
    made = visit.make(_asked(request), channel.announce)
    heap.give_back()  # to other workers, which take their turn
    return dataclasses.asdict(made)


def _prepare(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Prepare one implementation, and hold it ready for its turns."""
    outcome = _SEAT.prepare(_asked(request), channel.announce, request["core"])
    return dataclasses.asdict(outcome)


def _slot(_request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
    """Take one turn; the answer is its reading, or how the case has ended."""
    taken = _SEAT.slot()
    if isinstance(taken, Reading):
        return {"status": "ok", "reading": taken._asdict()}
    return dataclasses.asdict(taken)


def _finish(_request: dict[str, Any], _channel: Channel) -> dict[str, Any]:
    """End the turns of the implementation that was prepared."""
    made = _SEAT.finish()
    heap.give_back()  # to other workers, which take their turn
    return dataclasses.asdict(made)


def _asked(request: dict[str, Any]) -> visit.Request:
    return visit.Request(
        point=Point(**request["point"]),
        implementations=tuple(request["implementations"]),
        baseline=request["baseline"],
        limits=Limits(**request["limits"]),
        seed=request["seed"],
        thorough=request["thorough"],
        beside=request.get("beside"),
        ceiling=Roof(**request["ceiling"]) if request.get("ceiling") else None,
    )


def _memory(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Say what peak the operating system sees in a call of one case."""
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
            "slot": _slot,
            "finish": _finish,
        }
    )
