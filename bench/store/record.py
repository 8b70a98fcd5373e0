"""A record: one case in one process, with everything that was measured and nothing derived."""

import dataclasses
import sys
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import UnionType
from typing import Any, Self

from bench.plan.case import Case, Point
from bench.plan.errors import WrongRequest, suggestion
from bench.store.metrics import REPORTED

SCHEMA_VERSION = 9
"""The version of the journal's lines and of plans. Older lines are read: a value that they lack is empty, or the one
that its column declares as `absent`."""

STATUSES = ("ok", "unsupported", "incorrect", "fallback", "oom", "timeout", "crashed", "error", "skipped")
"""How a case can end; every planned case ends as one of these."""

MOST = {int: 2**63 - 1, float: sys.float_info.max}
"""The largest numbers that a table can hold."""


MAY_LACK = ("others", "product_s", "copy_s")
"""The columns of samples that are empty in some journals."""


@dataclass(frozen=True)
class Samples:
    """The samples of one implementation in one process, as columns of equal length.

    `rounds` are the numbers of the rounds; `timings_s` are the seconds per call of each timing of a sample;
    `switches` and `faults` are the involuntary context switches and minor page faults during a sample;
    `others` is the share of the free cores that other processes kept busy around the sample, empty before schema 2;
    `product_s` and `copy_s` are the seconds of the speed probe's work around the sample, empty if there was no probe.
    """

    rounds: tuple[int, ...] = ()
    timings_s: tuple[tuple[float, ...], ...] = ()
    switches: tuple[int, ...] = ()
    faults: tuple[int, ...] = ()
    others: tuple[float, ...] = ()
    product_s: tuple[float, ...] = ()
    copy_s: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for values that no measurement has."""
        count = len(self.rounds)
        for name, values in vars(self).items():
            if len(values) != count and (values or name not in MAY_LACK):
                raise ValueError(f"rounds has {count} values and {name} has {len(values)}; they must be equally long")
        for name in ("rounds", "switches", "faults", *MAY_LACK):
            _check_numbers(name, getattr(self, name), whole=name not in MAY_LACK)
        if len(set(self.rounds)) < count:
            raise ValueError("rounds must differ from each other")
        for timings in self.timings_s:
            _check_timings(timings)

    @cached_property
    def values_s(self) -> tuple[float, ...]:
        """The value of each sample: the minimum of its timings, because a delay can only add."""
        return tuple(min(timings) for timings in self.timings_s)

    def rounded(self) -> Self:
        """Return the samples as a journal holds them: times with seven digits, and what is around them with five.

        A clock of nanoseconds tells seven digits of 10 ms; the speed probe scatters in its third digit.
        """
        timings_s = tuple(tuple(_digits(each, 7) for each in timings) for timings in self.timings_s)
        around: dict[str, Any] = {name: tuple(_digits(each, 5) for each in getattr(self, name)) for name in MAY_LACK}
        return dataclasses.replace(self, timings_s=timings_s, **around)

    def to_json(self) -> dict[str, Sequence[Any]]:
        """Return the columns of a journal's line, without those that are empty and may be."""
        columns = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return {name: values for name, values in columns.items() if values or name not in MAY_LACK}

    @classmethod
    def from_json(cls, columns: dict[str, Any]) -> Self:
        """Return the samples of a journal's line."""
        names = ("rounds", "timings_s", "switches", "faults")
        values = {name: _tuple(name, columns[name]) for name in names}
        values["timings_s"] = tuple(_tuple("timings_s", timings) for timings in values["timings_s"])
        return cls(**values, **{name: _tuple(name, columns.get(name, [])) for name in MAY_LACK})


def _digits(value: float, digits: int) -> float:
    """Return a number with so many significant digits."""
    return float(f"{value:.{digits}g}")


@dataclass(frozen=True)
class Origin:
    """The place and time of a record's measurement."""

    env_id: str
    device_name: str
    torch_version: str
    commit: str
    started_at: str


@dataclass(frozen=True)
class Record:
    """One case in one process: one line of the journal.

    `metrics` has a value for each of `bench.store.metrics.REPORTED`, None or an empty tuple if it was not measured.
    `seed` is that of the weights and inputs; `pid` is the id of the process that measured the case.
    `replicate_size` is the number of records of the point in this replicate, which were measured in the same rounds.
    `own_cause` is False if the case failed and may not be the cause: a resumed run tries it again.
    """

    case: Case
    process: int
    status: str
    origin: Origin
    detail: str = ""
    samples: Samples = field(default_factory=Samples)
    metrics: Mapping[str, Any] = field(default_factory=dict, hash=False)
    replicate_size: int = 1
    own_cause: bool = True
    seed: int | None = None
    pid: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for values that no measurement has."""
        if self.status not in STATUSES:
            raise ValueError(f"status must be one of {', '.join(STATUSES)}, got {self.status!r}")
        for of in (self.case, self.case.point, self.origin, self):
            for name, hint in KINDS[type(of)].items():
                _check(name, getattr(of, name), hint)
        for name, value in self.metrics.items():
            check_metric(name, value)
        every = {name: self.metrics.get(name, metric.empty) for name, metric in REPORTED.items()}
        object.__setattr__(self, "metrics", every)
        if self.replicate_size < 1:
            raise ValueError("replicate_size must be at least 1, got 0")

    def columns(self) -> dict[str, Any]:
        """Return the record without its samples as one flat object."""
        return {
            "schema_version": SCHEMA_VERSION,
            **self.case.columns(),
            "process": self.process,
            "status": self.status,
            "detail": self.detail,
            **self.metrics,
            **{name: getattr(self, name) for name in SESSION},
            **vars(self.origin),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the record as one flat JSON object, with its samples as lists."""
        return {**self.columns(), "samples": dataclasses.asdict(self.samples)}

    @classmethod
    def from_json(cls, line: dict[str, Any]) -> Self:
        """Return the record of a journal line.

        Raises WrongRequest for a newer schema, KeyError, TypeError or ValueError for a line that is no record.
        """
        check_schema(line["schema_version"])
        record = cls(
            case=Case.from_columns(line),
            process=line["process"],
            status=line["status"],
            origin=Origin(**{f.name: line[f.name] for f in dataclasses.fields(Origin)}),
            detail=line.get("detail", ""),
            samples=Samples.from_json(line["slots"] if "slots" in line else line["samples"]),
            metrics=reported({name: line[name] for name in REPORTED if name in line}),
            **_session(line),
        )
        if record.status == "ok" and not record.samples.rounds:
            raise ValueError("timings_s must hold at least one sample if the status is ok")
        return record


