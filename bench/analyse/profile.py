"""Values that follow from a profile."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import pandas as pd

from bench.analyse.comparable import is_steady
from bench.store.profile import CORE, STREAM, Block, Profile, Span, Stage

HEAVY = 0.2
"""If calls with and without the profiler differ by more than this share, times of the profile can't be trusted."""


@dataclass(frozen=True)
class Peak:
    """The most bytes that were live at once in the median call, from when on, and in which blocks."""

    bytes: int
    at_s: float
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Kernel:
    """A kernel or copy of the median call; `start_s` counts from the beginning of the first one.

    `gap_s` is the time before it in which no kernel of the call ran.
    """

    span: Span
    start_s: float
    gap_s: float


def overhead(profile: Profile) -> float:
    """Return the share of its latency by which the profiler slowed the case down."""
    return profile.profiled_s / profile.timed_s - 1


def distortion(profile: Profile) -> str:
    """Return why the times of a profile can't be trusted, empty if they can."""
    share = overhead(profile)
    if share > HEAVY and is_on_gpu(profile):
        return (
            f"Under the profiler a call takes {share:.0%} longer: the host launches more slowly, so the gaps between "
            "kernels are longer than without it. The times of kernels hold."
        )
    if share > HEAVY:
        return (
            f"The profiler slows it down by more than {HEAVY:.0%}: trust counts, bytes and the order of "
            "operators, not their times. A larger batch or more tokens make operators outlast their recording."
        )
    if share < -HEAVY:
        what, again = ("GPU", "") if is_on_gpu(profile) else ("machine", " on a quiet machine")
        return (
            f"Calls took {-share:.0%} less time with the profiler than without, though it can only slow them down: the "
            f"{what} changed its speed meanwhile. Trust counts and bytes, or profile it again{again}."
        )
    return ""


def slowdown(profile: Profile, latency_s: float, low_s: float | None, high_s: float | None) -> float | None:
    """Return the unprofiled time of a call relative to its latency in the run; None if that is everyday drift.

    `low_s` and `high_s` are the ends of the run's interval, None if it has none.
    """
    factor = profile.timed_s / latency_s
    within = (low_s or latency_s) <= profile.timed_s <= (high_s or latency_s)
    return None if within or is_steady(factor) else factor


def is_on_gpu(profile: Profile) -> bool:
    """Return whether operators have a GPU's times."""
    return any(operator.device_s is not None for operator in profile.operators)


def shares(profile: Profile) -> tuple[float, ...]:
    """Return each operator's share in the time of all."""
    return _shares([operator.time_s for operator in profile.operators])


def unnamed_s(profile: Profile) -> float:
    """Return the host's time in a profiled call outside all operators: Python, and freeing memory."""
    return profile.profiled_s - sum(operator.self_s for operator in profile.operators)


def stage_shares(profile: Profile) -> tuple[float, ...]:
    """Return each stage's share in the time of all stages."""
    return _shares([stage.time_s for stage in profile.stages])


def stage_sum_s(profile: Profile) -> float:
    """Return the sum of the times of all stages."""
    return sum(stage.time_s for stage in profile.stages)


def core_share(profile: Profile) -> float:
    """Return the share of attention cores in the time of all stages; 0 if none of these is a core."""
    pairs = zip(profile.stages, stage_shares(profile), strict=True)
    return sum(share for stage, share in pairs if stage.name.startswith(CORE))


def whole_s(profile: Profile) -> float:
    """Return the time of a call that those of its parts are set against: on a GPU that of all its kernels."""
    return sum(operator.time_s for operator in profile.operators) if is_on_gpu(profile) else profile.timed_s


def residual_s(profile: Profile) -> float:
    """Return the layer's time without that of its stages: below 0 if the profiler slowed the stages down."""
    return whole_s(profile) - stage_sum_s(profile)


def rate(stage: Stage) -> float | None:
    """Return a stage's floating-point operations per second, None if they are not known."""
    return None if stage.flops is None or not stage.time_s else stage.flops / stage.time_s


def kernels(profile: Profile) -> tuple[Kernel, ...]:
    """Return the kernels and copies of the median call on a GPU, in the order in which they began; none on a CPU."""
    ran = sorted((span for span in profile.spans if span.lane.startswith(STREAM)), key=lambda span: span.start_s)
    ends_s = accumulate((span.start_s + span.duration_s for span in ran), max)
    befores_s = [ran[0].start_s, *ends_s] if ran else []
    return tuple(
        Kernel(span, span.start_s - ran[0].start_s, max(0.0, span.start_s - before_s))
        for span, before_s in zip(ran, befores_s, strict=False)
    )


def gaps_s(ran: Sequence[Kernel]) -> float:
    """Return the time between the first and the last kernel in which none ran."""
    return sum(kernel.gap_s for kernel in ran)


def device_span_s(ran: Sequence[Kernel]) -> float:
    """Return the time from the beginning of the first kernel to the end of the last."""
    return max((kernel.start_s + kernel.span.duration_s for kernel in ran), default=0.0)


def live_bytes(blocks: Sequence[Block]) -> list[tuple[float, int]]:
    """Return the live bytes after each moment at which they changed."""
    changes = [(block.start_s, block.bytes) for block in blocks]
    changes += [(block.end_s, -block.bytes) for block in blocks if block.end_s is not None]
    changes.sort()  # at the same moment blocks are freed first
    return list(zip((moment for moment, _ in changes), accumulate(size for _, size in changes), strict=True))


def peak(profile: Profile) -> Peak | None:
    """Return the peak with its live blocks, largest first; None without an allocation."""
    curve = live_bytes(profile.blocks)
    if not curve:
        return None
    at_s, size = max(curve, key=lambda point: point[1])
    alive = [block for block in profile.blocks if block.start_s <= at_s and (block.end_s is None or block.end_s > at_s)]
    return Peak(size, at_s, tuple(sorted(alive, key=lambda block: -block.bytes)))


def operator_table(profile: Profile) -> pd.DataFrame:
    """Return a row for each operator, in their order, the names of kernels separated by semicolons."""
    rows = [
        {**vars(operator), "share": share, "kernels": ";".join(operator.kernels)}
        for operator, share in zip(profile.operators, shares(profile), strict=True)
    ]
    columns = ["name", "line", "calls", "self_s", "share", "allocated_bytes", "flops", "device_s", "kernels"]
    return pd.DataFrame(rows, columns=columns)


def _shares(times_s: Sequence[float]) -> tuple[float, ...]:
    total_s = sum(times_s)
    return tuple(time_s / total_s if total_s else 0.0 for time_s in times_s)
