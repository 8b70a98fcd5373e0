"""A look at the models of points: where their attention is, what it takes, and which shapes they have."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import product
from typing import Any

from bench.engine.pool import Pool
from bench.engine.worker import Died, unheard
from bench.machine import monotonic
from bench.plan import layers
from bench.plan.case import COLUMNS, Point
from bench.plan.errors import WrongRequest, refuse
from bench.plan.names import check_layers, is_module, libraries
from bench.sampling.requests import Describe, Look, Looked, Shape
from bench.store.saved_run import Seen

WRONG = ("error", "unsupported")
"""The ends of a look at a model that can't be used at all; the others come from the machine."""

SHAPE_S = 300.0
"""The longest time without a sign of life of a module that is made to see its shapes."""


class NotSeen(Exception):  # noqa: N818 - an outcome that becomes a line
    """A model could not be looked at; the message says why."""


def look(
    points: Sequence[Point],
    settings: Sequence[str],
    processes: int,
    timeout_s: float,
    heard: Any = unheard,
    most_s: float = math.inf,
) -> dict[Point, list[Seen]]:
    """Return what each of some processes sees at the models of the points; the first also tries the settings.

    The points have the columns that their modules show. `heard(stage)` is called for every event. One process looks at
    each point; further ones do while they are expected to end within `most_s` seconds. Raises WrongRequest if a model
    can't be made, called or compared, or has no softmax; NotSeen if there is no memory for it or its process ends.
    """
    # one server: shares of the time hardly depend on the code layout
    looks: dict[Point, list[Seen]] = {point: [] for point in points}
    begin_s, took_s = monotonic.now_s(), 0.0
    with closing(Pool(1, (), libraries=libraries(point.layer for point in points))) as pool:
        pool.check(points)
        for number, point in product(range(processes), points):
            look_s = monotonic.now_s() - begin_s
            if number and look_s + took_s > most_s:
                break
            tried = [*settings] if number == 0 else []
            looks[point].append(asked(pool, Look(point, number, tried), number, timeout_s, heard))
            took_s = max(took_s, monotonic.now_s() - begin_s - look_s)
    return {_with_columns(point, seen[0]["shape"]): seen for point, seen in looks.items()}


def shaped(
    points: tuple[Point, ...], pool: Pool | None = None, say: Callable[[str], object] = lambda _line: None
) -> tuple[Point, ...]:
    """Return points with the tokens, widths and heads that modules show whose names say their own input.

    Without a pool they are shown by a process of this environment. A module that can't be made or called beside others
    keeps its points as they are: their rows say why. Points that say other shapes than their module has are left out,
    of which `say` is told. Raises WrongRequest, with a line for each, if no point can be measured.
    """
    names = dict.fromkeys(
        point.layer for point in points if is_module(point.layer) and layers.shapes_itself(point.layer)
    )
    if not names:
        return points
    first = {point.layer: point for point in reversed(points)}
    with ExitStack() as own:
        if pool is None:
            check_layers(points)
            pool = own.enter_context(closing(Pool(1, (), libraries=libraries(point.layer for point in points))))
        shapes, failures = dict[str, dict[str, Any]](), list[WrongRequest | NotSeen]()
        for name in names:
            try:
                shapes[name] = asked(pool, Shape(first[name]), 0, SHAPE_S)
            except (WrongRequest, NotSeen) as failure:
                failures.append(failure)
    if failures and len(failures) == len({point.layer for point in points}):
        if len(failures) == 1:
            raise failures[0]
        raise WrongRequest("\n".join(map(str, failures)))
    usual = {"batch": COLUMNS["batch"].default}
    shown = {point: _with_columns(point, shapes.get(point.layer, usual)) for point in points}
    wrong = {point: line for point in points if (line := _contradiction(point, shown[point], shapes.get(point.layer)))}
    if len(wrong) == len(points):
        refuse(wrong.values())
    for line in dict.fromkeys(wrong.values()):
        say(f"left out: {line}")
    return tuple(shown[point] for point in points if point not in wrong)


def _contradiction(point: Point, shown: Point, shape: Mapping[str, Any] | None) -> str:
    """Return which column of a point is another one than its module shows, empty if none is."""
    wrong = (name for name in shape or () if getattr(point, name) not in (0, 1, getattr(shown, name)))
    return next(
        (
            f"{name} = {getattr(point, name)} must be {(shape or {})[name]} in the layer {point.layer}; leave it out"
            for name in wrong
        ),
        "",
    )


def _with_columns(point: Point, shape: dict[str, Any]) -> Point:
    """Return a point with the columns that its module shows, if its name says its input; a given batch stays."""
    columns = shape if layers.shapes_itself(point.layer) else {"batch": shape["batch"]}
    return dataclasses.replace(point, **{**columns, "batch": point.batch or shape["batch"]})


def asked(pool: Pool, request: Look | Shape, number: int, timeout_s: float, heard: Any = unheard) -> dict[str, Any]:
    """Return what a worker sees at the module of a point; raises as `look` does."""
    reply = replied(pool, request, number, timeout_s, heard)
    if reply.status in WRONG:
        raise WrongRequest(reply.detail)
    if reply.status != "ok":
        raise NotSeen(f"{reply.status}: {reply.detail}")
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
