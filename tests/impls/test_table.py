"""The table of choices: what is read, what is refused, and which core a shape gets."""

from pathlib import Path
from typing import Any

import pytest

from impls.table import Kind, Sizes, WrongTable, is_near, load, nearest
from tests.make.choices import POINT, written

PLAIN: Kind = ("cpu", "float32", False, "none")
CHOICES = (
    (PLAIN, (100, 64, 48), "manual"),
    (PLAIN, (400, 64, 48), "online"),
    (("cpu", "bfloat16", False, "none"), (100, 64, 48), "eager"),
)


@pytest.mark.parametrize(
    ("kind", "sizes", "core"),
    [
        (PLAIN, (100, 64, 48), "manual"),
        (PLAIN, (199, 64, 48), "manual"),
        (PLAIN, (201, 64, 48), "online"),
        (PLAIN, (800, 64, 48), "online"),
        (PLAIN, (801, 64, 48), "sdpa"),
        (PLAIN, (49, 64, 48), "sdpa"),
        (PLAIN, (100, 129, 48), "sdpa"),
        (PLAIN, (100, 64, 97), "sdpa"),
        (PLAIN, (100, 32, 24), "manual"),
        (("cpu", "bfloat16", False, "none"), (100, 64, 48), "eager"),
        (("cuda", "float32", False, "none"), (100, 64, 48), "sdpa"),
        (("cpu", "float32", True, "none"), (100, 64, 48), "sdpa"),
        (("cpu", "float32", False, "causal"), (100, 64, 48), "sdpa"),
    ],
)
def test_a_shape_gets_the_core_of_the_nearest_point(kind: Kind, sizes: Sizes, core: str) -> None:
    """Near is within a factor of 2 in each size, by logarithms, and of the same kind; what has none gets sdpa."""
    assert nearest(CHOICES, kind, sizes) == core


@pytest.mark.parametrize(
    "sizes", [(50, 128, 24), (100, 64, 48), (200, 32, 96), (201, 64, 48), (100, 31, 48), (49, 64, 48)]
)
def test_near_is_within_a_factor_of_2_in_each_size(sizes: Sizes) -> None:
    """As for the choice of a core."""
    assert is_near(sizes, (100, 64, 48)) == (nearest(CHOICES[:1], PLAIN, sizes) == "manual")


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (None, "the table was not checked between its points"),
        (
            {"shapes": 6, "verdicts": {"faster": 4, "as fast": 2}},
            "the table, checked at 6 shapes beside sdpa: faster at 4, as fast at 2",
        ),
        (
            {"shapes": 1, "regret": {"table": {"mean": 0.0041}}},
            "the table, checked at 1 shape, cost 0.4 % on average there",
        ),
    ],
)
def test_a_table_says_how_it_was_checked(check: dict[str, Any] | None, words: str, tmp_path: Path) -> None:
    """Earlier versions measured by how much more time it took than the fastest core."""
    changes: dict[str, Any] = {"check": check} if check else {}
    assert load(written(tmp_path, **changes)).checked == words


def test_a_table_has_its_points(tmp_path: Path) -> None:
    """A GPU's number and points that keep a graph without a backward pass are of no use to a call.

    Points of other threads count if there are no others.
    """
    points: tuple[dict[str, Any], ...] = ({}, {"device": "cuda:1", "mode": "train"}, {"mode": "forward"})
    assert load(written(tmp_path, *points)).choices == (
        (PLAIN, (8, 4, 6), "manual"),
        (("cuda", "float32", True, "none"), (8, 4, 6), "manual"),
    )
    path = written(tmp_path, {"threads": 3}, {"threads": 5, "implementation": "online"})
    assert [name for *_, name in load(path, 5).choices] == ["online"]
    assert load(path, 7).threads == {3, 5}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": "another"}, "must have format 'attention-bench table' and schema_version 1, got"),
        ({"schema_version": 2}, "schema_version 1, got ('attention-bench table', 2)"),
        ({"points": [{**POINT, "num_tokens": "8"}]}, "num_tokens must be a whole number of at least 1, got '8'"),
        ({"points": [{**POINT, "batch": 0}]}, "batch must be a whole number of at least 1, got 0"),
        ({"points": [{"mode": "inference", "threads": 1}]}, "lacks batch"),
        ({"points": [3]}, "has a value of another type"),
        ({"check": {"shapes": 3}}, "lacks verdicts"),
        ({"environment": 3}, "has a value of another type"),
        ({"environment": {}}, "lacks cpu"),
        ("", "can't be read: No such file"),
        ("{", "is not JSON; the command export writes one"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(changes: dict[str, Any] | str, reason: str, tmp_path: Path) -> None:
    """The line names the file, and what must be there or is missing; a text stands for the content of the file."""
    path = tmp_path / "table.json"
    if isinstance(changes, dict):
        written(tmp_path, **changes)
    elif changes:
        path.write_text(changes)
    with pytest.raises(WrongTable) as refused:
        load(path)
    message = str(refused.value)
    assert str(path) in message
    assert reason in message
    assert "\n" not in message
