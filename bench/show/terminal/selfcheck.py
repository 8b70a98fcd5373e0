"""A self-check in the terminal: the measured ratios, and in words what can be claimed on this machine."""

import math
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.analyse.selfcheck import CLAIM, TABLE_ROWS, Finding
from bench.show.point_text import counted, differences, parts, varying
from bench.show.terminal.console import BAD, WARNING, table
from bench.stats.limits import POWER
from bench.store import units

COARSE = 0.05
"""A machine that can't show a change of 5 % at the processes of a claim is unfit for most claims."""


def render(findings: Sequence[Finding]) -> RenderableType:
    """Return the ratio at each point, the smallest detectable changes, and what that means."""
    verdicts = [line for finding in findings for line in _verdict(finding)]
    return Group(_ratios(findings), Text(), _detectable(findings), Text(), *verdicts, *_caveats(findings))


def progress_line(number: int, planned: int, elapsed_s: float) -> str:
    """Return one line on the processes that are done."""
    return f"{number:>2} of {planned} processes, {units.duration(elapsed_s)}"


def _ratios(findings: Sequence[Finding]) -> Table:
    points = [point for finding in findings for point in finding.ratios]
    columns = varying(points) | {"threads"}
    title = " · ".join(parts(points[0], without=columns))
    ratios = table(title, numbers=["copy as fast as eager", "processes"])
    for finding in findings:
        for point, ratio in finding.ratios.items():
            interval = f"{ratio.value:.4f}x [{ratio.low:.4f}, {ratio.high:.4f}]"
            ratios.add_row(differences(point, columns), interval, str(finding.processes))
    return ratios


def _detectable(findings: Sequence[Finding]) -> Table:
    counts = [f"{count} processes" for count in findings[0].detectable]
    title = f"smallest change found in {POWER:.0%} of comparisons"
    changes = table(title, numbers=counts)
    for finding in findings:
        changes.add_row(_threads(finding), *(units.percent(share) for share in finding.detectable.values()))
    return changes


def _verdict(finding: Finding) -> Iterator[Text]:
    share = finding.detectable[CLAIM]
    least = f"a change of {units.percent(share)} or more"
    style = WARNING if share > COARSE else ""
    yield Text(f"{_threads(finding)}, {CLAIM} processes: {least} can be claimed, a smaller one mostly can't.", style)
    if finding.between_runs.sd > 0:
        yield Text(
            f"  Minutes apart, ratios differ by {units.percent(finding.between_runs.sd)} (standard deviation) beyond "
            "their processes: comparisons of runs here widen their intervals by it."
        )
    if not math.isnan(finding.rounds_share):
        better = "a larger --budget-s" if finding.rounds_share > 1 / 2 else "more --processes"
        yield Text(
            f"  Of the variance between processes, {finding.rounds_share:.0%} comes from their rounds: at points like "
            f"these, {better} narrows intervals most."
        )
    if share > COARSE:
        yield Text("  That is coarse: use fewer threads or a quieter machine, or claim large changes alone.", style)
    if not finding.is_sound:
        yield Text("  A copy differs from its original by more than chance explains: no claim holds here.", BAD)


def _caveats(findings: Sequence[Finding]) -> Iterator[Text]:
    yield Text(
        f"Counted for one row that changed in a table of {TABLE_ROWS}; in a smaller table a smaller change is found."
    )
    yield Text("This holds for ratios to a baseline, as busy as the machine was these minutes; raw times drift more.")
    if min(finding.processes for finding in findings) < CLAIM:
        yield Text(f"Time allowed fewer than {CLAIM} processes, so the scatter itself is known less well.", WARNING)


def _threads(finding: Finding) -> str:
    return counted([finding.threads], "thread", "threads")
