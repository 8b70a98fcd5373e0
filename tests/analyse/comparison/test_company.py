"""Whom the cases of two runs were measured beside."""

from bench.analyse.comparison.company import strangers
from tests.analyse.tables import baseline, cases, failed, of_layers, row, table
from tests.examples import case


def test_the_same_implementations_are_no_strangers() -> None:
    """Neither the order of rows nor columns that are empty for some layers matter."""
    rows = [row(of, [0.1, 0.1]) for of in of_layers()]
    assert strangers(table(*rows), table(*reversed(rows))) == ([], [])


def test_who_stands_on_one_side_alone_is_named_once() -> None:
    """Two points, one implementation more on each side."""
    shared = [row(of, [0.1, 0.2]) for of in cases(2)]
    base = table(*shared, *(row(of, [0.3, 0.3]) for of in cases(2, "online")))
    new = table(*shared, *(row(of, [0.3, 0.3]) for of in cases(2, "manual")))
    assert strangers(base, new) == (["online"], ["manual"])


def test_who_failed_was_no_company() -> None:
    """Only what took its turns in the rounds was beside the others."""
    beside = [baseline(), row(case("sdpa"), [0.1, 0.2])]
    base = table(*beside, row(case("online"), [0.3, 0.4]))
    new = table(*beside, failed(case("online")), failed(case("mha")))
    assert strangers(base, new) == (["online"], [])


def test_points_of_one_side_alone_have_no_say() -> None:
    """A longer sweep with other implementations elsewhere leaves the shared points as they were."""
    shared = [row(of, [0.1, 0.2]) for of in cases(1)]
    elsewhere = row(case("online", num_tokens=577), [0.3, 0.3])
    assert strangers(table(*shared, elsewhere), table(*shared)) == ([], [])
