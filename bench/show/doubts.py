"""What makes the numbers of a run doubtful: other processes, identical code that differs, flags."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.analyse.control import control
from bench.analyse.flags import Flag, flags, legend
from bench.analyse.rows import grouped
from bench.plan.device import Kind, kind
from bench.show.rows import Row, gpu_state, measured, plain
from bench.show.text import capital, counted, differences, more, varying
from bench.store import units
from bench.store.table import cases, without_control

MOST_WARNINGS = 2
"""The most kinds of warnings about rows that are said in words at the end of a run."""

FEW_ROWS = 0.1
"""A warning about a smaller share of the measured cases stands in the table and on the page alone."""


@dataclass(frozen=True)
class Warned:
    """A flag, the number of rows that have it, and of those that could have."""

    flag: Flag
    rows: int
    of: int

    @property
    def where(self) -> str:
        """The rows that have the flag, in words: `3 of 84 measured cases`."""
        return f"{self.rows} of {counted(self.of, 'measured case')}"

    def __str__(self) -> str:
        """Return the warning in words, with what to do: `3 of 84 measured cases: …; measure again`."""
        return f"{self.where}: {'; '.join(filter(None, (self.flag.meaning, self.flag.advice)))}"


def warnings(table: pd.DataFrame) -> list[Warned]:
    """Return each flag that rows have, with their number, the most frequent first."""
    return _warned(_measured(table))


def _warned(rows: Sequence[Row]) -> list[Warned]:
    raised = [flag for row in rows for flag in flags(row)]
    by_letter = {flag.letter: flag for flag in legend(raised)}
    number = Counter(flag.letter for flag in raised)
    return [Warned(by_letter[letter], count, len(rows)) for letter, count in number.most_common()]


def machine(table: pd.DataFrame) -> tuple[bool, str]:
    """Return whether the machine was quiet, and in a sentence for each kind of device what says so.

    `table` has the rows of the control, if the run has one.
    """
    differ, noise, point = control_warning(table), control_noise(table), control(table).point
    of_kinds = grouped(_measured(table), lambda row: kind(row["device"]))
    told = [
        _of_kind(of, rows, *((differ, noise) if point and point.kind is of else ("", "")))
        for of, rows in of_kinds.items()
    ]
    return all(is_quiet for is_quiet, _ in told), " ".join(filter(None, (sentence for _, sentence in told)))


def _of_kind(of: Kind, rows: Sequence[Row], differ: str, noise: str) -> tuple[bool, str]:
    """Return whether nothing disturbed the rows of a kind of device, and the sentence on it.

    `differ` and `noise` are what the control says, if it says it of this kind.
    """
    quiet, it = ("quiet", "The machine") if of.has_cores else ("steady", f"The {of.title}")
    was = f"{it} was {quiet}" if of.has_cores else it
    told = [each.flag.of_machine.format(each.where) for each in _warned(rows) if each.flag.of_machine]
    if differ or told:
        by_control = [f"{capital(differ or noise)}."] if differ or noise else []
        return False, " ".join([f"{it} was not {quiet}.", *(by_control + told if differ else told + by_control)])
    share = units.percent(max(row["flagged_share"] or 0.0 for row in rows))
    disturbed = f"at most {share} of the samples of a case were disturbed" if of.has_cores else gpu_state(rows)
    facts = "; ".join(filter(None, (disturbed, noise)))
    return True, f"{was}: {facts}." if facts else ""


def _measured(table: pd.DataFrame) -> list[Row]:
    return measured(plain(without_control(table)))


def advice(whole: pd.DataFrame) -> Iterator[str]:
    """Yield what helps against what disturbed the machine, and the warnings about more than a few rows."""
    warned = warnings(whole)
    if of_machine := [each.flag for each in warned if each.flag.of_machine]:
        helps = next((flag.advice for flag in of_machine if flag.advice), "quiet the machine, and measure again")
        yield f"What helps: {helps}."
    others = [each for each in warned if not each.flag.of_machine and each.rows >= FEW_ROWS * each.of]
    yield from (f"{each}." for each in others[:MOST_WARNINGS])


def control_noise(table: pd.DataFrame) -> str:
    """Return by how much a second baseline differed from the first, empty if the run has no control."""
    of = control(table)
    if of.point is None:
        return ""
    ratio = max(of.speedup.value, 1 / of.speedup.value)
    words = differences(of.point, varying(case.point for case in cases(table)))
    return f"a second {of.baseline} differed from the first by up to {more(ratio)}{f' ({words})' if words else ''}"


def control_warning(table: pd.DataFrame) -> str:
    """Return that identical code differs by more than the errors say, empty if it doesn't.

    `table` is the whole table of results, with the rows of the control.
    """
    of = control(table)
    if not of.is_notable:
        return ""
    return (
        f"identical code differs here by more than rounds and processes explain: {control_noise(table)}; so all "
        f"intervals and bounds are {of.widened:.1f} times as wide"
    )
