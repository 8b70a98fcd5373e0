"""Notes about the two runs of a comparison: origins, baseline, common shifts, and the machine's state."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bench.analyse.comparable import CommonShift, StateDifference
from bench.show.text import counted
from bench.stats.between_runs import BetweenRuns
from bench.store import units

NOTHING_IN_DISPUTE = "rerun: no row is in dispute, so nothing was measured again"

STATE = {
    "load_1min": "its load was {:.1f} before BASE and {:.1f} before NEW",
    "preflight.others_cores": "other processes used {:.1f} cores before BASE and {:.1f} before NEW",
    "preflight.spread": "its speed varied by {:.0%} before BASE and {:.0%} before NEW",
}
"""Facts of the machine's state in words."""

PLANNED = {
    "sweep": "sweep {} against {}",
    "baseline": "baseline {} against {}",
    "processes": "processes {} against {}",
    "budget_s": "time for a point {:g} s against {:g} s",
    "race": "race {} against {}",
    "bound": "bound {:.1%} against {:.1%}",
    "within_s": "time for the sweep {} s against {} s",
}
"""Settings of a run in words, that of BASE first."""

OTHER_WAY = {"slower": "faster", "faster": "slower"}


def origins(base: pd.DataFrame, new: pd.DataFrame) -> str:
    """Return which commits were measured, and in how many processes."""
    return f"BASE is {_origin(base)}; NEW is {_origin(new)}"


def _origin(table: pd.DataFrame) -> str:
    commits = ", ".join(table["commit"].dropna().unique()) or "unknown"
    processes = counted(table.loc[table["status"] == "ok", "processes"].dropna().tolist(), "process", "processes")
    return f"commit {commits}" + (f" in {processes}" if processes else "")


def rebased(to: str, baseline: str) -> str:
    """Return that ratios refer to another implementation than the runs' own baseline."""
    return (
        f"baseline: {to} in place of {baseline or 'that of the runs'}; "
        "ratios to it are paired anew from the journals of both runs"
    )


def unknown_baseline(base: str | None, new: str | None) -> str:
    """Return a warning if the baseline of a side is unknown, else an empty text."""
    sides = " and ".join(side for side, baseline in (("BASE", base), ("NEW", new)) if baseline is None)
    if not sides:
        return ""
    return (
        f"warning: the baseline of {sides} is not known, because an older results.csv alone doesn't name it: its own "
        "rows stand among the others, and the two sides may refer to different ones; give the run folder instead"
    )


def rerun(verdicts: Sequence[str], folder: Path) -> str:
    """Return the verdicts of the rows that were measured again, and the folder of their results."""
    became = ", ".join(f"{count} {verdict}" for verdict, count in Counter(verdicts).items())
    rows = counted([len(verdicts)], "row", "rows")
    return (
        f"rerun: {rows} in dispute measured again side by side: {became}; their change is that of the times "
        f"themselves, with a chance of error of its own; everything is in {folder}"
    )


def hint(shift: CommonShift, judging: str) -> str:
    """Return a hint that the baseline may have changed, with an implementation that can replace it."""
    rows = f"{shift.moved} of {shift.judged} judged rows, of {shift.implementations} implementations"
    return (
        f"hint: {rows}, became {shift.verdict} together: {judging or 'the baseline'}, which they refer to, "
        f"may be what became {OTHER_WAY[shift.verdict]}; --baseline {shift.baseline} takes another one"
    )


def state(differences: Sequence[StateDifference]) -> str:
    """Return a warning that the machine's state differed, with advice."""
    facts = []
    for each in differences:
        plain = each.name.rpartition(".")[2].replace("_", " ")
        words = STATE.get(each.name, f"{plain} was {{}} before BASE and {{}} before NEW")
        facts.append(words.format(each.base, each.new))
    return (
        f"warning: the machine was in another state: {'; '.join(facts)}: "
        "quiet it and measure again, or let --rerun measure both sides alternately"
    )


def plans(base: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return how the settings of two runs differ, given the contexts of their environments; empty if alike."""
    sides = [{**side, **(side.get("effort") or {})} for side in (base, new)]
    differences = [
        words.format(*(side[name] for side in sides))
        for name, words in PLANNED.items()
        if all(side.get(name) is not None for side in sides) and sides[0][name] != sides[1][name]
    ]
    return f"BASE and NEW were asked for differently: {'; '.join(differences)}" if differences else ""


def unshared(only_base: Sequence[str], only_new: Sequence[str]) -> str:
    """Return the implementations that only one run measured beside the shared cases, empty if there are none."""
    sides = (("BASE", only_base), ("NEW", only_new))
    alone = "; ".join(f"{', '.join(names)} in {side} alone" for side, names in sides if names)
    if not alone:
        return ""
    return (
        f"warning: cases were measured in rounds with other implementations ({alone}), which can shift a ratio by some "
        "percent; runs of the same implementations compare best"
    )


def speed(factor: float) -> str:
    """Return a warning that the machine may have run at another speed, with advice."""
    return (
        f"warning: the median row takes {factor:.2f} times as long in NEW as in BASE: if the machine's speed is what "
        "changed, ratios between dissimilar kernels shifted with it; --rerun measures changed rows again side by side"
    )


def raw(factor: float) -> str:
    """Return how raw times changed on the whole, which is no part of the changes."""
    return f"raw times: the median row takes {factor:.2f} times as long in NEW as in BASE; changes leave that out"


def widened_by_rows(between_runs: BetweenRuns) -> str:
    """Return the standard deviation between two runs by their rows, which widened the intervals; empty if it is 0."""
    if not between_runs.sd > 0:
        return ""
    return (
        f"rows of these runs differ by {units.percent(between_runs.sd)} (standard deviation) beyond their errors; "
        "intervals contain that"
    )
