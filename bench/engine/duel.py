"""A duel: a race of two sides that may differ in their code, environment or layer, in the same rounds.

So the rounds of the sides are paired like those of two implementations, and an interval counts replicates.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench.analyse.standing import Answer
from bench.analyse.verdict import answer
from bench.engine.checkout import Checkout, checked_out
from bench.engine.member import Member
from bench.engine.model_look import WRONG, NotSeen, asked, replied
from bench.engine.pool import Pool, Scratch
from bench.engine.replicate import NOT_ALONE, Replicate, now
from bench.engine.run import Run
from bench.engine.schedule import Missing
from bench.machine import facts, git, monotonic
from bench.plan.case import Case, Point
from bench.plan.errors import WrongRequest
from bench.plan.names import libraries
from bench.plan.sides import Side, itself
from bench.plan.sweep import Sweep
from bench.plan.weights import WAYS, Shapes, Sources, differing, matches, way_of, words_of
from bench.sampling.rounds import Length
from bench.store import units
from bench.store.environment import Environment
from bench.store.record import Origin, Record

SAVED = "weights.pt"
"""The file with the weights of the first side while a match is looked for."""

Module = Mapping[str, Any]
"""What a worker says of the module of a side."""


@dataclass(frozen=True)
class Ground:
    """Where a side is measured: its processes, and the folder from which they import."""

    side: Side
    pool: Pool
    checkout: Checkout | None = None

    @contextmanager
    def named(self) -> Iterator[None]:
        """Say of a WrongRequest that is raised inside on which side it was."""
        try:
            yield
        except WrongRequest as error:
            raise WrongRequest(f"{self.side.words}: {error}") from None


@contextmanager
def grounds(sides: tuple[Side, Side], servers: int, *, with_gradients: bool = False) -> Iterator[tuple[Ground, Ground]]:
    """Give both sides their processes; they share them if they differ in nothing that a process begins with.

    `with_gradients` is as in a Pool. The files of revisions lie in a temporary folder that is removed at the end.
    Raises WrongRequest for a checkout that can't be made.
    """
    with ExitStack() as stack:
        scratch = stack.enter_context(closing(Scratch())) if any(side.checkout for side in sides) else None
        made: list[Ground] = []
        for side in sides:
            checkout = checked_out(side.checkout, scratch.folder) if scratch and side.checkout else None
            # one checkout or interpreter twice is an A/A: each side has its processes
            shared = [] if side.checkout or side.python else made
            new = partial(_pool, sides, side, checkout, servers, with_gradients=with_gradients)
            pool = shared[0].pool if shared else stack.enter_context(closing(new()))
            made.append(Ground(side, pool, checkout))
        before, after = made
        yield before, after


def _pool(sides: Sequence[Side], side: Side, checkout: Checkout | None, servers: int, *, with_gradients: bool) -> Pool:
    here = [each for each in sides if (each.checkout, each.python) == (side.checkout, side.python)]
    implementations = [each.implementation for each in here]
    paths = checkout.paths if checkout else ()
    needed = libraries(each.layer for each in here)
    return Pool(servers, implementations, side.python or None, needed, paths, with_gradients=with_gradients)


@dataclass(frozen=True)
class Seen:
    """What is known of a side at the beginning: its environment, and its module at each point of the duel.

    `broken` are the replies at points where it has none.
    """

    here: Environment
    modules: Mapping[Point, Module] = field(default_factory=dict)
    broken: Mapping[Point, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def packages(self) -> dict[str, tuple[str, str, str]]:
        """The file, digest and version of each package that the side brings in."""
        return {name: tuple(of) for module in self.modules.values() for name, of in module["modules"].items()}


@dataclass(frozen=True)
class Match:
    """The rows of the first side's weights of which the second's are made at a point, None if none are known.

    `words` say how weights of other names or shapes were matched, or why not, and `tried` how many ways were in vain.
    """

    sources: Sources | None
    words: str = ""
    tried: int = 0


class Duel(Run):
    """A race of two sides into a run folder; it is a context manager like any run.

    `points` are those of each side in the order of the sweep's. If both sides have the same layer, the second is
    judged by what the first computes in float64, with its weights. `allow` is the share by which the second may be
    slower. If one of them can't be made, or has other shapes, its rows say so. Entering it raises WrongRequest if both
    can't be made, or if a side isn't what was asked for.
    """

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
        self._seen: list[Seen] = []
        self._has_measured = False
        self.matches: dict[Point, Match] = {}
        """How the second side gets the weights of the first, at each point where that was looked for."""
        self._broken: dict[Point, tuple[int, str, str]] = {}
        """The side, its status and the detail, at each point where one side alone can be measured."""
        pools = list(dict.fromkeys(ground.pool for ground in sides))
        super().__init__(sweep, folder, needs_all=True, pools=pools)
        self.needs_both = True

    @property
    def names(self) -> tuple[str, str]:
        """The names of both sides' rows."""
        before, after = self.sides
        return before.side.name, after.side.name

    @property
    def differs_in_code(self) -> bool:
        """Whether the sides have processes of their own, or another layer."""
        return len(self._pools) > 1 or self._points[0] != self._points[1]

    @property
    def is_same_layer(self) -> bool:
        """Whether both sides are said to compute the same."""
        return self.sides[0].side.layer == self.sides[1].side.layer

    def point(self, at: int, point: Point) -> Point:
        """Return the point of a side at a point of the sweep."""
        return self._points[at][point]

    def answer(self, point: Point, bound: float) -> Answer:
        """Return what is known of the ratio: both sides are measured until it is known well enough for a verdict."""
        replicates = self.summary.answer(point, bound).replicates
        if not replicates:
            return Answer()
        return answer(self.summary.contrasts(point), *self.names, bound, self.allow, replicates)

    def member(self, case: Case) -> Member:
        """Return a side at a point, to be measured in a replicate; the control is the first one once more."""
        at = int(case.implementation == self.sides[1].side.name)
        ground, point, first = self.sides[at], self._points[at][case.point], self._points[0][case.point]
        seen = self._seen[at] if self._seen else None
        match = self.matches.get(case.point) if at and self.differs_in_code else None
        of_first = match.sources if match else None
        return dataclasses.replace(
            super().member(case),
            pool=ground.pool,
            env_id=seen.here.env_id if seen else self.environment.env_id,
            implementation=ground.side.implementation,
            point=point,
            judged_by=(self.sides[0].pool, first) if of_first is not None else (ground.pool, point),
            weights=of_first or {},
            torch_version=seen.here.identity["torch"] if seen else "",
        )

    def replicate(self, missing: Missing, length: Length, *, with_baseline: bool = True) -> Replicate:
        """Measure points in one more replicate; sides with processes of their own have fresh servers in each.

        Those of the last one stay: what is asked of the sides afterwards needs no others.
        """
        if len(self._pools) > 1:
            if self._has_measured:
                self.renew()
            self._start(next(iter(missing)))
        self._has_measured = True
        return super().replicate(missing, length, with_baseline=with_baseline)

    def leave_out(self, point: Point, processes: int) -> None:
        """Write records as any run does, and for each row of a point where a side can't be measured."""
        super().leave_out(point, processes)
        if point not in self._broken or not (missing := self.missing(point, processes)):
            return
        broken, status, detail = self._broken[point]
        number, origin = self.records.next_process(point), Origin.of(self.environment, point.device, now())
        other: dict[str, Any] = {"status": "skipped", "detail": NOT_ALONE, "own_cause": False}
        ends = dict.fromkeys(missing, other) | {self.names[broken]: {"status": status, "detail": detail}}
        self.records.keep([Record(Case(point, name), number, origin=origin, **end) for name, end in ends.items()])

    def keep(self, members: Iterable[Member], number: int, replicate: Replicate) -> None:
        """Write the records of members, but none if one is tried again: the others were skipped because of it."""
        members = [*members]
        if not any(member.lacks_memory or self.deaths.allow(member) for member in members):
            super().keep(members, number, replicate)

    def _start(self, point: Point) -> None:
        """Begin to start the servers of both sides at once."""
        for pool in self._pools:
            pool.begin(point)

    def _observed(self, state: dict[str, Any]) -> Environment:
        """Return the environment of the first side, with what is known of both; looks at their modules first.

        The time of a duel begins then.
        """
        here = self._observed_sides(state) if self.differs_in_code else super()._observed(state)
        self._begin_s = monotonic.now_s() - self.summary.measured_s()
        return here

    def _observed_sides(self, state: dict[str, Any]) -> Environment:
        self._start(self.sweep.points[0])
        self._seen = [self._side(at, state) for at in range(len(self.sides))]
        self._check_places()
        for point in self.sweep.points:
            self._note_broken(point)
            if self.is_same_layer and point not in self._broken:
                self._compare(point, *(seen.modules[point] for seen in self._seen))
        here = self._seen[0].here
        told = {ground.side.name: self._told(at) for at, ground in enumerate(self.sides)}
        context = {**here.context, "sides": told}
        context |= self._told_weights() if self.is_same_layer else {"weights": None}
        runtimes = {
            f"{ground.side.name}: {name}": " ".join(filter(None, (version, digest)))
            for ground, seen in zip(self.sides, self._seen, strict=True)
            for name, (_, digest, version) in {**seen.packages, "torch": ("", "", seen.here.identity["torch"])}.items()
        }
        return Environment(here.identity, here.state, context, runtimes)

    def _side(self, at: int, state: dict[str, Any]) -> Seen:
        """Return what is seen of a side; raises WrongRequest, with its name, if it has no processes."""
        ground, points, timeout_s = self.sides[at], self._points[at], self.sweep.effort.timeout_s
        with ground.named():
            checked = ground.pool.check([*points.values()])
        here = facts.observe(checked.facts, {"sweep": self.sweep.name}, state)
        named = {"implementation": ground.side.implementation}
        replies = {point: replied(ground.pool, "describe", own, 0, timeout_s, **named) for point, own in points.items()}
        modules = {point: reply["seen"] for point, reply in replies.items() if reply["status"] == "ok"}
        return Seen(here, modules, {point: reply for point, reply in replies.items() if point not in modules})

    def _note_broken(self, point: Point) -> None:
        """Note which side has no module at a point; raises WrongRequest if none has one, or if it is another layer."""
        broken = [at for at, seen in enumerate(self._seen) if point in seen.broken]
        if not broken:
            return
        at, reply = broken[0], self._seen[broken[0]].broken[point]
        if broken[1:] or not self.is_same_layer:
            with self.sides[at].named():
                raise WrongRequest(f"{'' if reply['status'] in WRONG else reply['status'] + ': '}{reply['detail']}")
        self._broken[point] = at, reply["status"], f"{self.names[at]} {reply['raised'] or reply['detail']}"

    def _check_places(self) -> None:
        """Raise WrongRequest if a side with a checkout imports nothing from it: both would be the same code."""
        for ground, seen in zip(self.sides, self._seen, strict=True):
            if (
                ground.checkout
                and seen.modules
                and not any(ground.checkout.place(file) for file, *_ in seen.packages.values())
            ):
                files = "; ".join(f"{name} from {file}" for name, (file, *_) in seen.packages.items())
                is_same = len({each.side.checkout for each in self.sides}) == 1
                of_installed = f"; one that is installed is compared with itself by {itself()}" if is_same else ""
                raise WrongRequest(
                    f"{ground.side.words}: no package was imported from the checkout, but {files or 'none at all'}; "
                    f"name the folder that contains the package, or contains src with it{of_installed}"
                )

    def _compare(self, point: Point, before: Module, after: Module) -> None:
        """Compare the shapes of both sides at a point, and find the weights of the second in those of the first."""
        for what in ("input", "output"):
            if before[what] != after[what]:
                first, second = self.names
                detail = f"{second} has an {what} of shape {after[what]}, {first} of {before[what]}"
                self._broken[point] = 1, "incorrect", detail
                return
        heads = {point.num_heads, *before.get("heads", ()), *after.get("heads", ())}
        ways = matches(before["weights"], after["weights"], heads)
        is_same = sorted(before["weights"]) == sorted(after["weights"])
        self.matches[point] = (
            Match(ways[0]) if is_same else self._match(point, ways, before["weights"], after["weights"])
        )

    def _match(self, point: Point, ways: Sequence[Sources], before: Shapes, after: Shapes) -> Match:
        """Return the way to match weights with which the outputs of both sides agree, or why there is none."""
        first, second = (partial(asked, ground.pool) for ground in self.sides)
        points, timeout_s = [own[point] for own in self._points], self.sweep.effort.timeout_s
        path = str(self.sides[0].pool.folder / SAVED)
        try:
            first("compute", points[0], 0, timeout_s, path=path)
            found = second("match", points[1], 0, timeout_s, path=path, ways=ways)
        except (NotSeen, WrongRequest) as error:
            return Match(None, f"{differing(before, after)}, and could not be matched: {error}")
        if found["number"] is not None:
            sources = ways[found["number"]]
            return Match(sources, "; ".join(words_of(sources, before)))
        if not found["tried"]:
            return Match(None, f"{differing(before, after)}, and no way to match them was found")
        nearest = "" if found["error"] is None else f"; the nearest is off by {units.percent(found['error'])}"
        vain = f"no way of {found['tried']} to give it the weights of {self.names[0]} gives its outputs{nearest}"
        return Match(None, f"{vain}; {differing(before, after)}", found["tried"])

    def _told_weights(self) -> dict[str, Any]:
        """Return what environment.json says of the weights at the point where least is known of them."""
        ways = {point: way_of(match.sources) for point, match in self.matches.items()}
        if not ways:
            return {"weights": ""}
        worst = min(ways, key=lambda point: WAYS.index(ways[point]))
        return {"weights": ways[worst], "match": self.matches[worst].words, "tried": self.matches[worst].tried}

    def _told(self, at: int) -> dict[str, Any]:
        """Return what environment.json says of a side."""
        ground, seen = self.sides[at], self._seen[at]
        packages = {name: self._package(ground, *of) for name, of in seen.packages.items()}
        commit = {"commit": ground.checkout.commit} if ground.checkout else {}
        identity = {name: seen.here.identity[name] for name in ("torch", "python")}
        return {"given": ground.side.given, **commit, **identity, "packages": packages}

    def _package(self, ground: Ground, file: str, digest: str, version: str) -> dict[str, str]:
        place = ground.checkout.place(file) if ground.checkout else ""
        of_checkout = {"file": place, "commit": ground.checkout.commit} if ground.checkout and place else None
        told = of_checkout or git.described(file, digest)
        return {**told, "digest": digest, "version": version}
