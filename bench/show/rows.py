"""Facts that rows of results share, in words."""

from collections.abc import Collection, Iterable, Sequence

from bench.analyse.rows import Row
from bench.plan.cards import data_sheet, model
from bench.plan.case import Point
from bench.plan.work import Roof
from bench.show.text import counted, parts
from bench.store import units
from bench.store.environment import Environment
from bench.store.metrics import Unit
from bench.store.roofline import roof_of


def reason(row: Row) -> str:
    """Return a row's detail on one line, empty if it has none."""
    return " ".join((row["detail"] or "").split())


def devices(rows: Iterable[Row]) -> list[str]:
    """Return the names of the rows' devices, each once."""
    return list(dict.fromkeys(row["device_name"] for row in rows if row["device_name"]))


def facts(point: Point, rows: Iterable[Row], varying: Collection[str] = ()) -> list[str]:
    """Return the facts that points share: layer, device, dtype, mode and so on; `rows` name the device."""
    layer, *words = parts(point, without=("device", *varying))
    names = ", ".join(devices(rows))
    return [layer, f"{point.device} ({names})" if names else point.device, *words]


def against_data_sheets(rows: Iterable[Row]) -> list[str]:
    """Return a sentence for each card and dtype: the best measured rates as shares of the data sheet's."""
    best: dict[tuple[str, str], Roof] = {}
    for row in rows:
        of = row["device_name"] or "", row["dtype"]
        if (seen := roof_of(row)) and data_sheet(*of):
            best[of] = best.get(of, seen).raised(seen)
    return [
        f"{model(name)} in {dtype}: {_share('matrix products reached', seen.flops_per_s, said.flops_per_s, 'FLOP/s')}; "
        f"{_share('a copy', seen.bytes_per_s, said.bytes_per_s, 'B/s')}"
        for (name, dtype), seen in best.items()
        if (said := data_sheet(name, dtype))
    ]


def _share(what: str, seen: float, said: float, unit: str) -> str:
    of = f"{units.percent(seen / said)} of the data sheet's {units.rate(said, unit)}"
    return f"{what} {units.rate(seen, unit)}, {of}"


def gpu_state(rows: Sequence[Row]) -> str:
    """Return the state of the GPU in some rows: `clock 1,755 to 1,980 MHz, at most 640 W, at most 61 °C`.

    The reason for throttling comes last. Empty if nothing is known.
    """
    lows_hz, highs_hz, powers_w, temperatures_c = (
        [row[name] for row in rows if row[name] is not None]
        for name in ("clock_low_hz", "clock_high_hz", "power_w", "temperature_c")
    )
    reasons = dict.fromkeys(reason for row in rows if row["throttle"] for reason in row["throttle"].split(";"))
    words = []
    if lows_hz:
        low, high = (f"{hz / 1e6:,.0f}" for hz in (min(lows_hz), max(highs_hz)))
        words.append(f"clock {low} MHz" if low == high else f"clock {low} to {high} MHz")
    words += [f"at most {units.formatted(max(powers_w), Unit.WATTS)}"] if powers_w else []
    words += [f"at most {units.formatted(max(temperatures_c), Unit.CELSIUS)}"] if temperatures_c else []
    words += [f"held down by {' and '.join(reasons)}"] if reasons else []
    return ", ".join(words)


def versions(rows: Iterable[Row]) -> list[str]:
    """Return the rows' versions of torch, each once."""
    return list(dict.fromkeys(f"torch {row['torch_version']}" for row in rows if row["torch_version"]))


def origins(rows: Sequence[Row]) -> list[str]:
    """Return the rows' versions of torch and commits, each once."""
    return [*versions(rows), *dict.fromkeys(f"commit {row['commit']}" for row in rows if row["commit"])]


def half_precision(points: Iterable[Point], here: Environment) -> list[str]:
    """Return the CPU's instructions for bfloat16 and float16, if they are known and some points on a CPU need them."""
    is_needed = any(point.kind.is_in_host_memory and point.dtype != "float32" for point in points)
    known = here.context.get("half_precision")
    return [f"CPU instructions for bfloat16 and float16: {known}"] if is_needed and known else []


def process_count(rows: Iterable[Row]) -> str:
    """Return the number or range of processes per row: `3 processes`; empty if none measured them."""
    return counted([row["processes"] for row in rows if row["processes"]], "process", "processes")


def time(row: Row) -> str:
    """Return the time of a row, or its status if it isn't ok; empty for an empty row."""
    status = row.get("status")
    return units.seconds(row["latency_s"]) if status == "ok" else status or ""
