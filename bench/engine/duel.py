"""A duel: a race of two sides that may differ in their code, environment or layer.

Both are measured in the same rounds, so they are paired like two implementations, and intervals count replicates.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.analyse.duel import answer
from bench.analyse.standing import Answer
from bench.engine.checkout import Checkout, checked_out
from bench.engine.member import Member
from bench.engine.model_look import WRONG, replied
from bench.engine.pool import Pool, scratch
from bench.engine.replicate import NOT_ALONE, Replicate, now
from bench.engine.run import Run
from bench.machine import facts, git, monotonic
from bench.plan.case import Case, Point
from bench.plan.errors import WrongRequest
from bench.plan.names import libraries
from bench.plan.sides import DIFFER, SAME, Side, itself
from bench.plan.sweep import Sweep
from bench.sampling.requests import Describe, Looked
from bench.sampling.rounds import Length
from bench.store.environment import Environment
from bench.store.record import Origin, Record

Module = Mapping[str, Any]
"""A worker's report on the module of a side."""


@dataclass(eq=False)
class Ground:
    """The place where a side is measured: its processes, and the folder from which they import.

    `look` sets `here`, its environment, `modules`, the reports on its module at each point, and `broken`, the failures
    at points without a module.
    """

    side: Side
    pool: Pool
    checkout: Checkout | None = None
    here: Environment | None = None
    modules: dict[Point, Module] = field(default_factory=dict)
    broken: dict[Point, Looked] = field(default_factory=dict)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Name the side in a WrongRequest that is raised inside."""
        try:
            yield
        except WrongRequest as error:
            raise WrongRequest(f"{self.side.words}: {error}") from None

    @property
    def packages(self) -> dict[str, tuple[str, str, str]]:
        """The file, digest and version of each package that the side imports."""
        return {name: tuple(of) for module in self.modules.values() for name, of in module["modules"].items()}

    def look(self, points: Mapping[Point, Point], sweep: Sweep, state: dict[str, Any]) -> Environment:
        """Note the environment and the module at each point, and return the environment.

        Raises WrongRequest, with the side's name, if it has no processes, or nothing is imported from its checkout.
        """
        with self.named():
            checked = self.pool.check([*points.values()])
        self.here = facts.observe(checked.facts, {"sweep": sweep.name}, state)
        for point, own in points.items():
            reply = replied(self.pool, Describe(own, self.side.implementation), 0, sweep.effort.timeout_s)
            if reply.status == "ok":
                self.modules[point] = reply.seen
            else:
                self.broken[point] = reply
        return self.here

    def check_place(self) -> None:
        """Raise WrongRequest if a side imports nothing from its checkout, because both sides would be the same code."""
        files = [file for file, *_ in self.packages.values()]
        if self.checkout and self.modules and not any(map(self.checkout.place, files)):
            raise WrongRequest(
                f"{self.side.words}: no package was imported from the checkout, but "
                f"{'; '.join(f'{name} from {file}' for name, (file, *_) in self.packages.items()) or 'none at all'}; "
                "name the folder that contains the package, or its src folder; "
                f"compare an installed package with itself by {itself()}"
            )

    def told(self) -> dict[str, Any]:
        """Return the side's entry in environment.json."""
        assert self.here is not None
        commit = {"commit": self.checkout.commit} if self.checkout else {}
        identity = {name: self.here.identity[name] for name in ("torch", "python")}
        packages = {name: self._package(*of) for name, of in self.packages.items()}
        return {"given": self.side.given, **commit, **identity, "packages": packages}

    def _package(self, file: str, digest: str, version: str) -> dict[str, str]:
        place = self.checkout.place(file) if self.checkout else ""
        of_checkout = {"file": place, "commit": self.checkout.commit} if self.checkout and place else None
        return {**(of_checkout or git.described(file, digest)), "digest": digest, "version": version}


