"""What runtimes compute, in a process of its own: `python -m tests.impls.runtimes_child NAME/DTYPE/LAYER/FEATURE ...`.

Prints a line of JSON for each of them: the largest deviations from the layer in float64, relative to the largest value,
that of the layer itself in the dtype, the operators, the threads that compute, and what is left changed in the process.
"""

import copy
import json
import sys
import time
from dataclasses import replace

import psutil
import torch

import impls
from bench.measure import process_state, workload
from bench.measure.layer import Tensors, cast_to
from bench.sampling.inputs import InputValues
from tests.make.points import featured

CALLS_S = 0.3


def deviation(y: torch.Tensor, exact: torch.Tensor) -> float:
    """Return the largest deviation relative to the largest value."""
    return float((y.double() - exact).abs().max() / exact.abs().max())


def in_double(tensors: Tensors) -> Tensors:
    """Return inputs in float64, but for masks."""
    return tuple(cast_to(each, "cpu", torch.float64) for each in tensors)


def _threads_s() -> dict[int, float]:
    """Return the processor's seconds of each thread of the process."""
    return {one.id: one.user_time + one.system_time for one in psutil.Process().threads()}


def working_threads(implementation: impls.Implementation, xs: Tensors) -> int:
    """Return the threads that compute during calls: those with at least a quarter of the busiest one's time."""
    before_s, start_s = _threads_s(), time.perf_counter()
    while time.perf_counter() - start_s < CALLS_S:
        implementation(*xs)
    taken_s = [after_s - before_s.get(thread, 0) for thread, after_s in _threads_s().items()]
    return sum(each >= max(taken_s) / 4 for each in taken_s)


def main(*cases: str) -> None:
    """Print the results of the runtimes."""
    torch.set_num_threads(1)
    for name, dtype, layer, feature in (case.split("/") for case in cases):
        work = workload.make(replace(featured(layer)[feature], dtype=dtype))
        exact = copy.deepcopy(work.layer).double()
        before = process_state.ProcessState()
        try:
            with torch.inference_mode():
                implementation = impls.build(work.layer, name)
                inputs = [work.inputs(), work.inputs(InputValues(7))]
                outputs = [implementation(*(x.clone() for x in xs)).clone() for xs in inputs]
                threads = working_threads(implementation, inputs[0])
                report = {
                    "errors": [deviation(y, exact(*in_double(xs))) for y, xs in zip(outputs, inputs, strict=True)],
                    "of_eager": max(deviation(work.layer(*xs), exact(*in_double(xs))) for xs in inputs),
                    "dtype": str(outputs[0].dtype),
                    "threads": threads,
                    "operators": [f"{one.name} {one.dtype}" for one in getattr(implementation, "operators", list)()],
                }
            report["changes"] = before.changes()
        except impls.Unsupported as reason:
            report = {"unsupported": str(reason)}
        print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
