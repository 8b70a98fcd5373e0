"""A line of the journal: a record as JSON, with its samples at the end, and then a checksum.

The case and the head come first: what a run decides by when it goes on. The rest is read only when it is needed.
"""

import dataclasses
import json
import typing
import zlib
from dataclasses import dataclass
from typing import Any

import msgspec

from bench.plan.case import COLUMNS, POINT_COLUMNS, Case, Point
from bench.plan.columns import REQUIRED
from bench.store import typed
from bench.store.metrics import REPORTED
from bench.store.record import (
    MAY_LACK,
    METRICS,
    OLDEST_SCHEMA,
    SCHEMA_VERSION,
    SESSION,
    Origin,
    Record,
    Samples,
    Status,
    check_schema,
    schema_of,
)
from bench.store.typed import Count, Positive

HEAD, REST = b',"process":', b',"started_at":'
"""The beginnings of the head and of the rest; neither can stand within a text, in which quotes have a backslash."""

SEAL = b',"crc32":"'
"""The beginning of the last key, whose value is the CRC-32 of everything before it, in eight digits."""

SEAL_BYTES = len(SEAL) + 10

ABSENT = {name: column.absent for name, column in COLUMNS.items() if column.absent is not REQUIRED}
"""The values of columns that a line leaves out."""


@dataclass(frozen=True, slots=True)
class Head:
    """The facts of a record besides its case that a run decides by when it goes on."""

    process: Count
    replicate_size: Positive
    own_cause: bool
    status: Status
    env_id: str
    device_name: str
    torch_version: str
    commit: str

    @classmethod
    def of(cls, record: Record) -> "Head":
        """Return the head of a record."""
        origin = record.origin
        known = (record.process, record.replicate_size, record.own_cause, record.status)
        return cls(*known, origin.env_id, origin.device_name, origin.torch_version, origin.commit)


def _fields(of: type) -> list[Any]:
    """Return the fields of a class for a struct: names and types, and the values of columns that a line leaves out."""
    hints = typing.get_type_hints(of, include_extras=True).items()
    return [(name, hint, ABSENT[name]) if name in ABSENT else (name, hint) for name, hint in hints]


First = msgspec.defstruct("First", [*_fields(Point), ("implementation", str), ("schema_version", int)], kw_only=True)
"""What a line has up to HEAD."""

Rest = msgspec.defstruct(
    "Rest",
    [
        ("started_at", str),
        ("detail", str, ""),
        *((name, SESSION[name], None) for name in ("seed", "pid")),
        ("samples", Samples),
        *((name, kind, REPORTED[name].empty) for name, kind in METRICS.items()),
    ],
    kw_only=True,
)
"""What a line has from REST on."""


def encode(record: Record) -> bytes:
    """Return the line of a record without its end; raises ValueError for a number that JSON can't hold."""
    case = {name: value for name, value in record.case.columns().items() if name not in ABSENT or value != ABSENT[name]}
    rest = {"detail": record.detail, **record.metrics, "seed": record.seed, "pid": record.pid}
    columns = {each.name: getattr(record.samples, each.name) for each in dataclasses.fields(Samples)}
    content = {
        "schema_version": SCHEMA_VERSION,
        **case,
        **dataclasses.asdict(Head.of(record)),
        "started_at": record.origin.started_at,
        **{name: value for name, value in rest.items() if value not in (None, (), "")},
        "samples": {name: values for name, values in columns.items() if values or name not in MAY_LACK},
    }
    return sealed(json.dumps(content, allow_nan=False, separators=(",", ":")).encode())


def sealed(content: bytes) -> bytes:
    """Return a JSON object with its checksum."""
    text = content.removesuffix(b"}")
    return b'%s%s%08x"}' % (text, SEAL, zlib.crc32(text))


def seal_of(line: bytes) -> bytes:
    """Return the eight digits of a line's checksum, none if it has none."""
    return line[-10:-2] if line[-SEAL_BYTES:-10] == SEAL else b""


def check(line: bytes) -> None:
    """Raise ValueError if a line is not what was written, WrongRequest if it has another schema and no checksum."""
    seal = seal_of(line)
    if not seal:
        check_schema(schema_of(line), oldest=OLDEST_SCHEMA)
        raise ValueError("it has no checksum")
    if b"%08x" % zlib.crc32(memoryview(line)[:-SEAL_BYTES]) != seal:
        raise ValueError("it was changed since it was written: its checksum is another one")


class Heads:
    """Reads the cases and heads of lines, and decodes what many lines share once."""

    def __init__(self) -> None:
        self._cases: dict[bytes, Case] = {}
        self._heads: dict[bytes, Head] = {}
        self._known: dict[Case, Case] = {}
        self._points: dict[tuple[Any, ...], Point] = {}

    def read(self, line: bytes) -> tuple[Case, Head]:
        """Return the case and the head of a line; equal cases, and equal points, are the same object.

        Raises WrongRequest for another schema, ValueError for anything else that is no line.
        """
        check(line)
        middle = line.find(HEAD)
        first, second = line[:middle], line[max(middle, 0) + 1 : line.find(REST, middle)]
        case, head = self._cases.get(first), self._heads.get(second)
        try:
            if case is None:
                case = self._cases[first] = self._case(first + b"}")
            if head is None:
                head = self._heads[second] = typed.decode(Head, b"{" + second + b"}")
        except ValueError:
            check_schema(schema_of(line), oldest=OLDEST_SCHEMA)
            raise
        return case, head

    def _case(self, text: bytes) -> Case:
        *columns, implementation, version = msgspec.structs.astuple(typed.decode(First, text))
        check_schema(version, oldest=OLDEST_SCHEMA)
        values = tuple(columns)
        if values not in self._points:
            self._points[values] = Point(**dict(zip(POINT_COLUMNS, values, strict=True)))
        case = Case(self._points[values], implementation)
        return self._known.setdefault(case, case)


def decode(line: bytes, case: Case, head: Head) -> Record:
    """Return the record of a line whose case and head are known; raises what `Heads.read` raises."""
    check(line)
    rest = msgspec.structs.asdict(typed.decode(Rest, b"{" + line[max(line.find(REST), 0) + 1 :]))
    if head.status == "ok" and not rest["samples"].rounds:
        raise ValueError("timings_s must hold at least one sample if the status is ok")
    return Record(
        case,
        head.process,
        head.status,
        Origin(head.env_id, head.device_name, head.torch_version, head.commit, rest["started_at"]),
        rest["detail"],
        rest["samples"],
        {name: rest[name] for name in METRICS},
        head.replicate_size,
        head.own_cause,
        rest["seed"],
        rest["pid"],
    )
