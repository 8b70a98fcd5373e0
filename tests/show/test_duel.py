"""What is shown of a duel."""

import pytest

from bench.analyse.summary import summarise
from bench.show.answer import points_of
from bench.show.duel import LEGEND, blocks
from bench.show.terminal.blocks import render
from bench.show.terminal.console import rendered
from bench.store.record import Record, Samples
from tests.examples import case, record, timed


def sides(tokens: int, b_s: float, status: str = "ok", detail: str = "", a_status: str = "ok") -> list[Record]:
    """Return four processes of each side, of which A takes 2 ms and B so long, or ends with a status."""
    a = {"status": a_status, "detail": "the other side could not be measured" if a_status != "ok" else ""}
    of = {"A": (2e-3, a), "B": (b_s, {"status": status, "detail": detail})}
    return [
        record(
            process=n,
            case=case(name, num_tokens=tokens),
            samples=samples(value_s * (1 + n % 2 * 1e-3), outcome),
            **outcome,
        )
        for name, (value_s, outcome) in of.items()
        for n in range(4)
    ]


def samples(value_s: float, outcome: dict[str, str]) -> Samples:
    """Return samples of a time, none for a case that failed."""
    return timed(*[value_s] * 3) if outcome["status"] == "ok" else Samples()


def shown(*records: Record) -> list[str]:
    """Return the lines of a duel's table."""
    return rendered(render(blocks(points_of(summarise(records, "A")), "A", "B"))).splitlines()


def test_a_row_says_ratio_verdict_processes_and_both_times() -> None:
    """B takes half the time of A, so it is twice as fast, and the one to use."""
    head, row, *_ = shown(*sides(5, 1e-3), *sides(7, 2e-3))
    assert "B as fast as A" in head
    assert row.split()[:2] == ["N=5", "2.00x"]
    for words in ("fastest: B, by", " 4 ", "2.00 ms", "1.00 ms"):
        assert words in row


def test_a_name_with_options_stands_in_the_headings_as_it_is() -> None:
    """Brackets are no markup."""
    a, b = "online[block_tokens=64]", "online[block_tokens=32]"
    records = [record(process=n, case=case(name)) for name in (a, b) for n in range(2)]
    assert f"{b} as fast as {a}" in rendered(render(blocks(points_of(summarise(records, a)), a, b)))


@pytest.mark.parametrize("width", [80, 100])
def test_a_narrow_terminal_has_all_columns(width: int) -> None:
    """What to use is said in fewer words, and nothing is cut."""
    points = points_of(summarise([*sides(5, 1e-3), *sides(7, 2e-3), *sides(9, 2.01e-3)], "A"))
    text = rendered(render(blocks(points, "A", "B")), width=width)
    assert "…" not in text
    assert all(word in text for word in ("point", "processes", "N=9", "2.01 ms"))


def test_sides_that_are_as_fast_as_each_other_have_no_fastest() -> None:
    """The ratio is 1, and nobody has to change over to B."""
    row = shown(*sides(5, 1e-3), *sides(7, 2e-3))[2]
    assert row.split()[:2] == ["N=7", "1.00x"]
    assert "use A" in row


def test_a_side_that_could_not_be_measured_is_said_with_its_reason() -> None:
    """There is a row, and below the table why it is empty, without a side that was skipped for the other."""
    lines = shown(*sides(5, 1e-3), *sides(9, 1e-3, "crashed", "killed", a_status="skipped"))
    assert lines[2].split() == ["N=9", "not", "measured"]
    assert lines[3:] == ["N=9: B crashed: killed", *LEGEND]


def test_what_cannot_be_measured_anywhere_is_said_of_both_sides() -> None:
    """Nothing went wrong on one side alone."""
    lines = shown(*sides(5, 1e-3), *sides(9, 1e-3, "unsupported", "no huge pages", a_status="unsupported"))
    assert [line.split(": ")[1] for line in lines[3:5]] == ["A unsupported", "B unsupported"]
