"""The order of points by importance."""

from bench.analyse.importance import most_important, point_count
from tests.analyse.tables import failed, row, table
from tests.examples import case

TABLE = table(
    row(case("eager", num_tokens=1), speedup=1.0, rank=2),
    row(case("sdpa", num_tokens=1), speedup=1.2, rank=1),
    row(case("eager", num_tokens=2), speedup=1.0, rank=2),
    row(case("sdpa", num_tokens=2), speedup=3.0, rank=1),
    row(case("eager", num_tokens=3), speedup=1.0, rank=1),
    failed(case("sdpa", num_tokens=3), status="crashed"),
    failed(case("eager", num_tokens=4), status="skipped"),
)


def test_failures_come_first_then_the_largest_speedups() -> None:
    """Rows of a point keep their order; points at which nothing was tried come last."""
    assert most_important(TABLE, 9)["num_tokens"].tolist() == [3, 3, 2, 2, 1, 1, 4]
    assert most_important(TABLE, 9)["implementation"].tolist() == ["eager", "sdpa"] * 3 + ["eager"]
    assert most_important(TABLE, 2)["num_tokens"].tolist() == [3, 3, 2, 2]


def test_points_are_counted() -> None:
    """A point counts once, and an empty table has none."""
    assert (point_count(TABLE), point_count(TABLE[:0])) == (4, 0)
