"""The findings of a self-check: the scatter of an unchanged ratio, and the changes that a comparison can detect."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.analyse.summary import values_of
from bench.plan.case import Point
from bench.stats.between_runs import BetweenRuns, of_occasions
from bench.stats.contrasts import Values, contrasts, normal_scores, prior
from bench.stats.estimates import Array, Estimates, Interval, intervals, joined
from bench.stats.limits import LEVEL, MARGIN, detectable
from bench.store.record import Record

PROCESSES = (3, 5, 10, 20)
"""A quick look, a usual run, a claim, and twice that."""

CLAIM = 10
"""The processes of a claim; the kept result of a self-check is that for runs with this number."""

TABLE_ROWS = 50
"""The rows of the table in which a change stands: a sweep of some ten points; Holm's correction starts from them."""

OCCASION = 2
"""The processes of an occasion: those that are measured one after the other."""

MOST_SCORE = 3.3
"""A deviation of the copy by more standard errors has a chance of one in a thousand."""


@dataclass(frozen=True)
class Finding:
    """The result with one number of threads: the ratios of a copy to its original, and what can be detected.

    `rounds_share` is the part of the variance between processes that comes from their rounds. The keys of `detectable`
    are the processes of each of the two compared runs.
    """

    threads: int
    processes: int
    ratios: Mapping[Point, Interval]
    between_runs: BetweenRuns
    rounds_share: float
    detectable: Mapping[int, float]
    is_sound: bool
    """Whether the copy differs from its original by no more than chance explains."""


def findings(records: Mapping[Point, Mapping[str, Sequence[Record]]], original: str, copy: str) -> list[Finding]:
    """Return a finding for each number of threads, given the records of each point by implementation, all of them ok.

    Points that were measured in fewer than two processes are left out.
    """
    points = {point: values_of(of) for point, of in records.items()}
    usable = {point: of for point, of in points.items() if {original, copy} <= {*of.names} and of.freedom > 0}
    threads = sorted({point.threads for point in usable})
    return [
        _finding(count, {point: of for point, of in usable.items() if point.threads == count}, original, copy)
        for count in threads
    ]


def as_state(all_findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the part of a self-check that environment.json keeps."""
    return {
        "detectable": {str(finding.threads): round(finding.detectable[CLAIM], 4) for finding in all_findings},
        "between": {
            str(finding.threads): [round(finding.between_runs.sd, 5), round(finding.between_runs.freedom, 1)]
            for finding in all_findings
            if not math.isnan(finding.between_runs.sd)
        },
        "processes": CLAIM,
    }


def _finding(threads: int, points: Mapping[Point, Values], original: str, copy: str) -> Finding:
    lent = prior([*points.values()])
    logs = joined(contrasts(of, lent).speedup(copy, original) for of in points.values())
    processes = min(of.logs.shape[1] for of in points.values())
    rounds = float(np.mean([np.nanmean(of.variances) for of in points.values()]))
    between_runs = of_occasions([row for of in points.values() for row in _by_occasion(of, original)])
    return Finding(
        threads=threads,
        processes=processes,
        ratios=dict(zip(points, (each.exp() for each in intervals(logs)), strict=True)),
        between_runs=between_runs,
        rounds_share=rounds / (rounds + lent.process_variance),
        detectable={count: _detectable(logs, processes / count, between_runs) for count in PROCESSES},
        is_sound=bool(np.all(np.abs(normal_scores(logs)) < MOST_SCORE)),
    )


def _detectable(of: Estimates, share: float, between_runs: BetweenRuns) -> float:
    """Return the smallest change that a comparison of two runs shows, each with so many times the error's variance."""
    run_variance = 0.0 if math.isnan(between_runs.sd) else between_runs.sd**2
    error = np.sqrt(2 * (of.error**2 * share + run_variance))
    return detectable(Estimates(of.value, error, 2 * of.freedom), MARGIN, LEVEL / TABLE_ROWS)


def _by_occasion(of: Values, original: str) -> list[Array]:
    """Return for each other implementation its log ratios to the original [occasions, processes]."""
    logs = of.logs[of.names.index(original)] - of.logs
    whole = logs.shape[1] // OCCASION * OCCASION
    return [
        row[:whole].reshape(-1, OCCASION)
        for name, row in zip(of.names, logs, strict=True)
        if name != original and not np.isnan(row).any()
    ]
