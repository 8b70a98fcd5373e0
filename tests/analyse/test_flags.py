"""What makes a row less certain than it looks."""

from typing import Any

import pytest

from bench.analyse.flags import flags, legend, mostly_disturbed

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
        ({"implementation": "flash_attn_3[dtype=float8_e4m3]"}, "A"),
        ({"implementation": "flash_attn_3"}, ""),
        ({"flagged_share": 0.05}, ""),
        ({"flagged_share": None}, ""),
        ({"host_s": 0.08}, ""),
        ({}, ""),
    ],
)
def test_each_doubt_has_a_letter(changes: dict[str, object], letter: str) -> None:
    """Neighbours, launches, the clock, one process and another accuracy have one; a few samples have none."""
    assert "".join(flag.letter for flag in flags({**SURE, **changes})) == letter


def test_the_legend_explains_each_letter_once() -> None:
    """However many rows share a flag."""
    throttled = {**SURE, "throttle": "software power cap"}
    disturbed = {**throttled, "flagged_share": 1.0}
    assert [flag.letter for flag in legend([*flags(throttled), *flags(disturbed)])] == ["D", "T"]


@pytest.mark.parametrize(("share", "is_so"), [(None, False), (0.5, False), (0.51, True)])
def test_a_row_is_mostly_disturbed_if_more_than_half_of_its_samples_are(share: float | None, is_so: bool) -> None:
    """A GPU's samples have no share, or 0."""
    assert mostly_disturbed({**SURE, "flagged_share": share}) is is_so
