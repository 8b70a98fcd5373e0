"""A record, one case in one process, and its line in the journal.

A line is a JSON object with everything that was measured and nothing derived.
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from operator import attrgetter
from typing import Annotated, Any, Self, get_type_hints

import msgspec
from msgspec import Meta

from bench.plan.case import COLUMNS, POINT_COLUMNS, Case, Point
from bench.plan.columns import REQUIRED, ValueKind
from bench.plan.errors import WrongRequest, suggestion
from bench.plan.names import check_texts
from bench.store.environment import Environment
from bench.store.metrics import REPORTED
from bench.store.typed import Amount, Count, Seconds, convert, decode

SCHEMA_VERSION = 13
"""The version of all files of a run; files of other versions aren't read."""

STATUSES = ("ok", "unsupported", "incorrect", "fallback", "oom", "timeout", "crashed", "error", "skipped")
"""The ways in which a case can end; every planned case ends in one of them."""

Status = Annotated[str, Meta(pattern=rf"^({'|'.join(STATUSES)})\Z")]

ABSENT = {name: column.absent for name, column in COLUMNS.items() if column.absent is not REQUIRED}
"""The values of columns that a line leaves out because its layer doesn't use them."""


@dataclass(frozen=True)
class Samples:
    """The samples of one implementation in one process, as columns of equal length.

    `rounds` has the numbers of the rounds; `timings_s` the seconds per call of each timing of a sample;
    `switches` the involuntary context switches during a sample;
    `others` the share of the free cores that other processes kept busy around the sample; `host_s` the
    host's seconds per call on a GPU, empty on a CPU.
    """

    rounds: tuple[Count, ...] = ()
    timings_s: tuple[Annotated[tuple[Seconds, ...], Meta(min_length=1)], ...] = ()
    switches: tuple[Count, ...] = ()
    others: tuple[Amount, ...] = ()
    host_s: tuple[Amount, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for columns of different lengths or repeated rounds."""
        count = len(self.rounds)
        for name, values in vars(self).items():
            if len(values) != count and (values or name != "host_s"):
                raise ValueError(f"rounds has {count} values and {name} has {len(values)}; they must be equally long")
        if len(set(self.rounds)) < count:
            raise ValueError("rounds must differ from each other")

    @cached_property
    def values_s(self) -> tuple[float, ...]:
        """The value of each sample: the minimum of its timings, because a delay can only add."""
        return tuple(min(timings) for timings in self.timings_s)

    def rounded(self) -> Self:
        """Return the samples as the journal holds them: times with seven significant digits, the rest with five.

        A nanosecond clock resolves seven digits of 10 ms.
        """
        timings_s = tuple(tuple(_digits(each, 7) for each in timings) for timings in self.timings_s)
        others, host_s = (tuple(_digits(each, 5) for each in column) for column in (self.others, self.host_s))
        return dataclasses.replace(self, timings_s=timings_s, others=others, host_s=host_s)


def _digits(value: float, digits: int) -> float:
    """Return a number rounded to a number of significant digits."""
    return float(f"{value:.{digits}g}")


@dataclass(frozen=True)
class Origin:
    """The place and time of a record's measurement."""

    env_id: str
    device_name: str
    torch_version: str
    commit: str
    started_at: str

    @classmethod
    def of(cls, here: Environment, device: str, started_at: str) -> Self:
        """Return the origin of a measurement on a device of an environment."""
        return cls(here.env_id, here.device_name(device), here.identity["torch"], here.context["commit"], started_at)


@dataclass(frozen=True)
class Record:
    """One case in one process: one line of the journal.

    `metrics` has a value for each of `bench.store.metrics.REPORTED`, None or an empty tuple if not measured.
    `seed` is the seed of weights and inputs; `pid` is the id of the process that measured the case.
    `own_cause` is False if the case failed but may not be the cause: a resumed run tries it again.
    """

    case: Case
    process: int
    status: str
    origin: Origin
    detail: str = ""
    samples: Samples = field(default_factory=Samples)
    metrics: Mapping[str, Any] = field(default_factory=dict, hash=False)
    own_cause: bool = True
    seed: int | None = None
    pid: int | None = None

    def __post_init__(self) -> None:
        every = {name: self.metrics.get(name, metric.empty) for name, metric in REPORTED.items()}
        object.__setattr__(self, "metrics", every)


SESSION: Mapping[str, Any] = {"own_cause": bool, "seed": Count | None, "pid": Count | None}
"""The fields of a record that say how it was measured, with their types."""

METRICS: Mapping[str, Any] = {
    name: tuple[str, ...] if metric.kind is tuple else {int: Count, float: Amount}.get(metric.kind, metric.kind) | None
    for name, metric in REPORTED.items()
}
"""The type of each reported metric."""


def reported(name: str, value: Any) -> Any:
    """Return a worker's metric; raises ValueError for an unknown name or a value of another type."""
    kind = METRICS.get(name)
    if kind is None:
        raise ValueError(f"unknown metric {name!r}{suggestion(name, METRICS)}; bench/store/metrics.py declares them")
    return convert(value, kind, name)


class _Versioned(msgspec.Struct):
    schema_version: int


def check_schema(content: bytes) -> None:
    """Raise WrongRequest for JSON of another schema_version, ValueError for one without."""
    check_version(decode(_Versioned, content).schema_version)


def check_version(version: int) -> None:
    """Raise WrongRequest for a version of files that this suite doesn't read, and say which suite does."""
    if version != SCHEMA_VERSION:
        reader = "update the suite"
        if version < SCHEMA_VERSION:
            reader = "read it with the suite that wrote it, at the commit in environment.json"
        raise WrongRequest(f"schema_version is {version}, but this suite reads only {SCHEMA_VERSION}; {reader}")


Line: Any = msgspec.defstruct(
    "Line",
    [
        *(
            (name, hint, ABSENT[name]) if name in ABSENT else (name, hint)
            for name, hint in get_type_hints(Point).items()
        ),
        ("implementation", str),
        ("process", Count),
        ("status", Status),
        *((each.name, str) for each in dataclasses.fields(Origin)),
        ("detail", str, ""),
        ("own_cause", bool),
        *((name, SESSION[name], None) for name in ("seed", "pid")),
        *((name, kind, REPORTED[name].empty) for name, kind in METRICS.items()),
        ("samples", Samples),
    ],
    kw_only=True,
)
"""The fields of a line."""


TEXTS = ("implementation", *(name for name in POINT_COLUMNS if COLUMNS[name].kind is ValueKind.TEXT))
"""The columns of a case that are texts."""


def encode_line(record: Record) -> bytes:
    """Return the line of a record without a line end; raises ValueError for a number that JSON can't hold."""
    case = {name: value for name, value in record.case.columns().items() if name not in ABSENT or value != ABSENT[name]}
    facts = {"detail": record.detail, **record.metrics, **{name: getattr(record, name) for name in SESSION}}
    columns = {each.name: getattr(record.samples, each.name) for each in dataclasses.fields(Samples)}
    content = {
        "schema_version": SCHEMA_VERSION,
        **case,
        "process": record.process,
        "status": record.status,
        **vars(record.origin),
        **{name: value for name, value in facts.items() if value not in (None, (), "")},
        "samples": {name: values for name, values in columns.items() if values or name != "host_s"},
    }
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def decode_line(content: bytes) -> Record:
    """Return the record of a line.

    Raises WrongRequest for another schema, ValueError for any other invalid line.
    """
    check_schema(content)
    line = decode(Line, content)
    check_texts(*(getattr(line, name) or "" for name in TEXTS))
    if line.status == "ok" and not line.samples.rounds:
        raise ValueError("timings_s must hold at least one sample if the status is ok")
    origin = Origin(*(getattr(line, each.name) for each in dataclasses.fields(Origin)))
    metrics = {name: getattr(line, name) for name in METRICS}
    session: dict[str, Any] = {name: getattr(line, name) for name in SESSION}
    case = _case(line.implementation, *_columns(line))
    return Record(case, line.process, line.status, origin, line.detail, line.samples, metrics, **session)


_columns = attrgetter(*POINT_COLUMNS)


@cache
def _case(implementation: str, *columns: Any) -> Case:
    """Return the case of a line: equal ones, and equal points, are the same object."""
    return Case(_point(*columns), implementation)


@cache
def _point(*columns: Any) -> Point:
    return Point(**dict(zip(POINT_COLUMNS, columns, strict=True)))
