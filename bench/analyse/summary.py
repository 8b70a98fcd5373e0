"""From records to rows: one row per case."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bench.analyse.statistics import latency, paired_log_ratio, ratio
from bench.plan.case import Case, Point
from bench.store.record import SCHEMA_VERSION, STATUSES, Record
from bench.store.table import COLUMNS, typed


def summarise(records: Iterable[Record], baseline: str) -> pd.DataFrame:
    """Return the table of results of the records, a row per case in the order of their first record."""
    by_case: dict[Case, list[Record]] = {}
    for record in records:
        by_case.setdefault(record.case, []).append(record)
    rows = [row(case, group, by_case.get(Case(case.point, baseline), [])) for case, group in by_case.items()]
    return typed(pd.DataFrame(rows, columns=list(COLUMNS)))


def row(case: Case, records: Sequence[Record], baseline: Sequence[Record]) -> dict[str, Any]:
    """Return the row of one case: what its processes say together, and the ratio to the baseline's processes."""
    worst = max(records, key=lambda record: STATUSES.index(record.status))
    first = records[0]
    return {
        **case.columns(),
        "status": worst.status,
        "detail": _detail(worst, records),
        **(_time(records) if worst.status == "ok" else {}),
        **(_ratio(records, baseline) if worst.status == "ok" else {}),
        "processes": len(records),
        "peak_bytes": _first(records, "peak_bytes"),
        "saved_bytes": _first(records, "saved_bytes"),
        "reserved_bytes": _first(records, "reserved_bytes"),
        **_compilation(records),
        "kernels": ";".join(next((record.kernels for record in records if record.kernels), ())) or None,
        "error": max((record.error for record in records if record.error is not None), default=None),
        "tolerance": _first(records, "tolerance"),
        "env_id": first.origin.env_id,
        "device_name": first.origin.device_name,
        "torch_version": first.origin.torch_version,
        "commit": first.origin.commit,
        "started_at": first.origin.started_at,
        "schema_version": SCHEMA_VERSION,
    }


def winners(table: pd.DataFrame) -> Mapping[Point, pd.DataFrame]:
    """Return the rows of each point that are ok, fastest first."""
    points: dict[Point, list[int]] = {}
    for index, values in zip(table.index, table.to_dict("records"), strict=True):
        members = points.setdefault(Case.from_columns({str(k): v for k, v in values.items()}).point, [])
        if values["status"] == "ok":
            members.append(index)
    return {point: table.loc[members].sort_values("latency_s") for point, members in points.items()}


def _detail(worst: Record, records: Sequence[Record]) -> str | None:
    same = sum(record.status == worst.status for record in records)
    if worst.status == "ok" or same == len(records):
        return worst.detail or None
    return f"in {same} of {len(records)} processes: {worst.detail}"


def _time(records: Sequence[Record]) -> dict[str, Any]:
    values = [record.slots.values_s for record in records]
    medians = latency([float(np.median(process)) for process in values])
    slots = sum(len(process) for process in values)
    calls = sum(
        len(timings) * (record.calls_per_timing or 1) for record in records for timings in record.slots.timings_s
    )
    flagged = sum(count > 0 for record in records for count in record.slots.switches)
    return {
        "latency_s": medians.value,
        "latency_low_s": medians.low,
        "latency_high_s": medians.high,
        "latency_min_s": min(itertools.chain.from_iterable(values)),
        "rounds": slots,
        "calls_per_timing": int(np.median([record.calls_per_timing or 1 for record in records])),
        "flagged_share": flagged / slots,
        "page_faults": sum(sum(record.slots.faults) for record in records) / calls,
        "settled": all(record.settled for record in records),
    }


def _ratio(records: Sequence[Record], baseline: Sequence[Record]) -> dict[str, Any]:
    if any(record.status != "ok" for record in baseline):
        return {}
    base = {record.process: record.slots for record in baseline}
    logs = [
        paired_log_ratio(
            record.slots.values_s,
            record.slots.rounds,
            base[record.process].values_s,
            base[record.process].rounds,
        )
        for record in records
        if record.process in base
    ]
    logs = [value for value in logs if not math.isnan(value)]
    if not logs:
        return {}
    speedup = ratio(logs)
    return {
        "speedup": speedup.value,
        "speedup_low": speedup.low,
        "speedup_high": speedup.high,
        "log_ratio_sd": speedup.sd,
    }


def _compilation(records: Sequence[Record]) -> dict[str, Any]:
    compiled = [record.compile_s for record in records if record.compile_s is not None]
    return {
        "compile_cold_s": compiled[0] if compiled else None,
        "compile_warm_s": float(np.median(compiled[1:])) if len(compiled) > 1 else None,
        "graphs": _first(records, "graphs"),
    }


def _first(records: Sequence[Record], name: str) -> Any:
    return next((value for record in records if (value := getattr(record, name)) is not None), None)
