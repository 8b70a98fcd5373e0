"""A self-check in the terminal: the measured ratios, and in words what can be claimed on this machine."""

import math
from collections.abc import Iterator, Sequence

from bench.analyse.selfcheck import CLAIM, TABLE_ROWS, Finding
from bench.show.blocks import BAD, GAP, PLAIN, WARNING, Block, Lines, Table, of_texts
from bench.show.text import counted, differences, parts, varying
from bench.stats.limits import POWER
from bench.store import units

COARSE = 0.05
"""A machine that can't show a change of 5 % at the processes of a claim is unfit for most claims."""


def blocks(findings: Sequence[Finding]) -> list[Block]:
    """Return the ratio at each point, the smallest detectable changes, and what that means."""
    verdicts = [line for finding in findings for line in _verdict(finding)]
    return [_ratios(findings), GAP, _detectable(findings), GAP, *verdicts, *_caveats(findings)]


def progress_line(number: int, planned: int, elapsed_s: float) -> str:
    """Return one line on the processes that are done."""
    return f"{number:>2} of {planned} processes, {units.duration(elapsed_s)}"


def _ratios(findings: Sequence[Finding]) -> Table:
    points = [point for finding in findings for point in finding.ratios]
    columns = varying(points) | {"threads"}
    rows = [
        (
            differences(point, columns),
            f"{ratio.value:.4f}x [{ratio.low:.4f}, {ratio.high:.4f}]",
            str(finding.processes),
        )
        for finding in findings
        for point, ratio in finding.ratios.items()
    ]
    numbers = ("copy as fast as eager", "processes")
    return of_texts([" · ".join(parts(points[0], without=columns)), *numbers], rows, numbers=numbers)


def _detectable(findings: Sequence[Finding]) -> Table:
    counts = [f"{count} processes" for count in findings[0].detectable]
    rows = [(_threads(of), *map(units.percent, of.detectable.values())) for of in findings]
    return of_texts([f"smallest change found in {POWER:.0%} of comparisons", *counts], rows, numbers=counts)


def _verdict(finding: Finding) -> Iterator[Lines]:
    share = finding.detectable[CLAIM]
    least = f"a change of {units.percent(share)} or more"
    tone = WARNING if share > COARSE else PLAIN
    yield Lines([f"{_threads(finding)}, {CLAIM} processes: {least} can be claimed, a smaller one mostly can't."], tone)
    reasons = []
    if finding.between_runs.sd > 0:
        reasons.append(
            f"Minutes apart, ratios differ by {units.percent(finding.between_runs.sd)} (standard deviation) beyond "
            "their processes: comparisons of runs here widen their intervals by it."
        )
    if not math.isnan(finding.rounds_share):
        better = "a larger --budget-s" if finding.rounds_share > 1 / 2 else "more --processes"
        reasons.append(
            f"Of the variance between processes, {finding.rounds_share:.0%} comes from their rounds: at points like "
            f"these, {better} narrows intervals most."
        )
    yield Lines(reasons, indent=2)
    if share > COARSE:
        advice = "That is coarse: use fewer threads or a quieter machine, or claim large changes alone."
        yield Lines([advice], tone, indent=2)
    if not finding.is_sound:
        why = "A copy differs from its original by more than chance explains: no claim holds here."
        yield Lines([why], BAD, indent=2)


def _caveats(findings: Sequence[Finding]) -> Iterator[Lines]:
    counted_for = f"Counted for one row that changed in a table of {TABLE_ROWS}"
    yield Lines([f"{counted_for}; in a smaller table a smaller change is found."])
    yield Lines(
        ["This holds for ratios to a baseline, as busy as the machine was these minutes; raw times drift more."]
    )
    if min(finding.processes for finding in findings) < CLAIM:
        yield Lines([f"Time allowed fewer than {CLAIM} processes, so the scatter itself is known less well."], WARNING)


def _threads(finding: Finding) -> str:
    return counted([finding.threads], "thread", "threads")
