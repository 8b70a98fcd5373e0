"""How often a point gets a wrong winner or a wrong tie, and how often it is decided: before and by the present rule.

python -m tests.drills.winners collect DIR [PROCESSES [SECONDS]]   measures a pool of processes, or goes on with it
python -m tests.drills.winners resample DIR                        points drawn from that pool
python -m tests.drills.winners simulate                            points of normal samples, of which the truth is known
python -m tests.drills.winners stored RUN                          what both rules say of a run that is there
"""

import dataclasses
import itertools
import math
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.analyse.ranking import NOT_DECIDED, TIE, WINNER, ranked
from bench.analyse.summary import log_ratios
from bench.engine.run import run
from bench.plan.case import Point
from bench.stats.limits import EQUIVALENCE, MARGIN
from bench.stats.replicates import ratio
from bench.store import journal
from bench.store.record import Record
from tests.drills.power import Generator, sweep_of

SHAPES: list[dict[str, int]] = [
    {"batch": 8, "num_tokens": 50, "token_len": 384, "channels": 384, "num_heads": 6},
    {"batch": 8, "num_tokens": 197, "token_len": 384, "channels": 384, "num_heads": 6},
    {"batch": 8, "num_tokens": 197, "token_len": 384, "channels": 384, "num_heads": 1},
    {"batch": 8, "num_tokens": 197, "token_len": 96, "channels": 96, "num_heads": 6},
    {"batch": 13, "num_tokens": 100, "token_len": 49, "channels": 64, "num_heads": 4},
    {"batch": 8, "num_tokens": 197, "token_len": 192, "channels": 192, "num_heads": 6},
]
"""Half of the points of `quick`."""

EAGER, SDPA = "eager", "sdpa"

TWIN, COPY = "impls.control:adapt", "tests.planted:sdpa"
"""A copy of eager, and one of sdpa."""

LAYERS = (EAGER, "manual", "online", SDPA, "compiled_sdpa")

FIELDS: dict[str, tuple[tuple[str, ...], float]] = {
    "five layers": (LAYERS, 0.0),
    "and a copy of sdpa": ((*LAYERS, COPY), 0.0),
    "eager, its copy": ((EAGER, TWIN), 0.0),
    "sdpa, its copy": ((SDPA, COPY), 0.0),
    "the copy +1 %": ((EAGER, TWIN), 0.01),
    "the copy +2.5 %": ((EAGER, TWIN), 0.025),
    "the copy +5 %": ((EAGER, TWIN), 0.05),
}
"""Who competes at a point, and by how much the last one's times are lengthened."""

TRUTHS: dict[str, tuple[Sequence[float], Sequence[float]]] = {
    "2 tied, sd 5 %": ([0, 0], [0.05] * 2),
    "2 tied, sd 0.5 %": ([0, 0], [0.005] * 2),
    "2 at the margin": ([0, math.log1p(MARGIN)], [0.003] * 2),
    "2 that are 2.1 % apart": ([0, math.log(1.021)], [0.005] * 2),
    "2 tied before 5": ([0, 0, 1, 1, 1, 1, 1], [0.05] * 7),
    "7 tied, unlike sd": ([0] * 7, [0.3, 0.1, 0.03, 0.01, 0.3, 0.1, 0.03]),
    "6 behind by the margin": ([0, *[math.log1p(MARGIN)] * 6], [0.003] * 7),
    "1 ahead by 5 %, sd 1 %": ([0, *[math.log(1.05)] * 4], [0.01] * 5),
}
"""Log times, and the standard deviation of each over processes."""

PROCESSES, SECONDS = 30, 600.0

PART = 5
"""So many processes are measured at a time, for the sake of memory."""

VISIT_S = 3.0
"""Seconds for the rounds of a point in a process."""

COUNTS = (3, 5, 10)
"""Processes of a run."""

DRAWS, SIMULATED = 400, 2_000
"""Points that are drawn of each kind from the pool, and from normal samples."""

SMOOTHING = 1.06
"""The width of the kernel over the standard deviation is so much times n to the power of -1/5 (Silverman 1986)."""

Logs = npt.NDArray[np.float64]
"""By process, one and other: how much faster the one is, as a logarithm."""

Said = tuple[str, tuple[int, ...]]
"""What a rule says of a point, and of whom."""

Rule = Callable[[Logs], Said]


