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
        ("num_tokens < 200 or implementation == 'manual'", ["eager", "manual"]),
        ("(num_tokens < 200 or speedup > 1) and not settled", ["sdpa"]),
        ("128 < num_tokens <= 1024", ["sdpa", "manual"]),
        ("implementation in ['sdpa', 'manual']", ["sdpa", "manual"]),
        ('implementation not in ("sdpa", "manual")', ["eager"]),
        ("speedup < 2", ["eager", "sdpa"]),
        ("speedup != 1", ["sdpa"]),
        ("not speedup > -1", []),
        ("num_kv_tokens >= 1", []),
        ("settled", ["eager"]),
        ("settled == False", ["sdpa"]),
    ],
)
def test_rows_of_which_it_is_true_are_kept(expression: str, kept: list[str]) -> None:
    """A missing value keeps no condition."""
    assert where(TABLE, expression)["implementation"].tolist() == kept


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("num_token >= 577", "unknown column 'num_token'"),
        ("implementation == sdpa", "put text values in quotes"),
        ("__import__ == 1", "unknown column '__import__'"),
        *((text, "must be columns compared by ==") for text in (
            "", "num_tokens", "num_tokens = 577", "num_tokens >=", "1 == 1", "not num_tokens", "@table", "batch == @x",
            "__import__('os').system('true')", "implementation.str.len() > 3", "[x for x in 'a']", "batch ** 9 > 1",
            "num_tokens is None", "(lambda: 1)() == 1", "num_tokens == 1; 2", "`num_tokens` == 1", "(" * 999,
        )),
        ("implementation >= 577", "'implementation >= 577': "),
        ("num_tokens in 577", "'num_tokens in 577': "),
    ],
)  # fmt: skip
def test_what_is_no_expression_is_refused(expression: str, words: str) -> None:
    """The error line has the rule or the mistake; nothing is executed."""
    assert words in refusal(where, TABLE, expression)


def test_failures_come_first_then_the_largest_speedups() -> None:
    """Rows of a point keep their order; points at which nothing was tried come last."""
    assert most_important(RUN, 9)["num_tokens"].tolist() == [3, 3, 2, 2, 1, 1, 4]
    assert most_important(RUN, 9)["implementation"].tolist() == ["eager", "sdpa"] * 3 + ["eager"]
    assert most_important(RUN, 2)["num_tokens"].tolist() == [3, 3, 2, 2]
    assert (point_count(RUN), point_count(RUN[:0])) == (4, 0)
