"""Error rates of races that are drawn from the samples of stored runs: python -m tests.drills.races RUN… [--draws N].

The race itself is the engine's, on a clock and with processes that are made up: looks, leaving, coming back and
stopping are part of what is drawn. The truth of each point is known: the run's own means, all alike, and planted ones.
"""

import argparse
import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import numpy as np

from bench.analyse.standing import Look, behind, look
from bench.engine import race
from bench.engine.run import Run
from bench.plan.case import CONTROL, Point
from bench.plan.sweep import Effort
from bench.sampling.rounds import LEAST_ROUNDS, Length
from bench.stats.contrasts import Prior, Values, contrasts, prior, values
from bench.store.saved_run import SavedRun
from tests.drills import errors
from tests.drills.errors import KINDS, QUIET, Tally, Times

CALLS, OWN_S, FIRST_S = 5, 0.15, 1.0
"""What a process takes beside its rounds: so many calls, and seconds; the first of a case takes more."""

LENT_ANEW = 1.05

EFFORT = Effort(processes=2, budget_s=4, race=True, bound=0.02)


@dataclass(frozen=True)
class Source:
    """What a point is drawn from: the logarithms of its rounds about the middles of their replicates, with NaN."""

    names: tuple[str, ...]
    deviations: np.ndarray[Any, np.dtype[np.float64]]  # [implementation, round]
    call_s: np.ndarray[Any, np.dtype[np.float64]]
    truth: Mapping[str, float]


class DrawnRun:
    """A run whose processes are drawn; `clock_s` is its time."""

    def __init__(
        self, points: Mapping[Point, Source], baseline: str, between: float, noise: float, rng: np.random.Generator
    ) -> None:
        self.sweep = SimpleNamespace(effort=EFFORT)
        self.summary = self
        self.clock_s = 0.0
        self.lendings = self._lent_to = self._replicates = 0
        self._points, self._baseline, self._sd, self._noise, self._rng = (
            points,
            baseline,
            math.sqrt(between),
            noise,
            rng,
        )
        self._times: dict[Point, Times] = {point: {} for point in points}
        self._values: dict[Point, Values] = {}
        self._lent = Prior(0.0, cast(Any, None))

    def together(self, point: Point) -> list[Point]:
        """Return the point: each is measured by itself."""
        return [point]

    def leave_out(self, _point: Point, _processes: int) -> None:
        """Leave out nothing."""

    def tabulate(self) -> None:
        """Write nothing."""

    def missing_in_base(self, point: Point) -> list[str]:
        """Return what needs more processes, without what is far behind."""
        of = self._times[point]
        far = behind(self._values[point]) - {self._baseline, CONTROL} if of else set()
        return [
            name for name in self._points[point].names if len(of.get(name, ())) < EFFORT.processes and name not in far
        ]

    def replicate(self, names: Mapping[Point, Sequence[str]], length: Length, *, is_look: bool = False) -> Any:
        """Draw a replicate of a point."""
        ((point, chosen),) = names.items()
        source, of = self._points[point], self._times[point]
        chosen = [*chosen] if is_look or self._baseline in chosen else [self._baseline, *chosen]
        rows = [source.names.index(name) for name in chosen]
        round_s = float(source.call_s[rows].sum())
        rounds = max(LEAST_ROUNDS, math.ceil(length.budget_s / round_s))
        number = 1 + max((key[0] for own in of.values() for key in own), default=-1)
        picked = self._rng.integers(source.deviations.shape[1], size=rounds)
        for name, row in zip(chosen, rows, strict=True):
            shift = source.truth[name] + self._noise * self._rng.normal(0, self._sd)
            logs = shift + self._noise * source.deviations[row, picked]
            of.setdefault(name, {})[number, 0] = {
                place: math.exp(log) for place, log in enumerate(logs.tolist()) if not math.isnan(log)
            }
        self._values[point] = values(of)
        self._replicates += 1
        beside_s = sum(OWN_S + CALLS * source.call_s[row] + (FIRST_S if number == 0 else 0.0) for row in rows)
        self.clock_s += beside_s + rounds * round_s
        return SimpleNamespace(rounds_s=rounds * round_s, rounds=rounds)

    def look(self, point: Point, bound: float) -> Look:
        """Return what the samples of a point say so far."""
        if self._replicates > LENT_ANEW * self._lent_to:
            self._lent = prior([*self._values.values()], (CONTROL, self._baseline))
            self._lent_to = self._replicates
            self.lendings += 1
        of = contrasts(self._values[point], self._lent).without(CONTROL)
        costs = {name: place for place, name in enumerate(of.names)}
        return look(of, costs, bound, self._values[point].logs.shape[1])

    def scatter(self, point: Point) -> float:
        """Return the variance of a value by the rounds of the latest replicate over that between processes."""
        return float(np.nanmedian(self._values[point].variances[:, -1])) / self._lent.process_variance

    def judged(self) -> dict[Point, Any]:
        """Return the contrasts of all points at the end."""
        lent = prior([*self._values.values()], (CONTROL, self._baseline))
        return {point: contrasts(of, lent) for point, of in self._values.items()}


def main() -> None:
    """Print the rates of each run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--times", type=float, default=4.0, help="how much longer than usual a race may take")
    given = parser.parse_args()
    rng = np.random.default_rng(20261124)
    for path in given.runs:
        saved = SavedRun(path)
        baseline, points = saved.baseline or "eager", errors._times(saved.records)
        between = prior([values(of) for of in points.values()], (CONTROL, baseline)).process_variance
        print(f"\n{path}: {len(points)} points, between processes {math.sqrt(between):.2%}")
        for noise, (name, planted) in itertools.product((1.0, QUIET), KINDS.items()):
            tally, seconds, looks = Tally(), [], Counter[int]()
            for _ in range(given.draws):
                truth = errors._truth(points, baseline, planted, rng)
                drawn = DrawnRun(
                    {point: _source(of, truth[point]) for point, of in points.items()}, baseline, between, noise, rng
                )
                with patch.object(race, "time", SimpleNamespace(monotonic=lambda run=drawn: run.clock_s)):
                    race.Race(
                        cast(Run, drawn), [*points], given.times * EFFORT.seconds(len(points)), lambda *_: None
                    ).go()
                seconds.append(drawn.clock_s)
                for point, of in drawn.judged().items():
                    errors._count(tally, of, truth[point])
                    looks[drawn._values[point].logs.shape[1]] += 1
            print(
                f"  {name}, {noise:g} of the scatter: {tally}; {np.mean(seconds):.0f} s, "
                f"at most {max(looks)} replicates"
            )


def _source(of: Times, truth: Mapping[str, float]) -> Source:
    known = values(of)
    columns = [
        [
            math.log(of[name].get(chosen, {}).get(number, math.nan)) - known.logs[row, column]
            for row, name in enumerate(known.names)
        ]
        for column, chosen in enumerate(sorted({key for own in of.values() for key in own}))
        for number in sorted({number for own in of.values() for number in own.get(chosen, {})})
    ]
    call_s = [np.median([each for rounds in of[name].values() for each in rounds.values()]) for name in known.names]
    return Source(known.names, np.array(columns).T, np.array(call_s), truth)


if __name__ == "__main__":
    main()