@dataclass
class Tally:
    """How often a rule said what, and how often it was wrong."""

    points: int = 0
    winners: int = 0
    wrong_winners: int = 0
    other_winners: int = 0
    ties: int = 0
    wrong_ties: int = 0

    def count(self, said: Said, truth: npt.NDArray[np.float64]) -> None:
        """Count what was said of a point; `truth` is how much faster each is than each, as logarithms."""
        says, members = said
        self.points += 1
        if says == WINNER:
            leads = np.delete(truth[members[0]], members[0])
            self.winners += 1
            self.wrong_winners += bool(leads.min() <= math.log1p(MARGIN) + 1e-12)
            self.other_winners += bool(leads.min() < 0)
        if says == TIE:
            self.ties += 1
            self.wrong_ties += bool(np.abs(truth[np.ix_(members, members)]).max() > math.log1p(EQUIVALENCE))

    def add(self, other: "Tally") -> None:
        """Add the counts of another."""
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def __str__(self) -> str:
        shares = [
            f"{name.replace('_', ' ')} {getattr(self, name) / self.points:6.2%}"
            for name in ("winners", "wrong_winners", "other_winners", "ties", "wrong_ties")
        ]
        return f"{self.points:>6} points: decided {(self.winners + self.ties) / self.points:6.1%}, {', '.join(shares)}"


def present(logs: Logs) -> Said:
    """Return what the ranking says."""
    names = [str(number) for number in range(logs.shape[1])]
    pairs = {
        (names[i], names[j]): logs[:, i, j].tolist()
        for i, j in itertools.combinations_with_replacement(range(len(names)), 2)
    }
    places = ranked(names, pairs, dict.fromkeys(names, 0.0))
    said = next(iter(places.values())).standing or NOT_DECIDED
    return said, tuple(int(name) for name, place in places.items() if place.standing == said)


def before(logs: Logs) -> Said:
    """Return what was said until schema 5: the largest speed-up over the first, and all whose lead may be 1 tie."""
    first = int(np.argmax(logs[:, :, 0].mean(axis=0)))
    leads = {other: ratio(logs[:, first, other].tolist()) for other in range(logs.shape[1]) if other != first}
    tied = tuple(other for other, lead in leads.items() if lead.low <= 1)
    return (TIE, (first, *tied)) if tied else (WINNER, (first,))


RULES: dict[str, Rule] = {"before": before, "now": present}


def collect(folder: Path, processes: int, seconds: float) -> None:
    """Measure the pool into parts of PART processes each; no part is begun after so many seconds.

    A part that is there is not measured again.
    """
    begin = time.monotonic()
    sweep = sweep_of(SHAPES, (TWIN, *LAYERS[1:], COPY), PART, VISIT_S * PART)
    for first in range(0, processes, PART):
        if time.monotonic() - begin > seconds:
            break
        list(run(sweep, folder / f"part{first:03d}"))
        print(f"{first + PART} of {processes} processes, {time.monotonic() - begin:.0f} s", flush=True)


def resample(folder: Path) -> None:
    """Print what both rules say of points that are drawn from the pool."""
    rng = np.random.default_rng(1)
    pool = _pool(folder)
    totals: dict[tuple[int, str, str], Tally] = defaultdict(Tally)
    for (point, field), logs in pool.items():
        truth, sd = logs.mean(axis=0), logs.std(axis=0, ddof=1)
        behind = np.delete(truth[np.argmax(truth.min(axis=1))], np.argmax(truth.min(axis=1)))
        off = ~np.eye(len(truth), dtype=bool)
        print(
            f"{point.name}, {field}: {len(logs)} processes, the fastest leads by {np.expm1(behind.min()):.2%}, "
            f"sd of a log ratio {sd[off].min():.2%} to {sd[off].max():.2%}"
        )
        for processes in COUNTS:
            for name, tally in _tallies(lambda: _drawn(logs, processes, rng), truth, DRAWS).items():  # noqa: B023
                totals[processes, field, name].add(tally)
    _print(totals)


def simulate() -> None:
    """Print what both rules say of points of normal samples."""
    rng = np.random.default_rng(1)
    totals = {}
    for processes, (kind, (times, sds)) in itertools.product(COUNTS, TRUTHS.items()):

        def drawn() -> Logs:
            return _differences(rng.normal(times, sds, (processes, len(times))))  # noqa: B023

        truth = _differences(np.array([times], dtype=np.float64))[0]
        for name, tally in _tallies(drawn, truth, SIMULATED).items():
            totals[processes, kind, name] = tally
    _print(totals)


