"""Error rates of bounds and verdicts, from the samples of stored runs: python -m tests.drills.errors RUN… [--draws N].

Of each run, the deviation of its control from the baseline; of each two runs of one sweep, the deviation of their rows
from each other, in standard errors. Then runs are drawn anew from the samples of each, with means that are known: its
own, all alike, and planted ones. At last one row in ten of a second run is made slower or faster: how many of these
changes a comparison finds, and how many unchanged rows it blames.
"""

import argparse
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from bench.analyse.summary import rounds_of
from bench.plan.case import CONTROL, Case, Point
from bench.plan.verdicts import MARGIN
from bench.stats.best import GOOD, bounds
from bench.stats.contrasts import Contrasts, Prior, Values, contrasts, normal_scores, prior, values
from bench.stats.estimates import Estimates, combined, half_widths, joined
from bench.stats.limits import LEVEL, Limits, holm
from bench.store.journal import latest
from bench.store.record import Record
from bench.store.saved_run import SavedRun

POWER = 0.8
"""A change is shown if four of five comparisons find it: the usual power (Cohen 1988)."""

KINDS = {
    "own means": None,
    "all alike": (0.0,),
    "planted": (0.0, 0.0, 0.01, 0.03, 0.1),
    "one ahead": (0.0, *[0.03] * 9),
}
"""By how much the implementations of a point are slower, in turn; None for what was measured."""

QUIET = 0.2
"""The share of the scatter with which runs are drawn too: where more is decided, more can be wrong."""

CHANGES, EVERY = (0.03, 0.1, 0.3), 10
"""The shares by which rows of a second run are changed, and how many rows have one such."""

Times = dict[str, dict[tuple[int, int], dict[int, float]]]
"""Seconds by implementation, replicate and round."""


@dataclass
class Tally:
    """What bounds said of points whose truth is known."""

    points: int = 0
    broken_high: int = 0
    broken_low: int = 0
    named_beyond: int = 0
    fastest: int = 0
    fastest_wrong: int = 0
    within: int = 0

    def __str__(self) -> str:
        share = {name: value / max(1, self.points) for name, value in vars(self).items()}
        return (
            f"{self.points} points: the named one's bound broken at {share['named_beyond']:.2%}, any upper bound at "
            f"{share['broken_high']:.2%}, any lower one at {share['broken_low']:.2%}; fastest {share['fastest']:.1%}, "
            f"wrong {share['fastest_wrong']:.2%}; within {GOOD - 1:.0%} {share['within']:.1%}"
        )


