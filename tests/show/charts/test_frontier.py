"""The frontier picture, by its data."""

import dataclasses

import pandas as pd

from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.show.charts.base import specification
from bench.show.charts.frontier import best, sheets
from tests.examples import point
from tests.show.example_results import record

ERRORS = {
    ("float32", "eager"): 4e-7,
    ("float32", "sdpa"): 8e-7,
    ("bfloat16", "eager"): 6e-3,
    ("bfloat16", "sdpa"): 5e-3,
}


def table(*, dtypes: tuple[str, ...] = ("float32", "bfloat16"), tokens: tuple[int, ...] = (50,)) -> pd.DataFrame:
    """Return results with errors, at several shapes and precisions."""
    records = []
    for number in tokens:
        for (dtype, name), error in ERRORS.items():
            if dtype in dtypes:
                case = Case(point(num_tokens=number, dtype=dtype), name)
                for each in (record(case, process) for process in range(2)):
                    metrics = {**each.metrics, "error": error, "tolerance": 1.0}
                    records.append(dataclasses.replace(each, metrics=metrics))
    return summarise(records, "eager")


def test_a_mark_stands_at_the_time_and_the_error_of_its_case() -> None:
    """Each implementation has a mark for each precision, and its interval; both axes are logarithmic and hold them."""
    of = table()
    ((_, picture),) = sheets(of)
    for column in ("implementation", "dtype", "error", "latency_s", "latency_low_s", "latency_high_s"):
        assert [row[column] for row in picture.rows] == of[column].to_list()
    drawn = specification(picture)["vconcat"][0]["vconcat"][0]["layer"]
    for channel, column in (("x", "latency_s"), ("y", "error")):
        (scale, *_) = [each["encoding"][channel]["scale"] for each in drawn if "scale" in each["encoding"][channel]]
        assert scale["type"] == "log"
        assert scale["domain"][0] < min(of[column]) < max(of[column]) < scale["domain"][1]


def test_the_frontier_is_what_nothing_beats() -> None:
    """Along it the time rises and the error falls; every other case has one that is no slower and no worse."""
    ((_, picture),) = sheets(table())
    on_it = [(row["latency_s"], row["error"]) for row in best([dict(row) for row in picture.rows])]
    assert sorted((row["latency_s"], row["error"]) for row in picture.rows if row["best"]) == on_it
    assert [error for _, error in on_it] == sorted((error for _, error in on_it), reverse=True)
    for row in picture.rows:
        assert any(time <= row["latency_s"] and error <= row["error"] for time, error in on_it)


def test_each_shape_with_a_choice_is_a_picture() -> None:
    """Shapes have pictures of their own; one precision leaves nothing to choose."""
    assert sorted(name for name, _ in sheets(table(tokens=(50, 577)))) == [
        "frontier-vit-cpu-inference-b8-n50-c384-h6-t1",
        "frontier-vit-cpu-inference-b8-n577-c384-h6-t1",
    ]
    assert list(sheets(table(dtypes=("float32",)))) == []
