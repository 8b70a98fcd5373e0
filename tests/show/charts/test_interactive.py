"""Charts that only pages have."""

from bench.show.charts.interactive import course


def test_many_points_share_a_colour() -> None:
    """A legend names those of a few points."""
    few, many = (course([f"N={n}" for n in range(count)], None)["layer"][0] for count in (10, 11))
    assert len(few["encoding"]["color"]["scale"]["domain"]) == 10
    assert "value" in many["encoding"]["color"]
