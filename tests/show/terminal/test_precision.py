"""The table of a change of precision."""

from dataclasses import replace

import pytest

from bench.analyse.precision import changes
from bench.analyse.summary import summarise
from bench.plan.errors import WrongRequest
from bench.show.terminal.console import rendered
from bench.show.terminal.precision import in_words, precisions
from tests.analyse.test_precision import measured
from tests.examples import case


def test_a_row_has_both_times_and_the_ratio() -> None:
    """It names the shape, the implementation and both precisions."""
    records = [measured("eager", dtype, process) for dtype in ("float32", "bfloat16") for process in range(3)]
    lines = rendered(precisions(summarise(records, "eager"), changes(records))).splitlines()
    for words in ("N=", "eager", "bfloat16", "2.00x"):
        assert words in lines[1]


def test_of_several_shapes_the_least_and_the_most_are_told() -> None:
    """At each shape the implementation counts that is fastest in the other precision."""
    records = [
        replace(each, case=case(each.case.implementation, dtype=each.case.point.dtype, num_tokens=number))
        for number, names in ((50, ("eager", "sdpa")), (197, ("sdpa",)))
        for name in names
        for dtype in ("float32", "bfloat16")
        for each in [measured(name, dtype, 0, slowness=2.0 if name == "eager" else 1.0)]
    ]
    (line,) = in_words(summarise(records, "sdpa"), changes(records))
    assert "each of 2 shapes: 2.00x (sdpa) to 2.00x (sdpa)" in line


def test_without_a_second_precision_there_is_nothing_to_show() -> None:
    """The refusal says how to measure one."""
    records = [measured("eager", "float32", 0)]
    with pytest.raises(WrongRequest, match="in the same rounds"):
        precisions(summarise(records, "eager"), changes(records))
