"""The course of a run: what the choice at each point could cost at most, after each of its replicates."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from bench.analyse.race import Look
from bench.analyse.summary import of_records, timed_s
from bench.plan.case import Point
from bench.store.record import Record

INTERRUPTED = 10
"""A run was interrupted if a replicate seems to have taken so many times as long as usual. In five stored runs, first
compilations included, none took more than 5.1 times as long."""


@dataclass(frozen=True)
class Step:
    """A look at the first replicates of a point.

    `end_s` are the seconds of the run until the last of them ended. `answers` is true for the first look from which on
    the point is answered.
    """

    point: Point
    end_s: float
    look: Look
    answers: bool


def course(records: Sequence[Record], baseline: str, bound: float) -> Iterator[Step]:
    """Yield the looks at each point of a run from its second replicate on, with the errors of the whole run.

    Looks that name no implementation, or without an error, are left out, and all if the times of records are no times.
    """
    summary = of_records(records, baseline)
    try:
        ends_s = _ends_s(records)
    except ValueError:  # a journal that was written by hand
        return
    for point in summary:
        looks = summary.looks(point, bound)
        answered = len(looks)
        while answered and looks[answered - 1][1].is_answered:
            answered -= 1
        for number, (began, look) in enumerate(looks):
            if look.named and not math.isnan(look.bound):
                yield Step(point, ends_s[began], look, number == answered)


def _ends_s(records: Sequence[Record]) -> Mapping[str, float]:
    """Return when the replicates of a run ended, by the time at which they began, without interruptions.

    A replicate ends when the next one begins. Of the last one, and of one before an interruption, that is unknown: it
    takes as long as usual, which is the time of its samples and, for each of its records, the median of the time beside
    them. Raises ValueError for a beginning that is no time.
    """
    members, samples_s = Counter[str](), defaultdict[str, float](float)
    for record in records:
        members[record.origin.started_at] += 1
        samples_s[record.origin.started_at] += timed_s(record)
    began = sorted(members, key=datetime.fromisoformat)
    counts, least_s = (np.array([of[each] for each in began]) for of in (members, samples_s))
    took_s = np.diff([datetime.fromisoformat(each).timestamp() for each in began], append=math.inf)
    beside_s = (took_s - least_s)[:-1] / counts[:-1]
    usual_s = least_s + counts * (max(0.0, np.median(beside_s)) if beside_s.size else 0.0)
    ends_s = np.cumsum(np.where(took_s <= INTERRUPTED * usual_s, took_s, usual_s))
    return dict(zip(began, ends_s.tolist(), strict=True))
