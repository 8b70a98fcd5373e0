"""Checks that this machine can measure a sweep; a sweep is refused or cases are skipped, never reduced."""

from collections.abc import Iterable, Sequence

from bench.machine import facts, nvml
from bench.plan.case import Case, Point
from bench.plan.device import CPU, CUDA, numbered
from bench.plan.errors import WrongRequest
from bench.plan.layers import ITEM_BYTES, layer_of, scores
from bench.plan.layers import least_bytes as tensors_bytes
from bench.plan.sweep import Sweep
from bench.sampling.inputs import LONG_SCORES, ROWS
from bench.store import units
from impls.catalogue import ALL, ONE, name_of

REFERENCE_BYTES = 8
"""The reference is computed in float64."""

REFERENCE_SCORES = 2
"""During softmax the reference holds the scores before and after."""

PROCESS_BYTES = 3 << 26
"""The memory of a process besides its tensors: 90 MB were observed without a compiler, 200 MB with one."""

HELD = 3
"""A process's memory as a multiple of its tensors, because its first calls write theirs once or twice more."""


def check_threads(sweep: Sweep) -> None:
    """Raise WrongRequest if a sweep has more threads than this process has cores, unless it oversubscribes."""
    cores, threads = facts.visible_cores(), max(point.threads for point in sweep.points)
    if threads > cores and not sweep.effort.oversubscribe:
        those = "core" if cores == 1 else f"{cores} cores"
        raise WrongRequest(
            f"threads = {threads} is more than the {those} that this process may use, so times would mean little; "
            "to measure anyway use --oversubscribe, or oversubscribe = true in the sweep file"
        )


def check_devices(sweep: Sweep) -> None:
    """Raise WrongRequest if this machine has the device and timing of no point, as far as known without torch."""
    there = [f"{CUDA.name}:{number}" for number in range(len(nvml.gpus()))] if facts.torch_cuda() else []
    missing, reasons = missing_devices(sweep.points, there), list[str]()
    if missing:
        version, seen = facts.torch_version(), f"visible NVIDIA GPUs: {', '.join(there) or 'none'}"
        built = "for HIP, but only NVIDIA GPUs are measured" if facts.torch_hip() else "without CUDA"
        why = seen if facts.torch_cuda() else f"torch {version} is built {built}"
        reasons.append(
            f"device = {', '.join(missing)} can't be used here ({why}); expected {' or '.join([CPU.name, *there])}; "
            "for a torch with CUDA see docs/gpu.md"
        )
    others = {(point.kind, point.timing): None for point in sweep.points if point.device not in missing}
    for kind, timing in others:
        if timing in kind.timings:
            return
        reasons.append(f"timing = {timing} can't be used on {kind.name}; expected {' or '.join(kind.timings)}")
    raise WrongRequest("; ".join(reasons))


def too_large(point: Point, implementations: Sequence[str], free_bytes: int) -> dict[str, str]:
    """Return the implementations whose case can't fit into the free memory, with a reason that has both figures.

    The figures are lower bounds, so a case that might fit is tried.
    If the reference alone doesn't fit, no implementation can be checked, and all are returned.
    """
    free = f"but {units.size(free_bytes)} is free"
    minimum = reference_bytes(point)
    if minimum > free_bytes:
        reason = (
            f"the float64 reference needs at least {units.size(minimum)} of memory for one item, {free}; "
            "no implementation can be checked here"
        )
        return dict.fromkeys(implementations, reason)
    figures = {name: least_bytes(Case(point, name)) for name in implementations}
    return {
        name: f"needs at least {units.size(figure)} of memory, {free}"
        for name, figure in figures.items()
        if figure > free_bytes
    }


def fit(point: Point, implementations: Sequence[str], free_bytes: int) -> bool:
    """Return whether the processes of implementations probably fit into the free memory together.

    The estimate is needed because the system kills processes rather than refuse memory.
    """
    held = sum(PROCESS_BYTES + HELD * least_bytes(Case(point, name)) for name in implementations)
    return held <= free_bytes


def missing_devices(points: Iterable[Point], gpus: Iterable[str]) -> list[str]:
    """Return the GPUs that points need and that are not among `gpus`."""
    there = {*gpus}
    devices = dict.fromkeys(point.device for point in points if point.kind is CUDA)
    return [device for device in devices if numbered(device) not in there]


def reference_bytes(point: Point) -> int:
    """Return the least bytes that the reference of a point needs: the point's tensors, and one item's scores.

    Scores are left out for a user's own layer, because it may not hold them.
    """
    held = 0 if layer_of(point.layer).is_module else scores(point)
    if held > LONG_SCORES:
        held = max(LONG_SCORES, ROWS * point.num_heads * point.kv_tokens)
    return tensors_bytes(point) + REFERENCE_SCORES * held * REFERENCE_BYTES


def least_bytes(case: Case) -> int:
    """Return the least bytes of a case: input, weights, output, and scores if it is known to hold them.

    0 on a device that doesn't use the host's memory.
    """
    if not case.point.kind.is_in_host_memory:
        return 0
    return tensors_bytes(case.point) + _scores_bytes(case)


def _scores_bytes(case: Case) -> int:
    point = case.point
    if layer_of(point.layer).is_module:
        return 0
    every = point.batch * scores(point) * ITEM_BYTES[point.dtype]
    return {ALL: every, ONE: every // point.num_heads}.get(name_of(case.implementation).entry.scores, 0)
