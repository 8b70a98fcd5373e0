"""A look at the models of points: the place, time and shapes of their attention."""

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
"""The statuses of a look at an unusable model; other failures come from the machine."""

SHAPE_S = 300.0
"""The longest time without a sign of life while a module is made for its shapes."""


class NotSeen(WrongRequest):
    """A model could not be looked at, because memory was short or its process ended."""

    status = BAD


def looking(layers: Sequence[str]) -> closing[Pool]:
    """Return a context manager with the processes that look at layers."""
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
    """Return the report of each process on the models of the points; the first process also tries the settings.

    `heard(stage)` is called for every event. One process looks at each point; further ones do while they are expected
    to end within `most_s` seconds. Raises WrongRequest if a model can't be made, called or compared, or has no softmax;
    NotSeen if memory is short or its process ends.
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
    """Return the tokens, widths and heads of modules whose names have an input, and the batch if it is given.

    A call of the module shows them. Raises WrongRequest, with a line for each module that can't be made or called.
    """
    usual, unknown = {**DEFAULTS, "threads": facts.default_threads()}, dict.fromkeys(OF_LAYERS, 1)
    points = [point for layer in layers for point in expand({"layer": layer}, usual, unknown)]  # sizes don't matter
    return dict(zip(layers, all_of(*(partial(asked, pool, Shape(at), 0, SHAPE_S) for at in points)), strict=True))


def asked(pool: Pool, request: Look | Shape, number: int, timeout_s: float, heard: Any = unheard) -> dict[str, Any]:
    """Return a worker's report on the module of a point; raises like `look`."""
    reply = replied(pool, request, number, timeout_s, heard)
    if reply.status in WRONG:
        raise WrongRequest(reply.detail)
    if reply.status != "ok":
        raise NotSeen(f"{request.point.layer} could not be inspected: {reply.status}: {reply.detail}")
    return reply.seen


def replied(
    pool: Pool, request: Look | Shape | Describe, number: int, timeout_s: float, heard: Any = unheard
) -> Looked:
    """Return the result of a worker's look at the module of a point; `raised` is empty if its process died."""
    try:
        with pool.worker(request.point, number) as worker:
            return worker.ask(request, timeout_s, heard)
    except Died as death:
        return Looked(death.status, death.detail)
