"""Labels beside each other that don't touch."""

from collections.abc import Sequence


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
    # less their place in the row, positions a gap apart merely don't fall: the nearest such row pools its violators
    blocks: list[tuple[float, int]] = []
    for place, position in enumerate(wanted):
        mean, count = position - place * gap, 1
        while blocks and blocks[-1][0] > mean:
            before, members = blocks.pop()
            mean, count = (before * members + mean * count) / (members + count), members + count
        blocks.append((mean, count))
    means = [mean for mean, count in blocks for _ in range(count)]
    return [mean + place * gap for place, mean in enumerate(means)]


def _inside(placed: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    count = len(placed)
    raised = [max(position, low + place * gap) for place, position in enumerate(placed)]
    return [min(position, high - (count - 1 - place) * gap) for place, position in enumerate(raised)]
