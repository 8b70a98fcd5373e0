"""Records, their samples and their metrics."""

import dataclasses
import re
from typing import Any

import pytest

from bench.store.record import STATUSES, Samples, check_schema, latest, reported
from tests.examples import record
from tests.refusals import refusal


def test_what_was_not_measured_is_empty() -> None:
    """A metric that was not measured is None, one of several texts an empty tuple, and never 0."""
    metrics = record(status="unsupported", samples=Samples(), calls_per_timing=None, settled=None).metrics
    assert {value for value in metrics.values() if value != ()} == {None}
    assert metrics["kernels"] == ()


def test_statuses_are_part_of_the_format() -> None:
    """Others read them."""
    assert " ".join(STATUSES) == "ok unsupported incorrect fallback oom timeout crashed error skipped"


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"timings_s": ((0.5,), (0.5,))}, "rounds has 3 values and timings_s has 2"),
        ({"switches": (0, 0)}, "rounds has 3 values and switches has 2"),
        ({"others": (0.1,)}, "rounds has 3 values and others has 1"),
        ({"rounds": (0, 1, 1)}, "rounds must differ"),
    ],
)
def test_columns_of_samples_belong_together(columns: dict[str, Any], reason: str) -> None:
    """They are equally long, and no round is there twice."""
    with pytest.raises(ValueError, match=reason):
        dataclasses.replace(record().samples, **columns)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("peak_bytes", 1.5, "peak_bytes must be a whole number or empty, got 1.5"),
        ("peak_bytes", -1, "peak_bytes must be a whole number of at least 0, got -1"),
        ("peak_bytes", 2**63, "peak_bytes must be a whole number of at most 9223372036854775807, got"),
        ("error", float("nan"), "error must be a number of at least 0.0, got nan"),
        ("error", float("inf"), "error must be a number of at most 1.79"),
        ("error", 10**400, "must be a number in range, got 1000"),
        ("compile_s", "1", "compile_s must be a number or empty, got '1'"),
        ("settled", 1, "settled must be true or false or empty, got 1"),
        ("kernels", "flash", "kernels must be a list, got 'flash'"),
        ("kernels", [1], "kernels[0] must be text, got 1"),
        ("mood", 1, "unknown metric 'mood'; bench/store/metrics.py"),
        ("eror", 1.0, "unknown metric 'eror'; did you mean error?"),
    ],
)
def test_a_metric_that_no_worker_can_measure_is_refused(name: str, value: Any, reason: str) -> None:
    """The reason has the metric, the rule and what came."""
    with pytest.raises(ValueError, match=re.escape(reason)):
        reported(name, value)


def test_a_metric_has_its_type() -> None:
    """A whole number is a number too, several texts are a tuple, and empty stays empty."""
    given = {"error": 0, "kernels": ["a", "b"], "peak_bytes": None}
    assert [reported(name, value) for name, value in given.items()] == [0, ("a", "b"), None]


def test_a_failure_that_was_tried_again_does_not_count() -> None:
    """The last word on a case is its latest record; good ones all count."""
    good, failed, last = record(process=0), record(process=1, status="oom"), record(process=2)
    other = record("sdpa", process=1, status="error")
    assert latest([good, failed, other, last]) == [good, other, last]
    assert latest([good, failed, other]) == [good, failed, other]
    assert latest([failed, dataclasses.replace(failed, process=2)]) == [dataclasses.replace(failed, process=2)]


def test_another_schema_is_refused_with_the_way_out() -> None:
    """A newer one needs a newer suite, an older one the suite that wrote it."""
    check_schema(4, 4, oldest=4)
    assert refusal(check_schema, 5, 4) == "results have schema_version 5; this suite reads up to 4, so update the suite"
    older = refusal(check_schema, 3, 4, "results", 4)
    assert older.startswith("results have schema_version 3; this suite reads 4 and newer, so read them with the suite")
