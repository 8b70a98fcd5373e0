"""Groups of points that differ in one column alone."""

from collections.abc import Sequence

from bench.plan.case import POINT_COLUMNS, Point
from bench.plan.columns import NONE
from bench.plan.errors import WrongRequest, unknown_names


def groups(points: Sequence[Point], column: str) -> list[tuple[Point, ...]]:
    """Return the points that differ in a column alone, in their order.

    Raises WrongRequest for an unknown column, one with a single value, or if some points have no such partner.
    """
    check(column)
    values = list(dict.fromkeys(text(point, column) for point in points))
    if len(values) < 2:
        raise WrongRequest(f"--across {column} needs two values or more, but all points have {column} = {values[0]}")
    members: dict[tuple[object, ...], list[Point]] = {}
    for point in points:
        members.setdefault(tuple(getattr(point, name) for name in POINT_COLUMNS if name != column), []).append(point)
    if alone := [of[0] for of in members.values() if len(of) == 1]:
        raise WrongRequest(
            f"--across {column} needs points that differ in it alone ({', '.join(values)}), "
            f"but {alone[0].name} has no such partner"
        )
    return [tuple(of) for of in members.values()]


def check(column: str) -> None:
    """Raise WrongRequest for an unknown column."""
    if column not in POINT_COLUMNS:
        raise WrongRequest(unknown_names("--across value", [column], POINT_COLUMNS))


def text(point: Point, column: str) -> str:
    """Return the text of a point's value in a column."""
    value = getattr(point, column)
    return NONE if value is None else str(value)
