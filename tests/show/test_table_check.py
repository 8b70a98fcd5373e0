"""What the check of a table says."""

from bench.analyse.table_check import TABLE, Checked
from bench.show.blocks import GOOD, WARNING, Lines, Table
from bench.show.table_check import blocks
from bench.stats.estimates import Interval
from tests.make.points import vit_s


def shape(tokens: int, *, ran_it: bool | None = True) -> Checked:
    """Return a checked shape."""
    regrets = {TABLE: Interval(0.004, 0.0, 0.0191), "sdpa": Interval(0.25, 0.2, 0.31)}
    return Checked(vit_s(num_tokens=tokens), "manual", ran_it, regrets)


def said(*of: Checked) -> tuple[str, str, list[list[str]]]:
    """Return the sentences, their tone, and the cells of the table."""
    lines, table = blocks(of)
    assert isinstance(lines, Lines)
    assert isinstance(table, Table)
    return " ".join(lines.lines), lines.tone, [[cell.text for cell in row] for row in table.cells]


def test_each_rule_has_a_sentence_and_a_column() -> None:
    """Bounds are rounded up; a rule that was not measured everywhere has neither."""
    text, tone, cells = said(shape(300), shape(700))
    assert "The table costs 0.4% [0, 1.9] on average over 2 shapes, at most 2% at one of them." in text
    assert "Always sdpa costs 25% [20, 31]" in text
    assert "eager" not in text
    assert "ran what the table names at all 2 shapes" in text
    assert tone == GOOD
    assert cells[0] == ["N=300", "manual", "yes", "0.4% [0, 1.9]", "25% [20, 31]"]


def test_what_was_not_followed_is_seen() -> None:
    """A shape at which the program ran another core has a row of its own, and the sentence counts it."""
    text, tone, cells = said(shape(300), shape(700, ran_it=False), shape(900, ran_it=None))
    assert "ran what the table names at 1 of 2 shapes" in text
    assert tone == WARNING
    assert [row[2] for row in cells] == ["yes", "NO", "?"]
