"""Texts around a picture of profiles."""

from collections.abc import Collection, Sequence

from bench.plan.case import POINT_COLUMNS
from bench.show.point_text import counted, parts
from bench.store.profile import Profile


def facts(profiles: Sequence[Profile], varying: Collection[str] = ()) -> list[str]:
    """Return the values that all profiles share: layer, device, dtype, mode and so on."""
    point = profiles[0].case.point
    names = dict.fromkeys(each.origin.device_name for each in profiles if each.origin.device_name)
    layer, *words = parts(point, [name for name in POINT_COLUMNS if name not in ("device", *varying)])
    return [layer, f"{point.device} ({', '.join(names)})" if names else point.device, *words]


def origins(profiles: Sequence[Profile]) -> list[str]:
    """Return the number of profiled calls, the versions and the commits."""
    calls = counted([each.calls for each in profiles], "call", "calls")
    versions = dict.fromkeys(f"torch {each.origin.torch_version}" for each in profiles if each.origin.torch_version)
    commits = dict.fromkeys(f"commit {each.origin.commit}" for each in profiles if each.origin.commit)
    return [f"means over {calls} under the profiler", *versions, *commits]
