"""Every feature of attention by every implementation, against NumPy: `python -m tests.drills.truth [NAME…]`.

Computes small points of the layers `attention` and `core` in each dtype and mode, and compares outputs and gradients
with `tests.impls.oracle`, which shares nothing with the suite. Prints a table for each dtype, whose cells are the
largest error in the three modes and the reasons for which some are unsupported; then the reasons, and the number of
pairs of a point and an implementation.
NAMEs are implementations; without any these are all that are shipped for a CPU, and compiling takes an hour.
Exits with 1 if a result is wrong.
"""

import argparse
import dataclasses
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bench.measure import workload
from bench.measure.workload import Workload
from bench.plan.case import Point
from impls import IMPLEMENTATIONS, Unsupported
from tests.impls import oracle
from tests.impls.reference import LACKING, ON_GPU, Array, array
from tests.make.points import of_layer

NAMES = [name for name in IMPLEMENTATIONS if name not in (*LACKING, *ON_GPU, "measured")] + ["sdpa[gqa=repeat]"]

DTYPES, MODES = {"float32": 1e-4, "bfloat16": 0.1}, ("inference", "train", "backward")
"""The largest error that rounding explains, relative to the largest value, by dtype; and the modes."""

CANCELLED = 1e-3
"""A gradient of a weight that is smaller than this share of the largest one is measured by that one."""

REASON = 200
"""The letters of a reason that are printed."""

GRID, SQUARE = {"num_tokens": 10}, {"num_tokens": 16, "window_size": 2}
CONTEXT, GROUPS = {"num_kv_tokens": 5, "context_dim": 8}, {"num_kv_heads": 2}

ATTENTION: list[dict[str, Any]] = [
    {},
    {"qkv_bias": True},
    CONTEXT,
    {"num_kv_tokens": 10},
    GROUPS,
    {"num_kv_heads": 1},
    {"qk_norm": "rms"},
    {"qk_norm": "layer"},
    {"rope": "axial"},
    {"attn_bias": "relative"},
    {"attn_bias": "alibi"},
    {"mask": "causal"},
    {"mask": "padding"},
    SQUARE,
    {**SQUARE, "attn_bias": "relative"},
    {**SQUARE, "attn_bias": "relative", "qkv_bias": True, **GROUPS, "qk_norm": "rms", "rope": "axial"},
    {"attn_bias": "relative", "mask": "padding"},
    {"attn_bias": "alibi", "mask": "causal"},
    {"qk_norm": "rms", "rope": "axial"},
    {"qk_norm": "rms", "rope": "axial", "mask": "causal", **GROUPS},
    {**CONTEXT, "mask": "padding"},
    {**CONTEXT, "mask": "causal"},
    {**CONTEXT, **GROUPS, "qkv_bias": True, "qk_norm": "layer", "mask": "padding"},
]

CORE: list[dict[str, Any]] = [
    {},
    {"num_kv_tokens": 5},
    {"num_kv_tokens": 13},
    GROUPS,
    {"mask": "causal"},
    {"mask": "causal", "num_kv_tokens": 5},
    {"mask": "causal", "num_kv_tokens": 13},
    {"mask": "padding"},
    {"mask": "padding", "num_kv_tokens": 5, **GROUPS},
    {"num_tokens": 1, "num_kv_tokens": 13, **GROUPS},
    {"attn_bias": "given", "num_kv_tokens": 5},
    {"attn_bias": "given", "mask": "causal"},
    {"attn_bias": "learned", "mask": "padding", **GROUPS},
]
"""The columns that are not usual."""


def points(dtype: str) -> Iterator[tuple[str, Point]]:
    """Yield each point in inference, with its name."""
    for layer, cases in (("attention", ATTENTION), ("core", CORE)):
        for case in cases:
            columns = {**GRID, "channels": 16, "num_heads": 4, "token_len": 16, **case, "dtype": dtype}
            if layer == "attention" and "num_kv_tokens" in case:
                columns = {"context_dim": 16, **columns}
            words = " ".join(f"{name}={value}" for name, value in case.items())
            yield f"{layer} {words}".strip(), of_layer(layer, **columns)


