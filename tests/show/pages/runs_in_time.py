"""Runs of one small sweep on several days, for tests of histories and comparisons."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from bench.plan.case import Case
from tests import examples
from tests.examples import point


def weekly(folder: Path, sdpa_s: Sequence[float], processes: int = 6) -> list[Path]:
    """Write a run for each latency of sdpa, a week apart, where eager takes a second; return their folders."""
    folder.mkdir(exist_ok=True)
    found = []
    for number, latency_s in enumerate(sdpa_s):
        origin = dataclasses.replace(
            examples.ORIGIN, started_at=f"2026-01-{1 + 7 * number:02d}T12:00:00Z", torch_version=f"2.{10 + number}.0"
        )
        records = [
            examples.measured(Case(point(num_tokens=tokens), name), process, value, origin=origin, seed=str(number))
            for tokens in (50, 197)
            for name, value in (("eager", 1.0), ("sdpa", latency_s))
            for process in range(processes)
        ]
        found.append(examples.saved(folder / f"week-{number + 1}", records, examples.environment()))
    return found
