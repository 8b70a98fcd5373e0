"""The frontier picture."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from matplotlib.lines import Line2D
from matplotlib.text import Text

from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.show.figures.frontier import choices, figure, figures
from tests.examples import point
from tests.show.example_results import record
from tests.show.figures.legible import assert_legible, drawn

ERRORS = {
    ("float32", "eager"): 4e-7,
    ("float32", "sdpa"): 8e-7,
    ("bfloat16", "eager"): 6e-3,
    ("bfloat16", "sdpa"): 5e-3,
}


def table(*, dtypes: tuple[str, ...] = ("float32", "bfloat16"), tokens: tuple[int, ...] = (50,)) -> pd.DataFrame:
    """Return results with errors, at several shapes and precisions."""
    made = []
    for number in tokens:
        for (dtype, name), error in ERRORS.items():
            if dtype in dtypes:
                case = Case(point(num_tokens=number, dtype=dtype), name)
                for each in (record(case, process) for process in range(2)):
                    metrics = {**each.metrics, "error": error, "tolerance": 1.0}
                    made.append(dataclasses.replace(each, metrics=metrics))
    return summarise(made, "eager")


def test_a_mark_stands_at_the_time_and_the_error_of_its_case() -> None:
    """Each implementation has a mark for each precision."""
    of = table()
    (choice,) = choices(of)
    marks = drawn(figure(choice), "error", Line2D)
    assert marks.keys() == {"eager", "sdpa"}
    for name, line in marks.items():
        rows = of[of["implementation"] == name]
        assert list(np.asarray(line.get_xdata())) == pytest.approx(rows["latency_s"].to_list())
        assert list(np.asarray(line.get_ydata())) == pytest.approx(rows["error"].to_list())


def test_the_frontier_is_what_nothing_beats() -> None:
    """Along it the time rises and the error falls; every other case has one that is no slower and no worse."""
    (choice,) = choices(table())
    on_it = [(row["latency_s"], row["error"]) for row in choice.frontier]
    assert on_it == sorted(on_it)
    assert [error for _, error in on_it] == sorted((error for _, error in on_it), reverse=True)
    for row in choice.rows:
        assert any(time <= row["latency_s"] and error <= row["error"] for time, error in on_it)


def test_each_shape_with_a_choice_is_a_picture() -> None:
    """Shapes have pictures of their own; one precision leaves nothing to choose."""
    assert sorted(name for name, _ in figures(table(tokens=(50, 577)))) == [
        "frontier-vit-cpu-inference-b8-n50-c384-h6-t1",
        "frontier-vit-cpu-inference-b8-n577-c384-h6-t1",
    ]
    assert list(figures(table(dtypes=("float32",)))) == []


def test_it_can_be_read() -> None:
    """Precisions are named, and no text hides another."""
    (choice,) = choices(table())
    made = figure(choice)
    assert drawn(made, "dtype", Text).keys() == {"float32", "bfloat16"}
    assert_legible(made)
