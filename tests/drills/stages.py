"""The stages of stepwise against the whole layer: `python -m tests.drills.stages`."""

import tempfile
from pathlib import Path

from bench.analyse.profile import overhead, residual_s, stage_sum_s
from bench.plan.case import Case
from bench.profiling import traces
from bench.store import units
from tests.points import point

BATCHES = {197: 8, 577: 8, 1024: 8, 4096: 1}
"""Tokens with the items a call; at 4096 a batch of 8 would hold 12 GiB of scores."""

QUADRATIC = ("scores", "softmax", "weighted values")
"""The stages whose work grows with the square of the tokens."""


def main() -> None:
    """Print the sum of the stages, the residual, and the share of the quadratic stages, on one thread."""
    points = [point(batch=batch, num_tokens=tokens, channels=384, num_heads=6) for tokens, batch in BATCHES.items()]
    with tempfile.TemporaryDirectory() as folder:
        for traced in traces.write([Case(at, "stepwise") for at in points], Path(folder)):
            profile = traced.profile
            if profile is None:
                print(f"{traced.case.name}: {traced.reason}")
                continue
            whole_s, sum_s = profile.timed_s, stage_sum_s(profile)
            quadratic_s = sum(stage.time_s for stage in profile.stages if stage.name in QUADRATIC)
            print(
                f"N = {traced.case.point.num_tokens}: stages {units.seconds(sum_s)} of {units.seconds(whole_s)}, "
                f"residual {100 * residual_s(profile) / whole_s:+.1f} %, quadratic stages {quadratic_s / sum_s:.0%}, "
                f"profiler {100 * overhead(profile):+.1f} %"
            )


if __name__ == "__main__":
    main()