def expected(work: Workload) -> list[Array]:
    """Return the output and all gradients that NumPy computes for the inputs and weights of a workload."""
    xs = work.inputs()
    padding = xs[-1].numpy() if work.fixed else None
    values = oracle.inputs(*map(array, xs[: len(work.shapes)]))
    values |= {name: array(weight) for name, weight in work.layer.state_dict().items()}
    function = partial(getattr(oracle, work.point.layer), work.point, padding=padding)
    gradients = oracle.gradients(function, values, [*values], array(work.direction))
    return [function(values), *gradients.values()]


def computed(work: Workload, name: str) -> list[Tensor]:
    """Return the output of an implementation, and its gradients if the mode has any."""
    subject = workload.subject(work, name)
    call: Any = workload.step(subject, work)
    with work.gradient_mode():
        if work.point.mode == "backward":
            call.prepare(1)
        result = call()
    if not work.with_gradients:
        return [result]
    y, gradients = result
    of = [*work.inputs()[: len(work.shapes)], *work.layer.parameters()]
    return [y.detach(), *(torch.zeros_like(x) if each is None else each for x, each in zip(of, gradients, strict=True))]


def error(got: list[Tensor], truth: list[Array], inputs: int) -> float:
    """Return the largest error of an output and its gradients, each relative to the largest value."""
    largest = [float(np.abs(each).max()) for each in truth]
    least = CANCELLED * max(largest[1 + inputs :], default=0.0)
    scales = [value if value > least else least / CANCELLED for value in largest]
    errors = [
        float(np.abs(array(each.float()) - of).max()) / (scale or 1.0)
        for each, of, scale in zip(got, truth, scales, strict=False)
    ]
    return max(errors, key=lambda each: each if np.isfinite(each) else np.inf)


def cell(at: Point, truth: list[Array], name: str, reasons: dict[str, int], counts: dict[str, int]) -> str:
    """Return the words of a cell, and note its reasons and what it counts as."""
    errors, refused = [], {}

    def noted(reason: str) -> str:
        line = " ".join(reason.split())[:REASON]
        return f"[{reasons.setdefault(line, len(reasons) + 1)}]"

    for mode in MODES:
        torch.compiler.reset()
        work = workload.make(dataclasses.replace(at, mode=mode))
        try:
            errors.append(error(computed(work, name), truth, len(work.shapes)))
            counts["wrong" if not errors[-1] <= DTYPES[at.dtype] else "ok"] += 1
        except (Unsupported, NotImplementedError) as reason:
            refused[mode] = noted(str(reason))
            counts["unsupported"] += 1
        except Exception as failure:
            refused[mode] = f"FAILED {noted(f'{type(failure).__name__}: {failure}')}"
            counts["wrong"] += 1
    words = [f"{'WRONG ' * (not max(errors) <= DTYPES[at.dtype])}{max(errors):.0e}"] if errors else []
    for why in dict.fromkeys(refused.values()):
        modes = [mode for mode, each in refused.items() if each == why]
        words.append(why if len(modes) == len(MODES) else f"{'/'.join(modes)} {why}")
    return ", ".join(words)


def main() -> int:
    """Print the tables, the reasons and the number of pairs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--only", default="", help="points with these words in their names")
    parser.add_argument("--dtype", choices=[*DTYPES], action="append")
    arguments = parser.parse_args()
    names = arguments.names or NAMES
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # torch says there why a backend is not used
    reasons: dict[str, int] = {}
    counts, pairs = {"ok": 0, "unsupported": 0, "wrong": 0}, 0
    for dtype in arguments.dtype or DTYPES:
        print(f"\n| {dtype} | {' | '.join(names)} |\n|{'---|' * (1 + len(names))}")
        for title, at in points(dtype):
            if arguments.only not in title:
                continue
            truth = expected(workload.make(dataclasses.replace(at, mode="train")))
            cells = [cell(at, truth, name, reasons, counts) for name in names]
            pairs += len(cells)
            print(f"| {title} | " + " | ".join(cells) + " |", flush=True)
    print()
    for reason, number in reasons.items():
        print(f"[{number}] {reason}")
    print(f"\n{pairs} pairs of a point and an implementation, {sum(counts.values())} with modes: {counts}")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