def main() -> None:
    """Print the rates of each run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--draws", type=int, default=20)
    given = parser.parse_args()
    rng = np.random.default_rng(20261123)
    runs = {}
    for path in given.runs:
        saved = SavedRun(path)
        runs[path] = baseline, points = saved.baseline or "eager", _times(saved.records)
        print(f"\n{path}: {len(points)} points, baseline {baseline}")
        between = _print_errors(points, baseline)
        for noise, (name, planted) in itertools.product((1.0, QUIET), KINDS.items()):
            tally, alarms = Tally(), 0
            for _ in range(given.draws):
                truth = _truth(points, baseline, planted, rng)
                one, other = (_judged(_drawn(points, truth, between, noise, rng), baseline)[1] for _ in range(2))
                for logs, of in zip(truth.values(), one, strict=True):
                    _count(tally, of, logs)
                alarms += bool(_called(one, other, baseline).any())
            print(f"  {name}, {noise:g} of the scatter: {tally}; false alarms in {alarms} of {given.draws} tables")
        for share in CHANGES:
            _print_found(share, points, baseline, between, given.draws, rng)
    for one, other in itertools.combinations(runs, 2):
        if runs[one][0] == runs[other][0] and {*runs[one][1]} == {*runs[other][1]}:
            _print_pair(one, other, runs[one][1], runs[other][1], runs[one][0])


def _times(records: Sequence[Record]) -> dict[Point, Times]:
    """Return the times of each point whose implementations, all ok, were measured in two replicates or more."""
    by_case: dict[Case, list[Record]] = {}
    for record in latest(records):
        by_case.setdefault(record.case, []).append(record)
    times: dict[Point, Times] = {}
    for case, own in by_case.items():
        if all(record.status == "ok" for record in own):
            times.setdefault(case.point, {})[case.implementation] = rounds_of(own)
    return {point: of for point, of in times.items() if len(of) > 1 and min(len(own) for own in of.values()) > 1}


def _judged(points: Sequence[Values], baseline: str) -> tuple[Prior, list[Contrasts]]:
    pooled = prior(points, (CONTROL, baseline))
    return pooled, [contrasts(of, pooled) for of in points]


def _print_errors(points: Mapping[Point, Times], baseline: str) -> float:
    """Print what a run says of its errors, and return the variance between its processes."""
    pooled, judged = _judged([values(of) for of in points.values()], baseline)
    control = [of for of in judged if {CONTROL, baseline} <= {*of.names}]
    scores = normal_scores(joined(of.speedup(CONTROL, baseline) for of in control)) * pooled.factor
    highs = [float(np.min(bounds(of.without(CONTROL)).high)) for of in judged]
    print(
        f"  between processes {math.sqrt(pooled.process_variance):.2%}, prior {pooled.scatter.freedom:.0f} degrees of "
        f"freedom; control: rms of z {math.sqrt(np.mean(scores**2)) if scores.size else math.nan:.2f} at "
        f"{scores.size} points; "
        f"within 2 % {sum(high <= 1.02 for high in highs)}, 3 % {sum(high <= 1.03 for high in highs)} of {len(highs)}"
    )
    return pooled.process_variance


def _drawn(
    points: Mapping[Point, Times],
    truth: Mapping[Point, Mapping[str, float]],
    between: float,
    noise: float,
    rng: np.random.Generator,
) -> list[Values]:
    """Return the points of a run that is drawn anew, with log times that are known.

    Of each replicate its rounds are drawn with replacement, all implementations of a round together. Their middles are
    the known log times, and what processes differ by is drawn from a normal distribution. The scatter of both is
    multiplied by `noise`.
    """
    drawn = []
    for point, of in points.items():
        measured = values(of)
        replicates = sorted({key for own in of.values() for key in own})
        times: Times = {name: {} for name in of}
        for column, chosen in enumerate(replicates):
            rounds = sorted({number for own in of.values() for number in own.get(chosen, {})})
            picked = rng.choice(rounds, len(rounds)).tolist()
            for row, name in enumerate(measured.names):
                own = of[name].get(chosen, {})
                middle, shift = measured.logs[row, column], noise * rng.normal(0, math.sqrt(between))
                if kept := {
                    place: math.exp(truth[point][name] + shift + noise * (math.log(own[number]) - middle))
                    for place, number in enumerate(picked)
                    if number in own
                }:
                    times[name][chosen] = kept
        drawn.append(values({name: own for name, own in times.items() if own}))
    return drawn


def _truth(
    points: Mapping[Point, Times], baseline: str, planted: Sequence[float] | None, rng: np.random.Generator
) -> dict[Point, dict[str, float]]:
    """Return the log times of the implementations of each point: those of the run, or planted ones in random order."""
    truth = {}
    for point, of in points.items():
        measured = values(of)
        truth[point] = dict(zip(measured.names, np.nanmean(measured.logs, axis=1).tolist(), strict=True))
        if planted is not None:
            shares = itertools.cycle(planted)
            shuffled = rng.permutation([name for name in measured.names if name != CONTROL]).tolist()
            truth[point] |= {name: math.log1p(next(shares)) for name in shuffled}
        if CONTROL in truth[point]:
            truth[point][CONTROL] = truth[point][baseline]
    return truth


def _count(tally: Tally, of: Contrasts, logs: Mapping[str, float]) -> None:
    of = of.without(CONTROL)
    said = bounds(of)
    times = np.array([logs[name] for name in of.names])
    true = np.exp(times - times.min())
    named = int(np.argmin(said.high))
    first = np.flatnonzero((said.low == 1) & (said.high == 1))
    tally.points += 1
    tally.named_beyond += bool(said.high[named] < true[named] - 1e-9)
    tally.broken_high += bool((said.high < true - 1e-9).any())
    tally.broken_low += bool((said.low > true + 1e-9).any())
    tally.fastest += len(first) == 1
    tally.fastest_wrong += len(first) == 1 and bool(np.sort(true)[1] <= 1 + 1e-9 or true[first[0]] > 1 + 1e-9)
    tally.within += bool(said.high[named] <= GOOD)


def _changes(base: Sequence[Contrasts], new: Sequence[Contrasts], baseline: str) -> Estimates:
    sides = [
        joined(
            of.speedup(name, baseline)
            for of, beside in zip(one, other, strict=True)
            if baseline in of.names and baseline in beside.names
            for name in sorted({*of.names} & {*beside.names} - {CONTROL, baseline})
        )
        for one, other in ((base, new), (new, base))
    ]
    parts = (np.stack([getattr(side, name) for side in sides], axis=-1) for name in ("value", "error", "freedom"))
    return combined(np.array([-1.0, 1.0]), Estimates(*parts))


def _called(base: Sequence[Contrasts], new: Sequence[Contrasts], baseline: str) -> "np.ndarray[Any, np.dtype[np.bool]]":
    """Return which rows a comparison calls changed."""
    return np.asarray(holm(Limits().p_changed(_changes(base, new, baseline))) < LEVEL)


def _print_found(
    share: float, points: Mapping[Point, Times], baseline: str, between: float, draws: int, rng: np.random.Generator
) -> None:
    """Print how many of the rows that a second run has slower or faster by a share are called changed."""
    found = planted = blamed = clean = 0
    for _ in range(draws):
        truth = _truth(points, baseline, None, rng)
        compared = {point: {*of} - {CONTROL, baseline} for point, of in truth.items() if baseline in of}
        rows = [(point, name) for point, names in compared.items() for name in sorted(names)]
        # a table in which one row of a point changed leaves its others what they were
        changed = {rows[at] for at in rng.permutation(len(rows))[: max(1, len(rows) // EVERY)].tolist()}
        after = {
            point: {
                name: log + ((point, name) in changed) * rng.choice([-1, 1]) * math.log1p(share)
                for name, log in of.items()
            }
            for point, of in truth.items()
        }
        one, other = (_judged(_drawn(points, of, between, 1.0, rng), baseline)[1] for of in (truth, after))
        for row, is_called in zip(rows, _called(one, other, baseline).tolist(), strict=True):
            planted, found = planted + (row in changed), found + (is_called and row in changed)
            clean, blamed = clean + (row not in changed), blamed + (is_called and row not in changed)
    print(f"  {share:.0%} changed: found {found} of {planted} changes, blamed {blamed} of {clean} unchanged rows")


def _print_pair(one: str, other: str, base: Mapping[Point, Times], new: Mapping[Point, Times], baseline: str) -> None:
    """Print by how much two runs differ, and the changes that `compare` shows between them."""
    sides = [_judged([values(of[point]) for point in base], baseline)[1] for of in (base, new)]
    changes = _changes(sides[0], sides[1], baseline)
    losses = np.expm1([loss for pair in (sides, sides[::-1]) for loss in _losses(*pair)])
    z = changes.value / changes.error
    largest = np.abs(changes.value) + half_widths(changes)
    alarms = int(_called(sides[0], sides[1], baseline).sum())
    shown = math.log1p(MARGIN) + changes.error * (
        special.stdtrit(changes.freedom, 1 - LEVEL / len(z) / 2) + special.stdtrit(changes.freedom, POWER)
    )
    print(
        f"\n{one} and {other}: {len(z)} rows, standard deviation of z {z.std():.2f}; they differ by "
        f"{np.median(np.abs(changes.value)):.1%} in the median, {np.quantile(np.abs(changes.value), 0.95):.1%} in "
        f"95 of 100; half-width {np.mean(half_widths(changes)):.1%} in the mean\n"
        f"  called changed: {alarms}; no change above {math.expm1(np.quantile(largest, 0.9)):.1%} in 9 of 10 rows; a "
        f"change is shown in 4 of 5 cases from {math.expm1(np.median(shown)):.1%} in the median row\n"
        f"  the one that a run names, by the other's estimates: within 2 % at {int((losses <= 0.02).sum())}, "
        f"3 % at {int((losses <= 0.03).sum())} of {len(losses)}, at worst {losses.max():.1%} slower"
    )


def _losses(base: Sequence[Contrasts], new: Sequence[Contrasts]) -> Iterator[float]:
    for one, other in zip(base, new, strict=True):
        mine, theirs = one.without(CONTROL), other.without(CONTROL)
        named = mine.names[int(np.argmin(bounds(mine).high))]
        if named in theirs.names:
            yield max(0.0, float(np.max(theirs.difference[theirs.names.index(named)])))


if __name__ == "__main__":
    main()
