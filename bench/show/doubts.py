"""What makes the numbers of a run doubtful: other processes, a slow machine, identical code that differs, flags."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from bench.analyse.control import control
from bench.analyse.flags import SLOW, Flag, flags, legend
from bench.show.rows import Row, measured, plain
from bench.show.text import capital, counted, differences, more, varying
from bench.store import units
from bench.store.table import cases, without_control

MOST_WARNINGS = 2
"""The most kinds of warnings about rows that are said in words at the end of a run."""

FEW = 0.1
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
    rows = _measured(table)
    raised = [flag for row in rows for flag in flags(row)]
    by_letter = {flag.letter: flag for flag in legend(raised)}
    number = Counter(flag.letter for flag in raised)
    return [Warned(by_letter[letter], count, len(rows)) for letter, count in number.most_common()]


def machine(table: pd.DataFrame) -> tuple[bool, str]:
    """Return whether the machine was quiet, and in a sentence what says so.

    `table` has the rows of the control, if the run has one.
    """
    warned = sorted((each for each in warnings(table) if each.flag.of_machine), key=lambda each: each.flag.letter)
    differ, noise = control_warning(table), control_noise(table)
    if differ or warned:
        how = "slow" if [each.flag for each in warned] == [SLOW] and not differ else "not quiet"
        told = [each.flag.of_machine.format(each.where) for each in warned]
        by_control = [f"{capital(differ or noise)}."] if differ or noise else []
        return False, " ".join([f"The machine was {how}.", *(by_control + told if differ else told + by_control)])
    rows = _measured(table)
    if not rows:
        return True, ""
    share = units.percent(max(row["flagged_share"] or 0.0 for row in rows))
    checked = f"; {noise}" if noise else ""
    return True, f"The machine was quiet: at most {share} of the samples of a case were disturbed{checked}."


def _measured(table: pd.DataFrame) -> list[Row]:
    return measured(plain(without_control(table)))


def advice(whole: pd.DataFrame) -> Iterator[str]:
    """Yield what helps against what disturbed the machine, and the warnings about more than a few rows."""
    warned = warnings(whole)
    if of_machine := [each.flag for each in warned if each.flag.of_machine]:
        helps = next((flag.advice for flag in of_machine if flag.advice), "quiet the machine, and measure again")
        yield f"What helps: {helps}."
    others = [each for each in warned if not each.flag.of_machine and each.rows >= FEW * each.of]
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
        f"intervals and bounds are {of.excess:.1f} times as wide"
    )
