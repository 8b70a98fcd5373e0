"""Rows of a table by an expression."""

import pytest

from bench.analyse.where import where
from tests.analyse.tables import row, table
from tests.examples import case
from tests.refusals import refusal

TABLE = table(
    row(case("eager", num_tokens=128), speedup=1.0, settled=True),
    row(case("sdpa", num_tokens=577), speedup=1.5, settled=False),
    row(case("manual", num_tokens=1024), speedup=None, settled=None),
)


@pytest.mark.parametrize(
    ("expression", "kept"),
    [
        ("num_tokens>=577", ["sdpa", "manual"]),
        ("num_tokens >= 577 and speedup > 1.2", ["sdpa"]),
        ("N>=577 and B==8 and C>=1 and H>=1", ["sdpa", "manual"]),
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
