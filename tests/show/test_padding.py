"""What is said of packed and padded items."""

from collections.abc import Mapping

from bench.show.answer import points_of
from bench.show.padding import words
from tests.make.points import vit_s
from tests.make.results import timed


def said(loop_s: Mapping[str, float], *tokens: int, processes: int = 3) -> list[str]:
    """Return what is said of loop beside sdpa, which takes a second, at points of these lengths."""
    points = [vit_s(batch=4, num_tokens=n, lengths=lengths) for n in tokens or (10,) for lengths in loop_s]
    return words(
        points_of(timed(points, {"sdpa": 1.0, "eager": 2.0, "loop": lambda at: loop_s[at.lengths]}, processes))
    )


def test_each_measured_share_stands_in_one_finding() -> None:
    """Where one is faster, the ratios at the least and the largest share are given."""
    seconds = {"list:10+10+10+9": 1.5, "list:10+8+6+6": 1.0, "list:10+4+3+3": 0.5, "list:10+4+2+2": 0.4}
    assert said(seconds) == [
        "Packed is faster at 50% and 55% padding: at 50% loop takes 0.50 of sdpa's time and 0.66 of its memory, at 55% "
        "loop takes 0.40 of sdpa's time and 0.66 of its memory; padded is faster at 2.5% padding: loop takes 1.5 times "
        "sdpa's time and 0.66 of its memory; neither packed nor padded is shown to be faster at 25% padding."
    ]


def test_series_are_named_by_what_differs() -> None:
    """One alone needs no name."""
    sentences = said({"list:10+4+3+3": 0.5}, 10, 40)
    assert [sentence.partition(" packed is ")[0] for sentence in sentences] == ["At N=10", "At N=40"]
    assert said({"list:10+4+3+3": 0.5})[0].startswith("Packed is faster at 50% padding: loop takes 0.50 of")


def test_one_process_shows_nothing() -> None:
    """No interval, no claim."""
    assert said({"list:10+4+3+3": 0.5}, processes=1) == [
        "Neither packed nor padded is shown to be faster at 50% padding."
    ]


def test_without_lengths_nothing_is_said() -> None:
    """Items of one length have no padding."""
    assert said({"fixed": 0.5}) == []
