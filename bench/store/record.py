"""A record: one case in one process, with everything that was measured and nothing that was derived."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Self

from bench.plan.case import CASE_COLUMNS, Case
from bench.plan.errors import WrongRequest

SCHEMA_VERSION = 5
"""2 added host_s, system_peak_bytes, clock_hz, throttle, and to slots others; 3 four columns of the case, which say
since when they are there; 4 to the table of results, not to records, the ratio to the fastest of a point; 5 seed."""

STATUSES = ("ok", "unsupported", "incorrect", "fallback", "oom", "timeout", "crashed", "error", "skipped")
"""How a case can end; every planned case ends as one of these."""


@dataclass(frozen=True)
class Slots:
    """The turns of one implementation in one process, as columns of equal length.

    `rounds` numbers the rounds of the process; `timings_s` holds the seconds per call of each timing of a slot;
    `switches` and `faults` are the involuntary context switches and minor page faults during a slot,
    `others` the share of the cores left free that other processes kept busy around it; empty before schema 2.
    """

    rounds: tuple[int, ...] = ()
    timings_s: tuple[tuple[float, ...], ...] = ()
    switches: tuple[int, ...] = ()
    faults: tuple[int, ...] = ()
    others: tuple[float, ...] = ()

    @property
    def values_s(self) -> tuple[float, ...]:
        """The value of each slot: the minimum of its timings, because a delay can only add."""
        return tuple(min(timings) for timings in self.timings_s)

    @classmethod
    def from_json(cls, columns: dict[str, Any]) -> Self:
        """Return the slots that `dataclasses.asdict` made into lists."""
        return cls(
            rounds=tuple(columns["rounds"]),
            timings_s=tuple(tuple(timings) for timings in columns["timings_s"]),
            switches=tuple(columns["switches"]),
            faults=tuple(columns["faults"]),
            others=tuple(columns.get("others", ())),
        )


@dataclass(frozen=True)
class Origin:
    """Where and when a record was measured."""

    env_id: str
    device_name: str
    torch_version: str
    commit: str
    started_at: str


@dataclass(frozen=True)
class Record:
    """One case in one process: one line of the journal.

    A number that was not measured is None.
    `host_s` is what a call costs the host, beside the device's time; `system_peak_bytes` the peak that the operating
    system saw; `clock_hz` and `throttle` the GPU's clock and the reasons that held it down after the rounds.
    `seed` is what weights, inputs and orders were drawn from in this process.
    `visit_size` counts the records of the point that this process measured together, in the same rounds.
    """

    case: Case
    process: int
    status: str
    origin: Origin
    detail: str = ""
    slots: Slots = field(default_factory=Slots)
    calls_per_timing: int | None = None
    settled: bool | None = None
    host_s: float | None = None
    peak_bytes: int | None = None
    saved_bytes: int | None = None
    reserved_bytes: int | None = None
    system_peak_bytes: int | None = None
    compile_s: float | None = None
    compile_cached: bool | None = None
    graphs: int | None = None
    kernels: tuple[str, ...] = ()
    error: float | None = None
    tolerance: float | None = None
    clock_hz: float | None = None
    throttle: tuple[str, ...] = ()
    visit_size: int = 1
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status must be one of {', '.join(STATUSES)}, got {self.status!r}")

    def to_json(self) -> dict[str, Any]:
        """Return the record as one flat JSON object."""
        values = dataclasses.asdict(self)
        del values["case"], values["origin"]
        return {
            "schema_version": SCHEMA_VERSION,
            **self.case.columns(),
            **values,
            **dataclasses.asdict(self.origin),
        }

    @classmethod
    def from_json(cls, line: dict[str, Any]) -> Self:
        """Return the record of a journal line; raises WrongRequest for a newer schema, KeyError for a foreign line."""
        check_schema(line["schema_version"])
        names = {f.name for f in dataclasses.fields(cls)} - {"case", "origin", "slots", "kernels", "throttle"}
        return cls(
            case=Case.from_columns({name: line[name] for name in CASE_COLUMNS if name in line}),
            origin=Origin(**{f.name: line[f.name] for f in dataclasses.fields(Origin)}),
            slots=Slots.from_json(line["slots"]),
            kernels=tuple(line["kernels"]),
            throttle=tuple(line.get("throttle", ())),
            **{name: line[name] for name in names if name in line},
        )


def check_schema(version: int) -> None:
    """Raise WrongRequest when results were written by a newer suite than this one."""
    if version > SCHEMA_VERSION:
        raise WrongRequest(
            f"results have schema_version {version}; this suite reads up to {SCHEMA_VERSION}, so update the suite"
        )
