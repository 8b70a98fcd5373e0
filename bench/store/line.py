"""A line of the journal: a record as JSON, with its samples at the end, and then a checksum.

The parts of a line that many lines share come first: the case, then the head. A reader decodes each of them once, and
knows by the checksum that the rest is as it was written. So it reads only the samples that are needed.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.plan.case import CASE_COLUMNS, COLUMNS, Case, Point
from bench.plan.columns import REQUIRED
from bench.store.record import Record, check_schema

HEAD = ("process", "replicate_size", "own_cause", "status", "env_id", "device_name", "torch_version", "commit")
"""The keys that follow those of the case, in this order: what a run decides by when it goes on."""

AFTER_CASE, AFTER_HEAD = b',"process":', b',"started_at":'
"""The beginnings of the head and of the rest; neither can stand within a text, in which quotes have a backslash."""

IMPLEMENTATION = b',"implementation":"'
"""The beginning of the one key in which the cases of a point differ."""

SEAL = b',"crc32":"'
"""The beginning of the last key, whose value is the CRC-32 of everything before it, in eight digits."""

SEAL_BYTES = len(SEAL) + 10


LACKING = {name: column.absent for name, column in COLUMNS.items() if column.absent is not REQUIRED}
"""The values of columns that a line may lack."""


@dataclass(frozen=True, slots=True)
class Head:
    """The facts of a record besides its case that a run decides by when it goes on."""

    process: int
    replicate_size: int
    own_cause: bool
    status: str
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


def encode(record: Record) -> bytes:
    """Return the line of a record without its end; raises ValueError for a number that JSON can't hold."""
    return sealed(record.columns(), record.samples.to_json())


def sealed(values: dict[str, Any], samples: Mapping[str, Any]) -> bytes:
    """Return the line of a record's columns and its samples."""
    values = dict(values)
    first = {name: values.pop(name) for name in ("schema_version", *CASE_COLUMNS, *HEAD, "started_at")}
    rest = {name: value for name, value in values.items() if value not in (None, (), "")}
    kept = {name: value for name, value in first.items() if not _is_absent(name, value)}
    content = {**kept, **rest, "samples": samples}
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))[:-1].encode()
    return b'%s%s%08x"}' % (text, SEAL, zlib.crc32(text))


def decode(line: bytes) -> Record:
    """Return the record of a line, a sealed one or one that another suite wrote.

    Raises WrongRequest for a newer schema, and what `json.loads` and `Record.from_json` raise for another line.
    """
    check(line)
    return Record.from_json(json.loads(line))


def seal_of(line: bytes) -> bytes:
    """Return the eight digits of a line's checksum, none if it has none."""
    return line[-10:-2] if line[-SEAL_BYTES:-10] == SEAL else b""


def check(line: bytes) -> bool:
    """Return whether a line has a checksum; raises ValueError if the line is not what was written."""
    seal = seal_of(line)
    if seal and b"%08x" % zlib.crc32(memoryview(line)[:-SEAL_BYTES]) != seal:
        raise ValueError("it was changed since it was written: its checksum is another one")
    return bool(seal)


class Heads:
    """Reads the cases and heads of lines, and decodes what many lines share once."""

    def __init__(self) -> None:
        self._cases: dict[bytes, Case] = {}
        self._heads: dict[bytes, Head] = {}
        self._decoded: dict[bytes, Point] = {}
        self._known: dict[Case, Case] = {}
        self._points: dict[Point, Point] = {}

    def read(self, line: bytes) -> tuple[Case, Head]:
        """Return the case and the head of a line; equal cases, and equal points, are the same object.

        Raises what `decode` raises.
        """
        middle = line.find(AFTER_CASE) if check(line) else -1
        end = line.find(AFTER_HEAD, middle) if middle > 0 else -1
        if end < 0:
            record = decode(line)
            return self._same(record.case), Head.of(record)
        text, rest = line[:middle], line[middle:end]
        case, head = self._cases.get(text), self._heads.get(rest)
        if case is None:
            case = self._cases[text] = self._case(text)
        if head is None:
            head = self._heads[rest] = _head(json.loads(b"{" + rest[1:] + b"}"))
        return case, head

    def _case(self, text: bytes) -> Case:
        """Return the case of a sealed line, whose values were checked when it was written."""
        before, _, rest = text.partition(IMPLEMENTATION)
        name, _, after = rest.partition(b'"')
        if b"\\" in name:  # the quote may be part of the name
            values = json.loads(text + b"}")
            implementation = values.pop("implementation")
            return self._same(Case(_point(values), implementation))
        columns = before + after + b"}"
        point = self._decoded.get(columns)
        if point is None:
            point = self._decoded[columns] = self._same_point(_point(json.loads(columns)))
        return self._same(Case(point, name.decode()))

    def _same(self, case: Case) -> Case:
        known = self._known.get(case)
        if known is None:
            known = Case(self._same_point(case.point), case.implementation)
            self._known[known] = known
        return known

    def _same_point(self, point: Point) -> Point:
        return self._points.setdefault(point, point)


def _point(values: dict[str, Any]) -> Point:
    """Return the point of a sealed line, whose values were checked when it was written."""
    check_schema(values.pop("schema_version"))
    return Point(**{**LACKING, **values})


def _head(values: Mapping[str, Any]) -> Head:
    return Head(**{name: values[name] for name in HEAD})


def _is_absent(name: str, value: Any) -> bool:
    """Return whether a column of a point has the value that stands for a column that a line lacks."""
    return name in COLUMNS and COLUMNS[name].absent is not REQUIRED and COLUMNS[name].absent == value
