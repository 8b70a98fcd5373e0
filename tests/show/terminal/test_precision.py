"""The table of a change of precision."""

import pytest

from bench.analyse.conclusions import changes
from bench.analyse.summary import summarise
from bench.plan.errors import WrongRequest
from bench.show.terminal.console import rendered
from bench.show.terminal.precision import precisions
from tests.runs import in_precision as measured


def test_a_row_has_both_times_and_the_ratio() -> None:
    """It names the shape, the implementation and both precisions."""
    records = [measured("eager", dtype, process) for dtype in ("float32", "bfloat16") for process in range(3)]
    lines = rendered(precisions(summarise(records, "eager"), changes(records))).splitlines()
    for words in ("N=", "eager", "bfloat16", "2.00x"):
        assert words in lines[1]


def test_without_a_second_precision_there_is_nothing_to_show() -> None:
    """The refusal says how to measure one."""
    records = [measured("eager", "float32", 0)]
    with pytest.raises(WrongRequest, match="in the same rounds"):
        precisions(summarise(records, "eager"), changes(records))
