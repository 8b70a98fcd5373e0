"""The journal: the raw data of a run, one line per case and process.

The lines of one process at one point, a replicate, are written at once.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.plan.case import Case, Point
from bench.plan.errors import CannotWrite, WrongRequest
from bench.store import atomic
from bench.store.record import Record

JOURNAL = "journal.jsonl"
SET_ASIDE = "journal.cut"
"""The file for lines that don't count: no records, incomplete replicates, and duplicates."""

MOST_NAMED = 3
"""The most lines of one fault that are named; the rest is counted."""

INCOMPLETE = "of a replicate that lacks other lines, so it doesn't count"
REPEATED = "of a case and process that already stand above, so it doesn't count"


@dataclass(frozen=True)
class Line:
    """A line of the file: its number, counted from 1, its bytes without the end, and its record."""

    number: int
    content: bytes
    record: Record

    @property
    def replicate(self) -> tuple[Point, int, int]:
        """The point, the number of the process and the number of lines, which the lines of a replicate share."""
        return self.record.case.point, self.record.process, self.record.replicate_size


@dataclass
class Contents:
    """The lines of a journal that count, those set aside, and the numbers of these by fault."""

    whole: list[Line] = field(default_factory=list)
    aside: list[tuple[int, bytes]] = field(default_factory=list)
    faults: dict[str, list[int]] = field(default_factory=dict)

    @property
    def records(self) -> list[Record]:
        """The records that count, in the order in which they were measured."""
        return [line.record for line in self.whole]

    def notices(self, path: Path) -> list[str]:
        """Return one line for each fault, with the numbers of its lines."""
        return [f"{path}: {_numbers(numbers)} {fault}" for fault, numbers in self.faults.items()]

    def put_aside(self, number: int, content: bytes, fault: str) -> None:
        """Set a line aside for a fault."""
        self.aside.append((number, content))
        self.faults.setdefault(fault, []).append(number)


def append(run: Path, records: Sequence[Record]) -> None:
    """Append the records of one replicate to the run's journal; on return they have reached the disk.

    Raises CannotWrite if the disk doesn't take all of them; then the journal is as before.
    """
    lines = "".join(json.dumps(record.to_json(), allow_nan=False) + "\n" for record in records).encode()
    path = run / JOURNAL
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _write(file, lines)
        finally:
            os.close(file)
    except OSError as error:
        raise CannotWrite(f"{path} can't be written: {error.strerror}") from None


def _write(file: int, lines: bytes) -> None:
    """Write lines at the end of a file, beginning on a new line; if that fails, cut the file to its old length."""
    end = os.fstat(file).st_size
    try:
        if end and os.pread(file, 1, end - 1) != b"\n":
            lines = b"\n" + lines
        while lines:
            lines = lines[os.write(file, lines) :]
        os.fsync(file)
    except BaseException:
        os.ftruncate(file, end)
        os.fsync(file)
        raise


def read(run: Path) -> list[Record]:
    """Return the records of a run that count, in the order in which they were measured; see `scan`."""
    return scan(run).records


def scan(run: Path) -> Contents:
    """Return the contents of a run's journal.

    A line that is no record doesn't count, and no line of a replicate that lacks others, because its rounds are not
    whole. The first of duplicates counts.
    Raises WrongRequest for a line of a newer suite, or a file that can't be read.
    """
    path, contents = run / JOURNAL, Contents()
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return contents
    except OSError as error:
        raise WrongRequest(f"{path} can't be read: {error.strerror}") from None
    known: set[tuple[Case, int]] = set()
    for replicate in _replicates(_lines(path, content, contents)):
        for line in replicate:
            key = (line.record.case, line.record.process)
            if len(replicate) < line.record.replicate_size:
                contents.put_aside(line.number, line.content, INCOMPLETE)
            elif key in known:
                contents.put_aside(line.number, line.content, REPEATED)
            else:
                known.add(key)
                contents.whole.append(line)
    return contents


def repair(run: Path) -> list[str]:
    """Move the lines that don't count out of the journal; return a notice for each fault.

    Raises WrongRequest as `scan` does, OSError if the folder can't be written.
    """
    path, contents = run / JOURNAL, scan(run)
    if contents.aside:
        with (run / SET_ASIDE).open("ab") as aside:
            aside.write(b"".join(line + b"\n" for _, line in sorted(contents.aside)))
            aside.flush()
            os.fsync(aside.fileno())
        atomic.replace(path, b"".join(line.content + b"\n" for line in contents.whole))
    return [f"{notice}; set aside in {SET_ASIDE}" for notice in contents.notices(path)]


def _lines(path: Path, content: bytes, contents: Contents) -> Iterator[Line]:
    """Yield the lines that are records; set the others and exact duplicates aside."""
    known: set[bytes] = set()
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        if line in known:
            contents.put_aside(number, line, REPEATED)
            continue
        try:
            yield Line(number, line, Record.from_json(json.loads(line)))
            known.add(line)
        except WrongRequest as error:
            raise WrongRequest(f"{path}: line {number}: {error}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            contents.put_aside(number, line, f"no record of attention-bench ({_reason(error)})")


def _replicates(lines: Iterator[Line]) -> Iterator[list[Line]]:
    """Yield the lines of each replicate: those of a point and process that follow each other.

    A replicate that was cut may be followed by one with the same number, whose implementations begin anew.
    """
    replicate: list[Line] = []
    for line in lines:
        names = {other.record.case.implementation for other in replicate}
        if replicate and (
            line.replicate != replicate[0].replicate
            or line.record.case.implementation in names
            or len(replicate) >= line.record.replicate_size
        ):
            yield replicate
            replicate = []
        replicate.append(line)
    if replicate:
        yield replicate


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError | RecursionError):
        return "it is not JSON"
    if isinstance(error, KeyError):
        return f"{error.args[0]} is missing"
    return str(error) if type(error) is ValueError else "its values have other types"


def _numbers(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"line {numbers[0]} is"
    more = f" and {len(numbers) - MOST_NAMED} more" if len(numbers) > MOST_NAMED else ""
    return f"lines {', '.join(map(str, numbers[:MOST_NAMED]))}{more} are"
