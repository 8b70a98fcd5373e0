"""The findings of a self-check: the scatter of an unchanged ratio, and the changes that a comparison can detect."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.plan.case import Point
from bench.stats.limits import LEVEL
from bench.stats.occasions import Between, between
from bench.stats.power import Redrawn, detectable, pooled_sd, redrawn
from bench.stats.replicates import Estimate, ratio

PROCESSES = (3, 5, 10, 20)
"""A quick look, a usual run, a claim, and twice that."""

CLAIM = 10
"""The processes of a claim; the kept result of a self-check is that for runs with this number."""

Row = Sequence[Sequence[float]]
"""Log ratios of the processes of each occasion."""

SEED = 20_200_914
"""Fixed, so that the same values give the same findings."""


@dataclass(frozen=True)
class Finding:
    """The result with one number of threads: ratios of a copy to its original, and simulated comparisons.

    `rounds_share` is the part of the variance between processes that comes from their rounds.
    The keys of `detectable` and `redrawn` are the processes of each of the two compared runs.
    """

    threads: int
    processes: int
    ratios: Mapping[Point, Estimate]
    sd: float
    between: Between
    rounds_share: float
    detectable: Mapping[int, float]
    redrawn: Mapping[int, Redrawn]

    @property
    def is_sound(self) -> bool:
        """Whether tables without a change have few alarms: the expected number and three standard deviations more."""
        return all(
            each.tables_with_alarm <= LEVEL * each.tables + 3 * math.sqrt(LEVEL * each.tables)
            for each in self.redrawn.values()
        )


def findings(
    logs: Mapping[Point, Sequence[float]],
    occasions: Mapping[Point, Sequence[Row]],
    errors: Mapping[Point, Sequence[float]],
) -> list[Finding]:
    """Return a finding for each number of threads, given the log ratios of each point's processes.

    `occasions` has rows of the same and of other ratios, grouped by the occasions of their measurement.
    `errors` has the standard errors of the same ratios that come from rounds.
    Points that were measured in fewer than two processes are left out.
    """
    known = {point: values for point, values in logs.items() if len(values) > 1}
    threads = sorted({point.threads for point in known})
    return [
        _finding(
            count,
            {point: values for point, values in known.items() if point.threads == count},
            between([row for point, rows in occasions.items() if point.threads == count for row in rows]),
            [error for point, values in errors.items() if point.threads == count for error in values],
        )
        for count in threads
    ]


def as_state(all_findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the part of a self-check that environment.json keeps."""
    claims = [finding.redrawn[CLAIM] for finding in all_findings]
    return {
        "detectable": {str(finding.threads): round(finding.detectable[CLAIM], 4) for finding in all_findings},
        "between": {
            str(finding.threads): [round(finding.between.sd, 5), round(finding.between.freedom, 1)]
            for finding in all_findings
            if not math.isnan(finding.between.sd)
        },
        "false_alarms": sum(claim.false_alarms for claim in claims),
        "rows": sum(claim.rows for claim in claims),
        "processes": CLAIM,
    }


def _finding(threads: int, logs: Mapping[Point, Sequence[float]], apart: Between, errors: Sequence[float]) -> Finding:
    values = [*logs.values()]
    sd, between_sd = pooled_sd(values), 0.0 if math.isnan(apart.sd) else apart.sd
    return Finding(
        threads=threads,
        processes=min(map(len, values)),
        ratios={point: ratio(own) for point, own in logs.items()},
        sd=sd,
        between=apart,
        rounds_share=min(1.0, float(np.mean(np.square(errors))) / sd**2) if errors and sd else math.nan,
        detectable={count: detectable(sd, count, between_sd=between_sd) for count in PROCESSES},
        redrawn={count: redrawn(values, count, SEED) for count in PROCESSES},
    )
