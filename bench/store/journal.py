"""The journal, the only state of a run: a line with its plan, and one per case and replicate with what was measured.

The lines of a replicate at one point are written at once; `process` is its number. A line that was added to the plan
takes its place. `bench.store.record` has the form of a record, `bench.store.plan` that of a plan.
"""

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.plan.case import Case
from bench.plan.errors import CannotWrite, WrongRequest, refusing
from bench.store.record import Record, check_schema, decode_line, encode_line

JOURNAL = "journal.jsonl"

PLAN_LINE = re.compile(rb'\{"schema_version":\d+,"plan":')
"""The beginning of a line with a plan."""

MOST_NAMED = 3
"""The most lines of one fault that are named; the rest is counted."""

REPEATED = "ignored, because earlier lines have the same case and process"


@dataclass
class Contents:
    """What a journal holds: the records that count, the line of its plan, and the numbers of all others by fault."""

    path: Path
    records: list[Record] = field(default_factory=list)
    plan: bytes = b""
    faults: dict[str, list[int]] = field(default_factory=dict)

    def notices(self) -> list[str]:
        """Return one line for each fault, with the numbers of its lines."""
        return [f"{self.path}: {_numbers(lines)} {fault}" for fault, lines in self.faults.items()]

    def append(self, records: Sequence[Record]) -> None:
        """Append the records of one replicate; raises as `write` does."""
        self.write([encode_line(record) for record in records])
        self.records += records

    def write(self, lines: Sequence[bytes]) -> None:
        """Append lines to the file at once; they have reached the disk when this returns.

        Raises CannotWrite if the disk doesn't take all of them; then the journal is as before.
        """
        with refusing(f"{self.path} can't be written", CannotWrite):
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                _write(file, b"".join(line + b"\n" for line in lines))
            finally:
                os.close(file)


def latest(records: Iterable[Record]) -> list[Record]:
    """Return the records that count: those that are ok, and failures that are the last record of their case."""
    records = list(records)
    if all(record.status == "ok" for record in records):
        return records
    last = {record.case: index for index, record in enumerate(records)}
    return [record for index, record in enumerate(records) if record.status == "ok" or index == last[record.case]]


def _write(file: int, lines: bytes) -> None:
    """Write lines at the end of a file, beginning on a new line; if that fails, it is cut to its old length."""
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

    A line that is no record, as one that a kill has torn, doesn't count; the others of its replicate do, because it was
    written after the rounds. The first of duplicates counts.
    Raises WrongRequest for a line of another schema, or a file that can't be read.
    """
    contents = Contents(run / JOURNAL)
    with refusing(f"{contents.path} can't be read"), suppress(FileNotFoundError, NotADirectoryError):
        with contents.path.open("rb") as file:
            _sort(file, contents)
    return contents


def _sort(lines: Iterable[bytes], contents: Contents) -> None:
    """Sort lines into those that count and those that don't."""
    known = set[tuple[Case, int]]()
    for number, line in enumerate(lines, start=1):
        line = line.removesuffix(b"\n")
        if not line.strip():
            continue
        try:
            if PLAN_LINE.match(line):
                check_schema(line)
                contents.plan = line
                continue
            record = decode_line(line)
        except WrongRequest as error:
            raise WrongRequest(f"{contents.path}: line {number}: {error}") from None
        except ValueError as error:
            contents.faults.setdefault(f"ignored as invalid ({error})", []).append(number)
            continue
        if (record.case, record.process) in known:
            contents.faults.setdefault(REPEATED, []).append(number)
        else:
            known.add((record.case, record.process))
            contents.records.append(record)


def _numbers(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"line {numbers[0]} is"
    more = f" and {len(numbers) - MOST_NAMED} more" if len(numbers) > MOST_NAMED else ""
    return f"lines {', '.join(map(str, numbers[:MOST_NAMED]))}{more} are"