@contextmanager
def grounds(sides: tuple[Side, Side], servers: int, *, with_gradients: bool = False) -> Iterator[tuple[Ground, Ground]]:
    """Yield both sides with their processes, which they share unless they have another checkout or interpreter.

    `with_gradients` is as in a Pool. Revisions are written into a temporary folder that is removed at the end.
    Raises WrongRequest for a checkout that can't be made.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(scratch())
        made: list[Ground] = []
        for side in sides:
            checkout = checked_out(side.checkout, folder) if side.checkout else None
            if made and not (side.checkout or side.python):
                pool = made[0].pool
            else:  # the same checkout or interpreter twice is an A/A test: each side has its own processes
                new = _pool(sides, side, checkout, servers, with_gradients=with_gradients)
                pool = stack.enter_context(closing(new))
            made.append(Ground(side, pool, checkout))
        before, after = made
        yield before, after


def _pool(sides: Sequence[Side], side: Side, checkout: Checkout | None, servers: int, *, with_gradients: bool) -> Pool:
    here = [each for each in sides if (each.checkout, each.python) == (side.checkout, side.python)]
    implementations = [each.implementation for each in here]
    paths = checkout.paths if checkout else ()
    needed = libraries(each.layer for each in here)
    return Pool(servers, implementations, side.python or None, needed, paths, with_gradients=with_gradients)


class Duel(Run):
    """A race of two sides into a run folder; a context manager like any run.

    `points` has the points of each side in the order of the sweep's. If both sides have the same layer, with weights of
    the same names and shapes, the second gets the first's weights and is judged by its outputs in float64.
    `allow` is the share by which the second may be slower. If one side can't be made, or has other shapes, its rows say
    so. Entering it raises WrongRequest if both can't be made, or if a side isn't the requested one.
    """

    needs_both = True

    def __init__(
        self,
        sweep: Sweep,
        folder: Path,
        sides: tuple[Ground, Ground],
        points: tuple[Sequence[Point], Sequence[Point]],
        allow: float | None = None,
    ) -> None:
        self.sides = sides
        self.allow = allow
        self._points = [dict(zip(sweep.points, own, strict=True)) for own in points]
        self._has_measured = False
        self._compared: set[Point] = set()
        self._broken: dict[Point, tuple[int, str, str]] = {}
        """The broken side, its status and the detail, at each point where only the other can be measured."""
        pools = list(dict.fromkeys(ground.pool for ground in sides))
        super().__init__(sweep, folder, needs_all=True, pools=pools)

    @property
    def names(self) -> tuple[str, str]:
        """The names of both sides' rows."""
        before, after = self.sides
        return before.side.name, after.side.name

    @property
    def differs_in_code(self) -> bool:
        """Whether the sides have different processes or layers."""
        return len(self._pools) > 1 or self._points[0] != self._points[1]

    @property
    def is_same_layer(self) -> bool:
        """Whether both sides name the same layer, and so should compute the same."""
        return self.sides[0].side.layer == self.sides[1].side.layer

    def answer(self, point: Point, bound: float) -> Answer:
        """Return the answer so far; both sides are candidates until the ratio is precise enough for a verdict."""
        replicates = self.summary.answer(point, bound).replicates
        if not replicates:
            return Answer()
        return answer(self.summary.contrasts(point), *self.names, bound, self.allow, replicates)

    def member(self, case: Case) -> Member:
        """Return a side at a point, to be measured in a replicate; the control is the first side again."""
        at = int(case.implementation == self.names[1])
        ground, point, first = self.sides[at], self._points[at][case.point], self._points[0][case.point]
        takes_weights = bool(at and self.differs_in_code and case.point in self._compared)
        return dataclasses.replace(
            super().member(case),
            pool=ground.pool,
            implementation=ground.side.implementation,
            point=point,
            judged_by=(self.sides[0].pool, first) if takes_weights else (ground.pool, point),
            takes_weights=takes_weights,
            torch_version=ground.here.identity["torch"] if ground.here else "",
        )

    def replicate(self, point: Point, names: Sequence[str], length: Length, *, with_baseline: bool = True) -> Replicate:
        """Measure a point in one more replicate; sides with different processes get fresh servers for each.

        The servers of the last replicate stay, for later requests.
        """
        if len(self._pools) > 1:
            for pool in self._pools if self._has_measured else ():
                pool.renew()
            self._start(point)
        self._has_measured = True
        return super().replicate(point, names, length, with_baseline=with_baseline)

    def leave_out(self, point: Point, processes: int) -> None:
        """Write records as in any run, and for each row of a point where a side can't be measured."""
        super().leave_out(point, processes)
        if point not in self._broken or not (missing := self.missing(point, processes)):
            return
        broken, status, detail = self._broken[point]
        number, origin = self.next_process(point), Origin.of(self.environment, point.device, now())
        other: dict[str, Any] = {"status": "skipped", "detail": NOT_ALONE, "own_cause": False}
        ends = dict.fromkeys(missing, other) | {self.names[broken]: {"status": status, "detail": detail}}
        self.write([Record(Case(point, name), number, origin=origin, **end) for name, end in ends.items()])

    def _start(self, point: Point) -> None:
        """Begin to start the servers of both sides together."""
        for pool in self._pools:
            pool.begin(point)

    def _observed(self, state: dict[str, Any]) -> Environment:
        """Look at both sides' modules, and return the first side's environment with the facts about both.

        The time of the duel begins when this returns.
        """
        here = self._observed_sides(state) if self.differs_in_code else super()._observed(state)
        self._begin_s = monotonic.now_s() - self.summary.measured_s()
        return here

    def _observed_sides(self, state: dict[str, Any]) -> Environment:
        self._start(self.sweep.points[0])
        here, there = (
            ground.look(points, self.sweep, state) for ground, points in zip(self.sides, self._points, strict=True)
        )
        for ground in self.sides:
            ground.check_place()
        for point in self.sweep.points:
            self._note_broken(point)
            if self.is_same_layer and point not in self._broken:
                self._compare(point)
        context = {**here.context, "sides": {ground.side.name: ground.told() for ground in self.sides}}
        context["weights"] = self._told_weights()
        runtimes = {
            f"{ground.side.name}: {name}": " ".join(filter(None, (version, digest)))
            for ground, seen in zip(self.sides, (here, there), strict=True)
            for name, (_, digest, version) in {**ground.packages, "torch": ("", "", seen.identity["torch"])}.items()
        }
        return Environment(here.identity, here.state, context, runtimes)

    def _note_broken(self, point: Point) -> None:
        """Note which side has no module at a point; raises WrongRequest if both lack it, or if their layers differ."""
        broken = [at for at, ground in enumerate(self.sides) if point in ground.broken]
        if not broken:
            return
        at = broken[0]
        reply = self.sides[at].broken[point]
        if broken[1:] or not self.is_same_layer:
            with self.sides[at].named():
                raise WrongRequest(f"{'' if reply.status in WRONG else reply.status + ': '}{reply.detail}")
        self._broken[point] = at, reply.status, f"{self.names[at]} {reply.raised or reply.detail}"

    def _compare(self, point: Point) -> None:
        """Compare the shapes of both sides at a point, and note whether their weights match."""
        before, after = (ground.modules[point] for ground in self.sides)
        for what in ("input", "output"):
            if before[what] != after[what]:
                first, second = self.names
                detail = f"{second} has {what} shape {after[what]}, but {first} has {before[what]}"
                self._broken[point] = 1, "incorrect", detail
                return
        if before["weights"] == after["weights"]:
            self._compared.add(point)

    def _told_weights(self) -> str | None:
        """Return SAME or DIFFER for the weights at all points, for environment.json; None for different layers."""
        if not self.is_same_layer:
            return None
        return SAME if self._compared | self._broken.keys() >= {*self.sweep.points} else DIFFER
