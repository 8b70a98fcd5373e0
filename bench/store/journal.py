"""The journal: the raw data of a run, one line per case and replicate; `process` is the replicate's number.

The lines of a replicate at one point are written at once. `bench.store.record` has the form of a line.
"""

import gc
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from bench.plan.case import Case
from bench.plan.errors import CannotWrite, WrongRequest, refusing
from bench.store import files
from bench.store.record import Cases, Record, decode_line, encode_line, record_of

JOURNAL = "journal.jsonl"
SET_ASIDE = "journal.cut"
"""The file for lines that don't count: no records, and duplicates."""

MOST_NAMED = 3
"""The most lines of one fault that are named; the rest is counted."""

BUFFER_BYTES = 1 << 20
"""The bytes that a scan reads at once; the usual buffer holds hardly more than one line."""

REPEATED = "of a case and process that already stand above, so it doesn't count"


Place = tuple[int, int]
"""The place of a line in the file, and its length without its end."""


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """A line of the file: its case and facts, its number, counted from 1, and its place without the end of line.

    Its samples are read when they are needed: see `load`.
    """

    case: Case
    line: Any
    number: int
    offset: int
    length: int

    @property
    def process(self) -> int:
        """The number of the process."""
        return int(self.line.process)

    @property
    def status(self) -> str:
        """How the case ended."""
        return str(self.line.status)

    @property
    def place(self) -> Place:
        """The place of the line, and its length."""
        return self.offset, self.length


@dataclass
class Contents:
    """The lines of a journal that count, those set aside, and the numbers of these by fault.

    `end` is the length of the file.
    """

    path: Path
    entries: list[Entry] = field(default_factory=list)
    aside: list[Place] = field(default_factory=list)
    faults: dict[str, list[int]] = field(default_factory=dict)
    end: int = 0

    @property
    def records(self) -> list[Record]:
        """The records that count, in the order in which they were measured."""
        return list(self.loaded(self.entries))

    def loaded(self, entries: Iterable[Entry]) -> Iterator[Record]:
        """Yield the records of some lines."""
        if entries := [*entries]:
            with self._opened() as file:
                yield from (load(file, entry) for entry in entries)

    def copied(self, entries: Iterable[Entry]) -> Iterator[bytes]:
        """Yield some lines with their ends, as they stand in the file."""
        if entries := [*entries]:
            with self._opened() as file:
                yield from _copied(file, [entry.place for entry in entries])

    def _opened(self) -> BinaryIO:
        with refusing(f"{self.path} can't be read"):
            return self.path.open("rb")

    def notices(self) -> list[str]:
        """Return one line for each fault, with the numbers of its lines."""
        return [f"{self.path}: {_numbers(numbers)} {fault}" for fault, numbers in self.faults.items()]

    def append(self, records: Sequence[Record]) -> list[Entry]:
        """Append the records of one replicate to the file; on return they have reached the disk.

        Returns their lines, whose numbers are not known: they are 0.
        Raises CannotWrite if the disk doesn't take all of them; then the journal is as before.
        """
        lines = [encode_line(record) + b"\n" for record in records]
        with refusing(f"{self.path} can't be written", CannotWrite):
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                offset = _write(file, b"".join(lines))
            finally:
                os.close(file)
        entries = []
        for record, each in zip(records, lines, strict=True):
            entries.append(Entry(record.case, decode_line(each[:-1]), 0, offset, len(each) - 1))
            self.end = offset = offset + len(each)
        self.entries += entries
        return entries

    def put_aside(self, number: int, place: Place, fault: str) -> None:
        """Set a line aside for a fault."""
        self.aside.append(place)
        self.faults.setdefault(fault, []).append(number)


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


def load(file: BinaryIO, entry: Entry) -> Record:
    """Return the record of a line of a journal's file; raises WrongRequest if it can't be read any more."""
    with refusing("the journal can't be read"):
        file.seek(entry.offset)
        line = file.read(entry.length)
    try:
        return record_of(entry.case, entry.line, line)
    except ValueError as error:
        raise WrongRequest(f"{file.name}: the line at byte {entry.offset} can't be read: {error}") from None


def scan(run: Path) -> Contents:
    """Return the contents of a run's journal.

    A line that is no record doesn't count; the others of its replicate do, because it was written after the rounds. The
    first of duplicates counts.
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
        if not line.strip():
            continue
        try:
            decoded = decode_line(line)
        except WrongRequest as error:
            raise WrongRequest(f"{contents.path}: line {number}: {error}") from None
        except ValueError as error:
            contents.put_aside(number, (offset, len(line)), f"no record of attention-bench ({error})")
            continue
        case = cases.of(decoded)
        key = (id(case), decoded.process)  # equal cases are the same object
        if key in keys:
            contents.put_aside(number, (offset, len(line)), REPEATED)
        else:
            keys.add(key)
            contents.entries.append(Entry(case, decoded, number, offset, len(line)))
    contents.end = end


def repair(run: Path) -> tuple[Contents, list[str]]:
    """Move the lines that don't count out of the journal; return the contents, and a notice for each fault.

    Raises WrongRequest as `scan` does, OSError if the folder can't be written.
    """
    contents = scan(run)
    if not contents.aside:
        return contents, []
    with contents.path.open("rb") as journal:
        with (run / SET_ASIDE).open("ab") as aside:
            aside.writelines(_copied(journal, contents.aside))
            aside.flush()
            os.fsync(aside.fileno())
        files.replace(contents.path, _copied(journal, [entry.place for entry in contents.entries]))
    notices = [f"{notice}; set aside in {SET_ASIDE}" for notice in contents.notices()]
    return scan(run), notices


def _copied(file: BinaryIO, places: Iterable[Place]) -> Iterator[bytes]:
    """Yield the lines at these places, with their ends."""
    for offset, length in places:
        file.seek(offset)
        yield file.read(length) + b"\n"


def _numbers(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"line {numbers[0]} is"
    more = f" and {len(numbers) - MOST_NAMED} more" if len(numbers) > MOST_NAMED else ""
    return f"lines {', '.join(map(str, numbers[:MOST_NAMED]))}{more} are"
