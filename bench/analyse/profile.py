"""Values derived from a profile."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import pandas as pd

from bench.analyse.flags import FLAGGED_SHARE
from bench.analyse.summary import flagged
from bench.store.profile import CORE, Kernel, Profile, ProfiledOperator

HEAVY = 0.2
"""If the profiler changes the time of a call by more than this share, the profile's times can't be trusted."""


@dataclass(frozen=True)
class Ran:
    """A kernel or copy of the last call; `start_s` counts from the beginning of the first one.

    `gap_s` is the time before it without any running kernel of the call.
    """

    kernel: Kernel
    start_s: float
    gap_s: float


def overhead(profile: Profile) -> float:
    """Return the profiler's slowdown as a share of the case's latency."""
    return profile.profiled_s / profile.timed_s - 1


def distortion(profile: Profile) -> str:
    """Return why the times of a profile can't be trusted; empty if they can."""
    share, calls = overhead(profile), [*flagged(profile.samples, profile.case.point)]
    if any(calls) and sum(calls) >= FLAGGED_SHARE * len(calls) and not is_on_gpu(profile):
        return f"Other processes disturbed {sum(calls)} of {len(calls)} calls. Close them, or trust only counts."
    if share > HEAVY and is_on_gpu(profile):
        return "The profiler slows the host, so trust the times of kernels, but not the gaps between them."
    if share > HEAVY:
        return (
            "The profiler slows short operators most, so only counts can be trusted. A larger batch makes operators "
            "longer."
        )
    if share < -HEAVY:
        return "The device changed its speed during the profile, so only counts can be trusted. Profile again."
    return ""


def is_on_gpu(profile: Profile) -> bool:
    """Return whether operators have a GPU's times."""
    return any(operator.device_s is not None for operator in profile.operators)


def share(part_s: float, whole_s: float) -> float:
    """Return one time as a share of another; 0 of 0."""
    return part_s / whole_s if whole_s else 0.0


def operator_sum_s(profile: Profile) -> float:
    """Return the sum of the times of all operators."""
    return sum(operator.time_s for operator in profile.operators)


def unnamed_s(profile: Profile) -> float:
    """Return the host time of a profiled call outside all operators, in Python and in freeing memory."""
    return profile.profiled_s - sum(operator.self_s for operator in profile.operators)


def stage_sum_s(profile: Profile) -> float:
    """Return the sum of the times of all stages."""
    return sum(stage.time_s for stage in profile.stages)


def core_share(profile: Profile) -> float:
    """Return the attention cores' share of the time of all stages; 0 without a core."""
    cores_s = sum(stage.time_s for stage in profile.stages if stage.name.startswith(CORE))
    return share(cores_s, stage_sum_s(profile))


def whole_s(profile: Profile) -> float:
    """Return the time that the parts of a profiled call add up to: on a GPU, the time of all its kernels."""
    return operator_sum_s(profile) if is_on_gpu(profile) else profile.profiled_s


def residual_s(profile: Profile) -> float:
    """Return the time of a profiled call outside all stages."""
    return whole_s(profile) - stage_sum_s(profile)


def rate(of: ProfiledOperator) -> float | None:
    """Return the floating-point operations per second of an operator, None if unknown."""
    return None if of.flops is None or not of.time_s else of.flops / of.time_s


def in_order(kernels: Sequence[Kernel]) -> list[Ran]:
    """Return the kernels and copies of a call in the order of their starts."""
    ordered = sorted(kernels, key=lambda kernel: kernel.start_s)
    ends_s = accumulate((kernel.start_s + kernel.duration_s for kernel in ordered), max)
    befores_s = [ordered[0].start_s, *ends_s] if ordered else []
    return [
        Ran(kernel, kernel.start_s - ordered[0].start_s, max(0.0, kernel.start_s - before_s))
        for kernel, before_s in zip(ordered, befores_s, strict=False)
    ]


def gaps_s(ran: Sequence[Ran]) -> float:
    """Return the time between the first and the last kernel without a running kernel."""
    return sum(each.gap_s for each in ran)


def device_span_s(ran: Sequence[Ran]) -> float:
    """Return the time from the beginning of the first kernel to the end of the last."""
    return max((each.start_s + each.kernel.duration_s for each in ran), default=0.0)


def operator_table(profile: Profile) -> pd.DataFrame:
    """Return a row for each operator in order, with the names of kernels separated by semicolons."""
    whole_s = operator_sum_s(profile)
    rows = [
        {**vars(operator), "share": share(operator.time_s, whole_s), "kernels": ";".join(operator.kernels)}
        for operator in profile.operators
    ]
    columns = ["name", "line", "calls", "self_s", "share", "flops", "device_s", "kernels"]
    return pd.DataFrame(rows, columns=columns)
