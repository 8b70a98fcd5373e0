"""Make points from the values of a grid: products, defaults, and the rules for a point."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from bench.plan import own
from bench.plan.case import COLUMNS, POINT_COLUMNS, RETAINED, Point, default_timing
from bench.plan.columns import DERIVED, REQUIRED, Kind
from bench.plan.errors import WrongRequest, suggestion, unknown_names
from bench.plan.layers import LAYERS, complete, is_layer
from bench.plan.ranges import is_range, numbers

Values = Mapping[str, Any]
"""A value or a list of values for each column of a point; whole numbers may be a range such as `"128:2048:128"`."""

DEFAULTS: Values = {
    name: column.default for name, column in COLUMNS.items() if column.default not in (REQUIRED, DERIVED)
}
"""The values of columns that a sweep doesn't give."""


def expand(values: Values, allocator: str = RETAINED) -> Iterator[Point]:
    """Yield the points of the product of all values, the first key varying slowest.

    `allocator` is that of points on a CPU for which the values give none.

    Raises WrongRequest for unknown keys, missing ones, and values that break a rule, all of them in one message.
    """
    mistakes = mistakes_in(values)
    mistakes += [
        f"{key} is missing; every point needs it"
        for key, column in COLUMNS.items()
        if key not in values and column.default is not DERIVED
    ]
    if mistakes:
        raise WrongRequest("\n".join(mistakes))
    lists = [_listed(key, value) for key, value in values.items()]
    for combination in itertools.product(*lists):
        yield _point(dict(zip(values, combination, strict=True)), allocator)


def mistakes_in(values: Values) -> list[str]:
    """Return a line for each mistake in the values, each column checked by itself."""
    unknown = [key for key in values if key not in POINT_COLUMNS]
    mistakes = [unknown_names("key", unknown, (*POINT_COLUMNS, "model"))] if unknown else []
    for key in (key for key in values if key in POINT_COLUMNS):
        try:
            _check_list(key, _listed(key, values[key]))
        except WrongRequest as error:
            mistakes.append(str(error))
    return mistakes


def _point(values: dict[str, Any], allocator: str) -> Point:
    if "qk_scale" in values:
        values["qk_scale"] = float(values["qk_scale"])
    values.setdefault("timing", default_timing(values["device"]))
    values.setdefault("allocator", allocator if values["device"] == "cpu" else RETAINED)
    return Point(**complete(values))


def _listed(key: str, value: object) -> list[Any]:
    """Return the values of a column as a list, with ranges of whole numbers expanded."""
    listed = value if isinstance(value, list) else [value]
    if COLUMNS[key].kind is not Kind.COUNT:
        return listed
    return [number for each in listed for number in (_numbers(key, each) if is_range(each) else [each])]


def _numbers(key: str, text: str) -> list[int]:
    try:
        return numbers(text)
    except WrongRequest as error:
        raise WrongRequest(f"{key} = {error}") from None


def _check_list(key: str, values: list[Any]) -> None:
    if not values:
        raise WrongRequest(f"{key} = [] must hold at least one value")
    for value in values:
        COLUMNS[key].check(value)
        if key == "layer":
            _check_layer(value)


def _check_layer(name: str) -> None:
    if misspelled := own.misspelled(name, "layer") if name not in LAYERS else "":
        raise WrongRequest(misspelled)
    if not is_layer(name):
        expected = (*LAYERS, "module:attribute")
        raise WrongRequest(f"layer = {name!r} must be one of {', '.join(expected)}{suggestion(name, expected)}")
