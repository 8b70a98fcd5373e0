"""Labels beside each other that don't touch."""

from collections.abc import Sequence

from scipy.optimize import isotonic_regression


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return positions as near as possible to the wanted ones, at least `gap` apart and between low and high.

    They keep the order of the wanted ones. Where there is too little room for all, they go beyond `low`.
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    placed = _apart([wanted[index] for index in order], gap)
    placed = _inside(placed, gap, low, high)
    positions = dict(zip(order, placed, strict=True))
    return [positions[index] for index in range(len(wanted))]


def _apart(wanted: Sequence[float], gap: float) -> list[float]:
    # less their place in the row, positions a gap apart merely don't fall
    rising = isotonic_regression([position - place * gap for place, position in enumerate(wanted)]).x
    return [position + place * gap for place, position in enumerate(rising.tolist())]


def _inside(placed: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    count = len(placed)
    raised = [max(position, low + place * gap) for place, position in enumerate(placed)]
    return [min(position, high - (count - 1 - place) * gap) for place, position in enumerate(raised)]
