"""The rows of a duel: the times of two sides at each point, and the verdict on their ratio."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.analyse.summary import values_of
from bench.plan.case import Point
from bench.stats.contrasts import contrasts, prior
from bench.stats.estimates import Estimates, joined
from bench.stats.limits import Limits
from bench.stats.sequential import USUAL, Judgement, judge
from bench.store.record import STATUSES, Record

Sides = tuple[Sequence[Record], Sequence[Record]]
"""The records of a point, side A's and side B's; those of one process number were measured in the same rounds."""


@dataclass(frozen=True)
class Row:
    """A point of a duel: B is `judgement.ratio` times as fast as A; `detail` is the reason if a side has no time."""

    point: Point
    judgement: Judgement
    detail: str = ""
    latencies_s: tuple[float, float] = (math.nan, math.nan)

    @property
    def is_measured(self) -> bool:
        """Whether both sides could be measured."""
        return not self.detail

    @property
    def is_decided(self) -> bool:
        """Whether no more needs to be measured."""
        return self.judgement.is_decided or not self.is_measured


def rows(sides: Mapping[Point, Sides], looks: Sequence[int], limits: Limits = USUAL) -> list[Row]:
    """Return the rows, judged together by the looks taken so far."""
    details = [_detail(of) for of in sides.values()]
    shared = [[] if detail else _shared(of) for detail, of in zip(details, sides.values(), strict=True)]
    both = list(sides.values())

    def estimates(asked: Sequence[int], look: int) -> Estimates:
        of = [
            values_of({
                name: [record for record in side if record.process in shared[row][:look]]
                for name, side in zip("AB", both[row], strict=True)
            })
            for row in asked
        ]  # fmt: skip
        lent = prior(of)
        return joined(contrasts(each, lent).speedup("B", "A") for each in of)

    judgements = judge([*map(len, shared)], estimates, looks, limits)
    return [
        Row(point, judgement, detail, (_latency_s(a), _latency_s(b)))
        for (point, (a, b)), judgement, detail in zip(sides.items(), judgements, details, strict=True)
    ]


def _shared(sides: Sides) -> list[int]:
    """Return the numbers of the processes that measured both sides."""
    a, b = ({record.process for record in side if record.samples.rounds} for side in sides)
    return sorted(a & b)


def _detail(sides: Sides) -> str:
    """Return why a side could not be measured, without a side that was skipped because the other failed."""
    reasons = {}
    for name, records in zip("AB", sides, strict=True):
        worst = max(records, key=lambda record: STATUSES.index(record.status), default=None)
        if worst is not None and worst.status != "ok":
            reasons[f"{name} {worst.status}: {worst.detail}"] = worst.status != "skipped"
    return "; ".join(reason for reason, is_own in reasons.items() if is_own or not any(reasons.values()))


def _latency_s(records: Sequence[Record]) -> float:
    """Return the median of the processes' medians, NaN if a side has no time."""
    medians = [float(np.median(record.samples.values_s)) for record in records if record.samples.rounds]
    return float(np.median(medians)) if medians else math.nan
