"""A look at the models of points: where their attention is, what it takes, and which shapes they have."""

import math
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from itertools import product
from typing import Any

from msgspec import convert

from bench.engine.pool import Pool
from bench.engine.worker import Died, unheard
from bench.machine import facts, monotonic
from bench.plan.case import OF_LAYERS, Point
from bench.plan.errors import WrongRequest, all_of
from bench.plan.grid import DEFAULTS, expand
from bench.plan.names import libraries
from bench.plan.statuses import BAD
from bench.sampling.requests import Describe, Look, Looked, Shape
from bench.store.looks import Seen

WRONG = ("error", "unsupported")
"""The ends of a look at a model that can't be used at all; the others come from the machine."""

SHAPE_S = 300.0
"""The longest time without a sign of life of a module that is made to see its shapes."""


class NotSeen(WrongRequest):
    """A model could not be looked at: there is no memory for it, or its process ended."""

    status = BAD


def looking(layers: Sequence[str]) -> closing[Pool]:
    """Return a context with the processes that look at layers."""
    return closing(Pool(1, (), libraries=libraries(layers)))  # one server: shares hardly depend on the code layout


def look(
    pool: Pool,
    points: Sequence[Point],
    settings: Sequence[str],
    processes: int,
    timeout_s: float,
    heard: Any = unheard,
    most_s: float = math.inf,
) -> dict[Point, list[Seen]]:
    """Return what each of some processes sees at the models of the points; the first also tries the settings.

    `heard(stage)` is called for every event. One process looks at each point; further ones do while they are expected
    to end within `most_s` seconds. Raises WrongRequest if a model can't be made, called or compared, or has no softmax;
    NotSeen if there is no memory for it or its process ends.
    """
    looks: dict[Point, list[Seen]] = {point: [] for point in points}
    begin_s, took_s = monotonic.now_s(), 0.0
    pool.check(points)
    for number, point in product(range(processes), points):
        look_s = monotonic.now_s() - begin_s
        if number and look_s + took_s > most_s:
            break
        tried = [*settings] if number == 0 else []
        looks[point].append(convert(asked(pool, Look(point, number, tried), number, timeout_s, heard), Seen))
        took_s = max(took_s, monotonic.now_s() - begin_s - look_s)
    return looks


def shown(pool: Pool, layers: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return, for modules whose names say their input, the tokens, widths and heads that a call shows.

    If a name gives a batch, that is among them. Raises WrongRequest, with a line for each module that can't be made or
    called.
    """
    usual, unknown = {**DEFAULTS, "threads": facts.default_threads()}, dict.fromkeys(OF_LAYERS, 1)
    points = [point for layer in layers for point in expand({"layer": layer}, usual, unknown)]  # no size of them counts
    return dict(zip(layers, all_of(*(partial(asked, pool, Shape(at), 0, SHAPE_S) for at in points)), strict=True))


def asked(pool: Pool, request: Look | Shape, number: int, timeout_s: float, heard: Any = unheard) -> dict[str, Any]:
    """Return what a worker sees at the module of a point; raises as `look` does."""
    reply = replied(pool, request, number, timeout_s, heard)
    if reply.status in WRONG:
        raise WrongRequest(reply.detail)
    if reply.status != "ok":
        raise NotSeen(f"{request.point.layer} could not be inspected: {reply.status}: {reply.detail}")
    return reply.seen


def replied(
    pool: Pool, request: Look | Shape | Describe, number: int, timeout_s: float, heard: Any = unheard
) -> Looked:
    """Return how a look of a worker at the module of a point ended; `raised` is empty if its process died."""
    try:
        with pool.worker(request.point, number) as worker:
            return worker.ask(request, timeout_s, heard)
    except Died as death:
        return Looked(death.status, death.detail)
