"""What makes a row less certain than it looks."""

from typing import Any

import pytest

from bench.analyse.flags import flags, is_biased

SURE: dict[str, Any] = {
    "implementation": "sdpa", "device": "cpu", "timing": "host", "latency_s": 0.1, "flagged_share": 0.0, "host_s": None,
    "throttle": None, "processes": 2,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "letter"),
    [
        ({"flagged_share": 0.5}, "D"),
        ({"host_s": 0.095}, "L"),
        ({"throttle": "software power cap"}, "T"),
        ({"processes": 1}, "1"),
        ({"flagged_share": 0.05}, ""),
        ({"host_s": 0.08}, ""),
    ],
)
def test_each_doubt_has_a_letter(changes: dict[str, object], letter: str) -> None:
    """Neighbours, launches, the clock and one process have one; a few samples have none."""
    assert "".join(flag.letter for flag in flags({**SURE, **changes})) == letter


@pytest.mark.parametrize(
    ("share", "speedup", "is_so"),
    [
        (None, 6.6, False),
        (0.5, 6.6, False),
        (0.51, 6.6, True),
        (0.51, 0.2, True),
        (0.51, 1.4, False),
        (0.51, None, False),
    ],
)
def test_other_processes_bias_ratios_of_unlike_calls(share: float | None, speedup: float | None, is_so: bool) -> None:
    """Short calls fit between two time slices of theirs, long ones don't; a GPU's samples have no share, or 0."""
    assert is_biased({**SURE, "flagged_share": share, "speedup": speedup}) is is_so