def stored(folder: Path) -> None:
    """Print what both rules say of each point of a run, and of runs that are drawn with its means and its scatter."""
    rng = np.random.default_rng(1)
    totals: dict[tuple[int, str, str], Tally] = defaultdict(Tally)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for point, records in _by_point(journal.read(folder)).items():
        failed = {record.case.implementation for record in records if record.status != "ok"}
        names = [*dict.fromkeys(r.case.implementation for r in records if r.case.implementation not in failed)]
        logs = _logs(records, names)
        for name, rule in RULES.items():
            says, members = rule(logs)
            counts[name][says] += 1
            print(f"{point.name} {name}: {says}: {', '.join(names[member] for member in members)}")
        for processes in COUNTS:
            for name, tally in _tallies(lambda: _drawn(logs, processes, rng), logs.mean(axis=0), DRAWS).items():  # noqa: B023
                totals[processes, "points like these", name].add(tally)
    for name, count in counts.items():
        print(f"{name}: {dict(count)}")
    _print(totals)


def _tallies(drawn: Callable[[], Logs], truth: npt.NDArray[np.float64], draws: int) -> dict[str, Tally]:
    tallies = {name: Tally() for name in RULES}
    for _ in range(draws):
        logs = drawn()
        for name, rule in RULES.items():
            tallies[name].count(rule(logs), truth)
    return tallies


def _print(totals: dict[tuple[int, str, str], Tally]) -> None:
    for processes in COUNTS:
        print(f"\n{processes} processes")
        for (count, kind, name), tally in totals.items():
            if count == processes:
                print(f"  {kind:<24} {name:<7} {tally}")


def _differences(times: npt.NDArray[np.float64]) -> Logs:
    """Return how much faster each is than each, given log times by process."""
    return np.asarray(times[:, None, :] - times[:, :, None])


def _drawn(logs: Logs, processes: int, rng: Generator) -> Logs:
    """Return processes drawn from the pool with its means and scatter, by a smoothed bootstrap.

    Without smoothing, few processes are often drawn with equal values, so that scatter is missed. The noise is a
    random sum of the pool's own deviations, so that pairs scatter together as they do in the pool.
    """
    count, mean = len(logs), logs.mean(axis=0)
    deviations = (logs - mean) * math.sqrt(count / (count - 1))
    width = SMOOTHING * count**-0.2
    noise = np.tensordot(rng.standard_normal((processes, count)) / math.sqrt(count), deviations, axes=1)
    drawn = deviations[rng.integers(count, size=processes)]
    return np.asarray(mean + (drawn + width * noise) / math.sqrt(1 + width**2))


def _pool(folder: Path) -> dict[tuple[Point, str], Logs]:
    """Return the log ratios of each field at each point, in the processes in which all of it are ok."""
    records = [
        dataclasses.replace(record, process=PART * number + record.process)
        for number, part in enumerate(sorted(folder.glob("part*")))
        for record in journal.read(part)
        if record.status == "ok"
    ]
    return {
        (point, field): logs
        for point, found in _by_point(records).items()
        for field, logs in _fields(found)
        if len(logs) > max(COUNTS)
    }


def _fields(records: Sequence[Record]) -> Iterator[tuple[str, Logs]]:
    for field, (names, planted) in FIELDS.items():
        logs = _logs(records, names)
        last = len(names) - 1
        logs[:, :last, last] += math.log1p(planted)
        logs[:, last, :last] -= math.log1p(planted)
        yield field, logs


def _by_point(records: Sequence[Record]) -> dict[Point, list[Record]]:
    points: dict[Point, list[Record]] = defaultdict(list)
    for record in records:
        points[record.case.point].append(record)
    return points


def _logs(records: Sequence[Record], names: Sequence[str]) -> Logs:
    """Return the log ratios of these implementations in the processes that measured all of them."""
    of = {name: {r.process: r for r in records if r.case.implementation == name} for name in names}
    shared = sorted(set.intersection(*(set(found) for found in of.values())))
    rows = {name: [found[process] for process in shared] for name, found in of.items()}
    by_pair = [[log_ratios(rows[one], rows[other]) for other in names] for one in names]
    return np.moveaxis(np.array(by_pair, dtype=np.float64), -1, 0)


def _main(words: Sequence[str]) -> None:
    match words:
        case ["collect", folder, *rest]:
            collect(Path(folder), int(rest[0]) if rest else PROCESSES, float(rest[1]) if rest[1:] else SECONDS)
        case ["resample", folder]:
            resample(Path(folder))
        case ["simulate"]:
            simulate()
        case ["stored", folder]:
            stored(Path(folder))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    _main(sys.argv[1:])
