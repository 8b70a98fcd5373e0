"""Values that follow from the rows of a table, computed when it is read."""

import math
from collections.abc import Sequence

from bench.analyse.scaling.crossover import times_as_fast
from bench.analyse.scaling.series import Row

LAUNCH_SHARE = 0.9
"""A loop of calls waits for the host if submitting a call takes at least this share of the device's time."""

COMPILED = "compiled_"


def launch_bound(row: Row) -> bool | None:
    """Return whether the host takes as long to submit a call as the device to do it, None if that isn't known."""
    if row["host_s"] is None or row["latency_s"] is None:
        return None
    return bool(row["host_s"] >= LAUNCH_SHARE * row["latency_s"])


def calls_until_paid(row: Row, others: Sequence[Row], baseline: str | None) -> float | None:
    """Return the number of calls after which compiling has paid, infinite if the compiled layer is slower.

    The gain is the difference to the uncompiled implementation, or to the baseline if that wasn't measured. Both times
    follow from their paired ratios to the baseline, if they have them.
    None if the layer wasn't compiled, if there is no row to compare it with, or if neither is shown to be faster.
    """
    if row["compile_cold_s"] is None or row["latency_s"] is None:
        return None
    measured = {other["implementation"]: other for other in others if other["status"] == "ok"}
    base = measured.get(baseline)
    name = str(row["implementation"])
    plain = (name.startswith(COMPILED) and measured.get(name.removeprefix(COMPILED))) or base
    if plain is None:
        return None
    gain = times_as_fast(row, plain)
    if not gain.is_known or gain.low <= 1 <= gain.high:
        return None
    gained_s = _paired_s(plain, base) - _paired_s(row, base)
    return math.ceil(row["compile_cold_s"] / gained_s) if gained_s > 0 else math.inf


def _paired_s(row: Row, base: Row | None) -> float:
    """Return the seconds of a call by its ratio to the baseline, which noise moves less than the latency itself."""
    if base is None or row["speedup"] is None:
        return float(row["latency_s"])
    return float(base["latency_s"] / row["speedup"])
