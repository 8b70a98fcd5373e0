"""Calls in turns."""

import json
from pathlib import Path

import pytest

from bench.profiling import capture
from tests.profiling.planted import pair


@pytest.mark.parametrize(
    ("faults", "kept_s"),
    [([0, 5000, 0, 0], [1, 3, 4]), ([5000] * 9, [1, 2, 3, 4, 5, 6, 7, 8, 9]), ([5000] * 8 + [0], [9])],
)
def test_pairs_that_are_not_calm_are_made_again(
    faults: list[int], kept_s: list[float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """There are nine pairs at most, and those that are not calm count only where there is no other."""
    monkeypatch.setattr(capture, "BUDGET_S", 0.0)
    planted = iter([pair(0), *(pair(number, (0, count)) for number, count in enumerate(faults, 1))])
    monkeypatch.setattr(capture, "_pair", lambda *_: next(planted))
    taken = capture.capture(lambda: None, "call", "cpu", "host", tmp_path)
    assert [each.profiled_s for each in taken.pairs] == kept_s
    assert next(planted, None) is None


def test_however_long_a_call_takes_there_are_three_pairs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each has a trace of its own, which holds one call under its label."""
    monkeypatch.setattr(capture, "BUDGET_S", 0.0)
    taken = capture.capture(lambda: None, "the call", "cpu", "host", tmp_path)
    assert len({made.trace for made in taken.pairs}) == len(taken.pairs) == capture.LEAST_PAIRS
    for made in taken.pairs:
        names = [event.get("name") for event in json.loads(made.trace.read_text())["traceEvents"]]
        assert names.count("the call") == 1
