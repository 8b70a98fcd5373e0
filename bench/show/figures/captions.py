"""Texts around pictures: the values that all cases share, and the origin of the numbers."""

from collections.abc import Collection, Sequence

from bench.plan.case import Point
from bench.show.rows import Row, devices
from bench.show.text import counted, parts
from bench.store.profile import Profile


def facts(point: Point, rows: Sequence[Row], varying: Collection[str] = ()) -> list[str]:
    """Return the fixed values: layer, device, dtype, mode and so on; `rows` name the device."""
    layer, *words = parts(point, without=("device", *varying))
    names = ", ".join(devices(rows))
    return [layer, f"{point.device} ({names})" if names else point.device, *words]


def origin_rows(profiles: Sequence[Profile]) -> list[Row]:
    """Return the origins of profiles by column, as in rows of the results."""
    return [vars(profile.origin) for profile in profiles]


def calls(profiles: Sequence[Profile]) -> str:
    """Return how many calls were profiled."""
    return f"means over {counted([each.calls for each in profiles], 'call', 'calls')} under the profiler"
