"""An answer on one screen."""

from bench.analyse import advice as analyse
from bench.show.advice import terminal
from bench.show.terminal.console import rendered
from tests.advice import POINT, advised, looks


def test_the_head_begins_with_the_bound() -> None:
    """It is the first line."""
    assert rendered(terminal.head(analyse.seen(POINT, looks()))).startswith("attention takes")


def test_the_answer_fits_a_screen() -> None:
    """The table, the recommendation, and its lines."""
    text = rendered(terminal.answer(advised({"as_is": 1.0, "eager": 0.8, "compiled": 1.2})))
    assert len(text.splitlines()) < 24
    assert "use eager: 1.2" in text
    assert "baseline" in text


def test_a_small_bound_ends_with_a_way_on() -> None:
    """The option that compares all the same."""
    assert "--anyway" in rendered(terminal.stopped(analyse.seen(POINT, looks(core_share=0.05))))
