"""Points that differ in one column alone are grouped."""

from collections.abc import Sequence
from typing import Any

import pytest

from bench.plan.across import groups
from bench.plan.errors import WrongRequest
from tests.make.points import vit_s


def at(threads: int, tokens: int = 5, **columns: Any) -> Any:
    """Return a point with this number of threads and tokens."""
    return vit_s(threads=threads, num_tokens=tokens, **columns)


def test_each_group_has_the_points_that_differ_in_the_column_alone() -> None:
    """In the order of the sweep."""
    assert groups([at(1), at(1, 7), at(2), at(2, 7)], "threads") == [(at(1), at(2)), (at(1, 7), at(2, 7))]


@pytest.mark.parametrize(
    ("points", "column", "refusal"),
    [
        ([at(1), at(2)], "treads", "unknown --across value 'treads'; expected one of layer, "),
        ([at(1), at(1, 7)], "threads", "--across threads needs two values or more, but all points have threads = 1"),
        (
            [at(1), at(2)],
            "window_size",
            "--across window_size needs two values or more, but all points have window_size = none",
        ),
        (
            [at(1), at(1, 7)],
            "qkv_bias",
            "--across qkv_bias needs two values or more, but all points have qkv_bias = False",
        ),
        ([at(1), at(2, 7)], "threads", "--across threads needs points that differ in it alone (1, 2), but vit-cpu-"),
    ],
)
def test_what_has_no_partner_is_refused(points: Sequence[Any], column: str, refusal: str) -> None:
    """The line says which values there are."""
    with pytest.raises(WrongRequest) as error:
        groups(points, column)
    assert str(error.value).startswith(refusal)
