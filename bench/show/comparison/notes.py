"""Notes about the two runs of a comparison: the words of each kind, and what has to be true for it."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pandas as pd

from bench.analyse.change import Change
from bench.analyse.comparable import common_shift, is_steady, raw_change, state_differences, unmatched
from bench.plan.verdicts import FASTER, SLOWER
from bench.show.text import counted
from bench.stats.between_runs import BetweenRuns
from bench.store import units
from bench.store.saved_run import SavedRun

WORDS = {
    "asked": "BASE and NEW were asked for differently: {}",
    "rounds": "warning: cases were measured in rounds with other implementations ({}), which can shift a ratio by some "
    "percent; runs of the same implementations compare best",
    "origins": "BASE is {}; NEW is {}",
    "rebased": "baseline: {} in place of {}; ratios to it are paired anew from the journals of both runs",
    "unknown baseline": "warning: the baseline of {} is not known, because an older results.csv alone doesn't name it: "
    "its own rows stand among the others, and the two sides may refer to different ones; give the run folder instead",
    "state": "warning: the machine was in another state: {}: quiet it and measure again, or measure both "
    "sides in a duel",
    "speed": "warning: the median row takes {:.2f} times as long in NEW as in BASE: if the machine's speed is what "
    "changed, ratios between dissimilar kernels shifted with it; a duel measures both sides in turn",
    "raw": "raw times: the median row takes {:.2f} times as long in NEW as in BASE; changes leave that out",
    "scatter": "rows of these runs differ by {} (standard deviation) beyond their errors; intervals contain that",
    "shift": "hint: {} of {} judged rows, of {} implementations, became {} together: {}, which they refer to, may be "
    "what became {}; --baseline {} takes another one",
}
"""The words of each kind of note, with places for what it names."""

STATE = {
    "load_1min": "its load was {:.1f} before BASE and {:.1f} before NEW",
    "preflight.others_cores": "other processes used {:.1f} cores before BASE and {:.1f} before NEW",
    "preflight.spread": "its speed varied by {:.0%} before BASE and {:.0%} before NEW",
}
"""Facts of the machine's state in words."""

ASKED = {
    "sweep": "sweep {} against {}",
    "baseline": "baseline {} against {}",
    "processes": "processes {} against {}",
    "budget_s": "time for a point {:g} s against {:g} s",
    "race": "race {} against {}",
    "bound": "bound {:.1%} against {:.1%}",
    "within_s": "time for the sweep {} s against {} s",
}
"""Settings of a run in words, that of BASE first."""

OTHER_WAY = {SLOWER: FASTER, FASTER: SLOWER}


class Note(NamedTuple):
    """A kind of note, and what it names."""

    kind: str
    facts: tuple[object, ...] = ()

    def __str__(self) -> str:
        """Return the note in words."""
        return WORDS[self.kind].format(*self.facts)


def unlike(base: SavedRun, new: SavedRun) -> Iterator[Note]:
    """Yield in what the settings of two runs differ, and the implementations that one alone had in its rounds."""
    sides = [_asked(run) for run in (base, new)]
    asked = [
        words.format(*(side[name] for side in sides))
        for name, words in ASKED.items()
        if all(side.get(name) is not None for side in sides) and sides[0][name] != sides[1][name]
    ]
    if asked:
        yield Note("asked", ("; ".join(asked),))
    alone = zip(("BASE", "NEW"), unmatched(base.table, new.table), strict=True)
    if others := [f"{', '.join(names)} in {side} alone" for side, names in alone if names]:
        yield Note("rounds", ("; ".join(others),))


def _asked(run: SavedRun) -> dict[str, Any]:
    """Return the settings of a run by their names, as far as they are known."""
    sweep = run.environment.context.get("sweep") if run.environment else None
    effort = run.again.effort
    return {"sweep": sweep, "baseline": run.baseline, **(vars(effort) if effort else {})}


def about(
    base: SavedRun, new: SavedRun, rebased_to: str, changes: Sequence[Change], by_rows: BetweenRuns
) -> Iterator[Note]:
    """Yield origins, baseline, the machine's state and speed, the scatter between runs, and a shift of most rows.

    `rebased_to` is the implementation that replaced the baseline, `by_rows` the scatter that widened intervals.
    """
    yield Note("origins", (_origin(base.table), _origin(new.table)))
    unknown = [side for side, run in (("BASE", base), ("NEW", new)) if run.baseline is None]
    if rebased_to:
        yield Note("rebased", (rebased_to, base.baseline or "that of the runs"))
    elif unknown:
        yield Note("unknown baseline", (" and ".join(unknown),))
    if base.environment and new.environment and (differences := state_differences(base.environment, new.environment)):
        yield Note("state", ("; ".join(_state(name).format(*values) for name, values in differences.items()),))
    if factor := raw_change(changes):
        yield Note("raw" if is_steady(factor) else "speed", (factor,))
    if by_rows.sd > 0:
        yield Note("scatter", (units.percent(by_rows.sd),))
    if shift := common_shift(changes):
        baseline, other = rebased_to or base.baseline or "the baseline", OTHER_WAY[shift.verdict]
        of = shift.moved, shift.judged, shift.implementations, shift.verdict
        yield Note("shift", (*of, baseline, other, shift.baseline))


def _origin(table: pd.DataFrame) -> str:
    """Return which commits were measured, and in how many processes."""
    commits = ", ".join(table["commit"].dropna().unique()) or "unknown"
    processes = counted(table.loc[table["status"] == "ok", "processes"].dropna().tolist(), "process", "processes")
    return f"commit {commits}" + (f" in {processes}" if processes else "")


def _state(name: str) -> str:
    plain = name.rpartition(".")[2].replace("_", " ")
    return STATE.get(name, f"{plain} was {{}} before BASE and {{}} before NEW")
