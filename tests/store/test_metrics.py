"""What is declared of metrics holds together, and processes are combined as it says."""

import dataclasses
from typing import Any

import pytest

from bench.plan.case import CASE_COLUMNS
from bench.store.metrics import COLUMNS, METRICS, REPORTED, combine, derive
from bench.store.record import SESSION, Origin
from tests.make.records import case


def combined(*processes: dict[str, Any], is_ok: bool = True) -> dict[str, Any]:
    """Return the cells of processes that reported these metrics and nothing else."""
    nothing = {name: metric.empty for name, metric in REPORTED.items()}
    return combine([nothing | values for values in processes], is_ok=is_ok)


def test_a_name_stands_for_one_thing() -> None:
    """No metric has the name of a column of the case, of a field of the record or of another metric."""
    others = {*CASE_COLUMNS, *SESSION, *(field.name for field in dataclasses.fields(Origin))}
    assert not {*METRICS} & {*others, "process", "status", "detail", "samples", "schema_version"}


def test_every_metric_goes_somewhere() -> None:
    """What workers report is in the table, or makes another metric."""
    assert {name for name in REPORTED if name not in COLUMNS} == {"compile_s", "compile_cached"}
    assert all(metric.combined for metric in REPORTED.values() if metric.in_table)


@pytest.mark.parametrize(
    ("name", "values", "cell"),
    [
        ("peak_bytes", [None, 5, 7], 5),
        ("host_s", [3.0, None, 1.0, 8.0], 3.0),
        ("calls_per_timing", [2, 5], 3),
        ("settled", [True, True], True),
        ("settled", [True, False], False),
        ("kernels", [(), ("a", "b"), ("c",)], "a;b"),
        ("throttle", [("x", "y"), ("y", "z")], "x;y;z"),
        ("clock_low_hz", [None, 1.98e9, 1.755e9], 1.755e9),
        ("clock_high_hz", [None, 1.98e9, 1.755e9], 1.98e9),
        ("clock_high_hz", [None, None], None),
    ],
)
def test_processes_are_combined(name: str, values: list[Any], cell: Any) -> None:
    """The metric says how: the first value, the median, all, or each once; unreported metrics are empty."""
    assert combined(*({name: value} for value in values))[name] == cell


def test_the_error_is_the_one_nearest_to_its_tolerance() -> None:
    """Error and tolerance of a row belong to the same process."""
    cells = combined({"error": 2.0, "tolerance": 10.0}, {"error": 1.0, "tolerance": 1.5}, {})
    assert (cells["error"], cells["tolerance"]) == (1.0, 1.5)


def test_what_only_ok_cases_have_is_left_out() -> None:
    """A case that ended otherwise keeps its memory, and has no pace."""
    cells = combined({"peak_bytes": 3, "settled": True, "calls_per_timing": 4}, is_ok=False)
    assert cells["peak_bytes"] == 3
    assert not {"settled", "calls_per_timing", "host_s"} & {*cells}


def test_padding_is_that_of_items_of_different_lengths() -> None:
    """Of 4 · 10 tokens 20 are real, or fewer if no item has all; items of one length have no share."""
    lengths = ("list:10+4+3+3", "list:4+4+1+1", "fixed")
    cells = [derive(case(batch=4, num_tokens=10, lengths=of), dict.fromkeys(METRICS)) for of in lengths]
    assert [each["padding"] for each in cells] == [0.5, 0.75, None]