def _session(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that say how a record was measured; some had other names before schema 8."""
    values = {"replicate_size": line["visit_size"]} if "visit_size" in line else {}
    return values | {name: line[name] for name in SESSION if name in line}


def reported(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return metrics from JSON as a record has them, in which several texts are a tuple."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def check_metric(name: str, value: Any) -> None:
    """Raise ValueError for a name that is no reported metric, or for a value that the metric can't have."""
    if name not in REPORTED:
        raise ValueError(f"unknown metric {name!r}{suggestion(name, REPORTED)}; bench/store/metrics.py declares them")
    kind = REPORTED[name].kind
    _check(name, value, (kind,) if kind is tuple else (kind, type(None)))


class Outcome(typing.Protocol):
    """How a case ended in a process: a record, or what is known of one."""

    @property
    def case(self) -> Case:
        """The case."""

    @property
    def status(self) -> str:
        """How it ended."""


Ended = typing.TypeVar("Ended", bound=Outcome)


def latest(records: Iterable[Ended]) -> list[Ended]:
    """Return the records that count: those that are ok, and failures that are the last record of their case."""
    records = list(records)
    if all(record.status == "ok" for record in records):
        return records
    last = {record.case: index for index, record in enumerate(records)}
    return [record for index, record in enumerate(records) if record.status == "ok" or index == last[record.case]]


def check_schema(version: int, newest: int = SCHEMA_VERSION, what: str = "results") -> None:
    """Raise WrongRequest if files were written by a newer suite than this one."""
    if version > newest:
        raise WrongRequest(
            f"{what} have schema_version {version}; this suite reads up to {newest}, so update the suite"
        )


def _tuple(name: str, values: Any) -> tuple[Any, ...]:
    if not isinstance(values, list | tuple):
        raise ValueError(f"{name} must be a list, got {values!r}")
    return tuple(values)


def _check_timings(timings: tuple[float, ...]) -> None:
    if not timings:
        raise ValueError("timings_s must hold at least one timing in each sample")
    for value in timings:
        if type(value) not in (float, int) or not 0 < value <= MOST[float]:
            raise ValueError(f"timings_s must be numbers of seconds above 0, got {value!r}")


def _check_numbers(name: str, values: tuple[float, ...], *, whole: bool) -> None:
    for value in values:
        if type(value) not in ((int,) if whole else (float, int)) or not 0 <= value <= MOST[type(value)]:
            raise ValueError(f"{name} must be {'whole ' if whole else ''}numbers of at least 0, got {value!r}")


def _kinds(of: type) -> dict[str, tuple[type, ...]]:
    """Return the types that each plain field of a dataclass may have; a field of texts has the type `tuple`."""
    kinds = {}
    for name, hint in typing.get_type_hints(of).items():
        members = typing.get_args(hint) if isinstance(hint, UnionType) else (hint,)
        plain = tuple(typing.get_origin(member) or member for member in members)
        if not {Case, Point, Origin, Samples, Mapping} & set(plain):
            kinds[name] = plain
    return kinds


def _check(name: str, value: Any, kinds: tuple[type, ...]) -> None:
    """Raise ValueError for a value of another type, or a number that is negative, infinite or NaN."""
    numeric = float in kinds or int in kinds
    allowed = (*kinds, int) if float in kinds else kinds  # JSON writes 2.0 as 2 in some languages
    if type(value) not in allowed or (isinstance(value, tuple) and not all(type(text) is str for text in value)):
        words = " or ".join(WORDS.get(kind, kind.__name__) for kind in kinds)
        raise ValueError(f"{name} must be {words}, got {value!r}")
    signed = name == "qk_scale"
    if numeric and value is not None and not (-MOST[float] if signed else 0) <= value <= MOST[type(value)]:
        raise ValueError(f"{name} must be a finite number{'' if signed else ' of at least 0'}, got {value!r}")


SESSION = ("replicate_size", "own_cause", "seed", "pid")
"""The fields of a record that say how it was measured."""

KINDS: dict[type, dict[str, tuple[type, ...]]] = {of: _kinds(of) for of in (Case, Point, Origin, Record)}
"""The types of the plain fields of a record and its parts."""

WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    tuple: "a list of texts",
    type(None): "empty",
}
