"""The samples of cases as a page has them: whole numbers, because a page of a thousand cases holds many."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.analyse.summary import flagged
from bench.plan.case import Case
from bench.store import units
from bench.store.record import Record

STEPS = 1_000
"""A sample is written as its ratio to the case's latency, in steps of a thousandth, which no picture shows."""

MOST_SAMPLES = 250_000
"""The most samples in a page. Of more, each process keeps the same share, evenly spread."""


def by_case(records: Iterable[Record]) -> dict[Case, list[Record]]:
    """Return the records that are ok, by their case."""
    found: dict[Case, list[Record]] = {}
    for record in records:
        if record.status == "ok":
            found.setdefault(record.case, []).append(record)
    return found


def samples(records: Mapping[int, tuple[float, Sequence[Record]]]) -> tuple[dict[int, Any], int]:
    """Return the samples of cases, and of how many samples one is in the page.

    `records` has for each case its latency in seconds and its records. A process is its number, its first round, its
    samples, the places of those that were disturbed, and the median as a ratio and in words. A list of rounds replaces
    the first if rounds are missing.
    """
    total = sum(len(record.samples.rounds) for _, own in records.values() for record in own)
    every = -(-total // MOST_SAMPLES) or 1
    return {
        number: [_process(record, latency_s, every) for record in own]
        for number, (latency_s, own) in records.items()
        if own
    }, every


def _process(record: Record, latency_s: float, every: int) -> list[Any]:
    rounds = record.samples.rounds[::every]
    values = [round(STEPS * value / latency_s) for value in record.samples.values_s[::every]]
    disturbed = [place for place, is_flagged in enumerate([*flagged(record)][::every]) if is_flagged]
    median = statistics.median(values) if values else 0
    text = units.seconds(median / STEPS * latency_s)
    follow = rounds == tuple(range(rounds[0], rounds[0] + len(rounds))) if rounds else True
    return [record.process, (rounds[0] if rounds else 0) if follow else list(rounds), values, disturbed, median, text]
