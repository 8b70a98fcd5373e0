"""Rows of a table by an expression, and by the importance of their points."""

import pytest

from bench.analyse.selection import most_important, point_count, where
from tests.make.records import case
from tests.make.rows import failed, row, table
from tests.refusals import refusal

TABLE = table(
    row(case("eager", num_tokens=128), speedup=1.0, settled=True),
    row(case("sdpa", num_tokens=577), speedup=1.5, settled=False),
    row(case("manual", num_tokens=1024), speedup=None, settled=None),
)


RUN = table(
    row(case("eager", num_tokens=1), speedup=1.0, rank=2),
    row(case("sdpa", num_tokens=1), speedup=1.2, rank=1),
    row(case("eager", num_tokens=2), speedup=1.0, rank=2),
    row(case("sdpa", num_tokens=2), speedup=3.0, rank=1),
    row(case("eager", num_tokens=3), speedup=1.0, rank=1),
    failed(case("sdpa", num_tokens=3), status="crashed"),
    failed(case("eager", num_tokens=4), status="skipped"),
)


@pytest.mark.parametrize(
    ("expression", "kept"),
    [
        ("num_tokens>=577", ["sdpa", "manual"]),
        ("num_tokens >= 577 and speedup > 1.2", ["sdpa"]),
        ("N>=577 and B==8 and C>=1 and H>=1", ["sdpa", "manual"]),
        ("M>=1", []),
        ("speedup<2", ["eager", "sdpa"]),
        ("implementation==sdpa", ["sdpa"]),
        ("implementation = 'sdpa'", ["sdpa"]),
        ("implementation != sdpa", ["eager", "manual"]),
        ("settled==true", ["eager"]),
        ("speedup!=1", ["sdpa"]),
    ],
)
def test_rows_of_which_it_is_true_are_kept(expression: str, kept: list[str]) -> None:
    """A missing value keeps no condition."""
    assert where(TABLE, expression)["implementation"].tolist() == kept


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("num_token>=577", ("unknown column 'num_token'", "did you mean num_tokens?")),
        ("num_tokens", ("must be COLUMN OPERATOR VALUE",)),
        ("", ("must be COLUMN OPERATOR VALUE",)),
        ("num_tokens>=many", ("'many' must be a number",)),
        ("implementation>=sdpa", ("is no number", "== and !=")),
        ("settled==maybe", ("'maybe' must be true or false",)),
        ("__import__('os').system('true')", ("must be COLUMN OPERATOR VALUE",)),
        ("num_tokens>577 or num_tokens<3", ("'577 or num_tokens<3' must be a number",)),
    ],
)
def test_what_is_no_expression_is_refused(expression: str, words: tuple[str, ...]) -> None:
    """The line has the rule; nothing is executed."""
    line = refusal(where, TABLE, expression)
    assert all(word in line for word in words)


def test_failures_come_first_then_the_largest_speedups() -> None:
    """Rows of a point keep their order; points at which nothing was tried come last."""
    assert most_important(RUN, 9)["num_tokens"].tolist() == [3, 3, 2, 2, 1, 1, 4]
    assert most_important(RUN, 9)["implementation"].tolist() == ["eager", "sdpa"] * 3 + ["eager"]
    assert most_important(RUN, 2)["num_tokens"].tolist() == [3, 3, 2, 2]
    assert (point_count(RUN), point_count(RUN[:0])) == (4, 0)
