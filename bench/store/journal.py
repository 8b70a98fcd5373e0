"""The journal, the only state of a run: a line with its plan, and one per case and replicate with what was measured.

The lines of a replicate at one point are written at once; `process` is its number. A line that was added to the plan
takes its place. `bench.store.record` has the form of a record, `bench.store.plan` that of a plan.
"""

import gc
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from bench.plan.case import Case
from bench.plan.errors import CannotWrite, WrongRequest, refusing
from bench.store.record import Cases, Record, check, decode_line, encode_line, record_of

JOURNAL = "journal.jsonl"

PLAN_LINE = re.compile(rb'\{"schema_version":\d+,"plan":')
"""The beginning of a line with a plan."""

MOST_NAMED = 3
"""The most lines of one fault that are named; the rest is counted."""

BUFFER_BYTES = 1 << 20
"""The bytes that a scan reads at once; the usual buffer holds hardly more than one line."""

REPEATED = "of a case and process that already stand above, so it doesn't count"


Place = tuple[int, int]
"""The place of a line in the file, and its length without its end."""


@dataclass(frozen=True, eq=False, slots=True)
class JournalEntry:
    """A line of the file: its case, its facts and its place; `Contents.load` reads its samples."""

    case: Case
    line: Any
    place: Place

    @property
    def process(self) -> int:
        """The number of the process."""
        return int(self.line.process)

    @property
    def status(self) -> str:
        """How the case ended."""
        return str(self.line.status)


@dataclass
class Contents:
    """The lines of a journal that count, the place of its plan, and the numbers of all others by their fault."""

    path: Path
    entries: list[JournalEntry] = field(default_factory=list)
    plan: Place | None = None
    faults: dict[str, list[int]] = field(default_factory=dict)

    @property
    def records(self) -> list[Record]:
        """The records that count, in the order in which they were measured."""
        return [*map(self.load, self.entries)]

    def load(self, entry: JournalEntry) -> Record:
        """Return the record of a line; raises WrongRequest if it can't be read any more."""
        try:
            return record_of(entry.case, entry.line, self.content(entry.place))
        except ValueError as error:
            raise WrongRequest(f"{self.path}: the line at byte {entry.place[0]} can't be read: {error}") from None

    def content(self, place: Place) -> bytes:
        """Return the bytes of a line, without its end."""
        with refusing(f"{self.path} can't be read"):
            self.file.seek(place[0])
            return self.file.read(place[1])

    @cached_property
    def file(self) -> BinaryIO:
        """The file, which stays open, so that a folder that is moved meanwhile can be read."""
        return self.path.open("rb")

    def close(self) -> None:
        """Close the file; what is read later opens it again."""
        if "file" in vars(self):
            self.file.close()
            del self.file

    def notices(self) -> list[str]:
        """Return one line for each fault, with the numbers of its lines."""
        return [f"{self.path}: {_numbers(lines)} {fault}" for fault, lines in self.faults.items()]

    def append(self, records: Sequence[Record]) -> list[JournalEntry]:
        """Append the records of one replicate and return their lines; raises as `write` does."""
        lines = [encode_line(record) for record in records]
        entries = [
            JournalEntry(record.case, decode_line(line), place)
            for record, line, place in zip(records, lines, self.write(lines), strict=True)
        ]
        self.entries += entries
        return entries

    def write(self, lines: Sequence[bytes]) -> list[Place]:
        """Append lines to the file at once, and return their places when they have reached the disk.

        Raises CannotWrite if the disk doesn't take all of them; then the journal is as before.
        """
        with refusing(f"{self.path} can't be written", CannotWrite):
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                offset = _write(file, b"".join(line + b"\n" for line in lines))
            finally:
                os.close(file)
            _ = self.file  # from now on it is open for reading
        ends = [*itertools.accumulate((len(line) + 1 for line in lines), initial=offset)]
        return [(begin, len(line)) for begin, line in zip(ends, lines, strict=False)]


Ended = TypeVar("Ended", Record, JournalEntry)


def latest(records: Iterable[Ended]) -> list[Ended]:
    """Return the records that count: those that are ok, and failures that are the last record of their case."""
    records = list(records)
    if all(record.status == "ok" for record in records):
        return records
    last = {record.case: index for index, record in enumerate(records)}
    return [record for index, record in enumerate(records) if record.status == "ok" or index == last[record.case]]


def append(run: Path, records: Sequence[Record]) -> None:
    """Append the records of one replicate to the run's journal, as `Contents.append` does."""
    Contents(run / JOURNAL).append(records)


def _write(file: int, lines: bytes) -> int:
    """Write lines at the end of a file, beginning on a new line, and return where they begin.

    If that fails, the file is cut to its old length.
    """
    end = begin = os.fstat(file).st_size
    try:
        if end and os.pread(file, 1, end - 1) != b"\n":
            lines, begin = b"\n" + lines, end + 1
        while lines:
            lines = lines[os.write(file, lines) :]
        os.fsync(file)
    except BaseException:
        os.ftruncate(file, end)
        os.fsync(file)
        raise
    return begin


def read(run: Path) -> list[Record]:
    """Return the records of a run that count, in the order in which they were measured; see `scan`."""
    return scan(run).records


def scan(run: Path) -> Contents:
    """Return the contents of a run's journal.

    A line that is no record, as one that a kill has torn, doesn't count; the others of its replicate do, because it was
    written after the rounds. The first of duplicates counts.
    Raises WrongRequest for a line of another schema, or a file that can't be read.
    """
    path = run / JOURNAL
    contents = Contents(path)
    with refusing(f"{path} can't be read"), suppress(FileNotFoundError, NotADirectoryError):
        with path.open("rb", buffering=BUFFER_BYTES) as file, _uncollected():
            _sort(file, contents)
    return contents


@contextmanager
def _uncollected() -> Iterator[None]:
    """Make no search for cycles meanwhile: many objects are made, none of which is in one."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _sort(file: BinaryIO, contents: Contents) -> None:
    """Sort the lines of a file into those that count and those that don't."""
    cases, keys, end = Cases(), set[tuple[int, int]](), 0
    for number, line in enumerate(file, start=1):
        offset, end = end, end + len(line)
        line = line.removesuffix(b"\n")
        place = offset, len(line)
        if not line.strip():
            continue
        try:
            if PLAN_LINE.match(line):
                check(line)
                contents.plan = place
                continue
            decoded = decode_line(line)
        except WrongRequest as error:
            raise WrongRequest(f"{contents.path}: line {number}: {error}") from None
        except ValueError as error:
            contents.faults.setdefault(f"no record of attention-bench ({error})", []).append(number)
            continue
        case = cases.of(decoded)
        key = (id(case), decoded.process)  # equal cases are the same object
        if key in keys:
            contents.faults.setdefault(REPEATED, []).append(number)
        else:
            keys.add(key)
            contents.entries.append(JournalEntry(case, decoded, place))


def _numbers(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"line {numbers[0]} is"
    more = f" and {len(numbers) - MOST_NAMED} more" if len(numbers) > MOST_NAMED else ""
    return f"lines {', '.join(map(str, numbers[:MOST_NAMED]))}{more} are"
