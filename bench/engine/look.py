"""Look at models in fresh processes, before anything is compared."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from bench.engine.pool import Pool
from bench.engine.worker import Died, unheard
from bench.plan.case import Point
from bench.plan.errors import WrongRequest
from bench.plan.names import libraries_of
from bench.store.saved_run import Seen

WRONG = ("error", "unsupported")
"""The ends of a look at a model that can't be used at all; the others come from the machine."""


class NotSeen(Exception):  # noqa: N818 - an outcome that becomes a line
    """A model could not be looked at; the message says why."""


def look(
    points: Sequence[Point], settings: Sequence[str], processes: int, timeout_s: float, heard: Any = unheard
) -> dict[Point, list[Seen]]:
    """Return what each of some processes sees at the models of the points; the first also tries the settings.

    `heard(stage)` is called for every event. Raises WrongRequest if a model can't be made, called or compared, or has
    no attention; NotSeen if there is no memory for it or its process ends.
    """
    pool = Pool(1, (), libraries=libraries_of(points))  # shares of the time hardly depend on the code layout
    try:
        return {
            point: [
                _seen(pool, point, number, settings if number == 0 else (), timeout_s, heard)
                for number in range(processes)
            ]
            for point in points
        }
    finally:
        pool.close()


def _seen(
    pool: Pool, point: Point, number: int, settings: Sequence[str], timeout_s: float, heard: Any
) -> dict[str, Any]:
    request = {"request": "look", "point": dataclasses.asdict(point), "seed": number, "settings": [*settings]}
    try:
        with pool.worker(point, number) as worker:
            reply = worker.ask(request, timeout_s, heard)
    except Died as death:
        raise NotSeen(f"{death.status}: {death.detail}") from None
    if reply["status"] in WRONG:
        raise WrongRequest(reply["detail"])
    if reply["status"] != "ok":
        raise NotSeen(f"{reply['status']}: {reply['detail']}")
    seen: dict[str, Any] = reply["seen"]
    return seen
