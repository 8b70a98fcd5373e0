"""What is said of items of different lengths: where packing them is faster than padding them, and by how much."""

from collections.abc import Iterator, Sequence

from bench.analyse.padding import Packing, packing, series
from bench.plan.verdicts import FASTER, OPEN, SLOWER
from bench.show.answer import At
from bench.show.rows import measured
from bench.show.text import capital, differences, varying
from bench.store import units

FINDINGS = {
    FASTER: "packed is faster",
    SLOWER: "padded is faster",
    OPEN: "neither packed nor padded is shown to be faster",
}
"""What the verdict on packed items means, in the order in which they are said."""


def words(points: Sequence[At]) -> list[str]:
    """Return a sentence for the points that differ in lengths alone: of the best that packs and the best that pads.

    It names measured shares of padding alone, and says nothing of those between them.
    """
    found = series(each for at in points if (each := packing(at.point, measured(at.rows))))
    different = varying(group[0].point for group in found) - {"lengths"}
    return [sentence(group, differences(group[0].point, different) if different else "") for group in found]


def sentence(group: Sequence[Packing], where: str = "") -> str:
    """Return what is found at the points of a series: of those where one is faster, the ratios at both ends."""
    parts = [*_parts(group)]
    return capital(f"{f'at {where} ' if where else ''}{'; '.join(parts)}.")


def _parts(group: Sequence[Packing]) -> Iterator[str]:
    for verdict, finding in FINDINGS.items():
        if own := [each for each in group if each.verdict == verdict]:
            shares = [units.percent(each.padding, trim=True) for each in own]
            *some, last = dict.fromkeys(shares)
            at = f"{', '.join(some)} and {last}" if some else last
            ends = dict.fromkeys((own[0], own[-1]))
            ratios = ", ".join(_ratio(each, named=len(ends) > 1) for each in ends)
            yield f"{finding} at {at} padding{'' if verdict == OPEN else f': {ratios}'}"


def _ratio(of: Packing, *, named: bool) -> str:
    """Return the shares of time and memory that the one that packs takes."""
    where = f"at {units.percent(of.padding, trim=True)} " if named else ""
    memory = "" if of.memory_share is None else f" and {_of(of.memory_share, 'its memory')}"
    time = _of(of.time_share, f"{of.padded}'s time")
    return f"{where}{of.packed} takes {time}{memory}"


def _of(share: float, what: str) -> str:
    return f"{units.significant(share, digits=2)} {'of' if share < 1 else 'times'} {what}"
