"""The journal, the only state of a run: a line with its plan, and a record for each case and replicate.

The lines of a replicate at one point are written together; `process` is its number. A later plan replaces an earlier
one. `bench.store.record` has the form of a record, `bench.store.plan` the form of a plan.
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
"""The beginning of a plan's line."""

MOST_NAMED = 3
"""The most lines that are named for one fault; the others are counted."""

REPEATED = "ignored, because earlier lines have the same case and process"


@dataclass
class Contents:
    """The contents of a journal: valid records, the line of its plan, and the numbers of invalid lines by fault."""

    path: Path
    records: list[Record] = field(default_factory=list)
    plan: bytes = b""
    faults: dict[str, list[int]] = field(default_factory=dict)

    def notices(self) -> list[str]:
        """Return a notice for each fault, with its line numbers."""
        return [f"{self.path}: {_numbers(lines)} {fault}" for fault, lines in self.faults.items()]

    def append(self, records: Sequence[Record]) -> None:
        """Append the records of one replicate; raises CannotWrite like `write`."""
        self.write([encode_line(record) for record in records])
        self.records += records

    def write(self, lines: Sequence[bytes]) -> None:
        """Append lines to the file; they have reached the disk when this returns.

        Raises CannotWrite if they can't all be written, and leaves the journal as it was.
        """
        with refusing(f"{self.path} can't be written", CannotWrite):
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                _write(file, b"".join(line + b"\n" for line in lines))
            finally:
                os.close(file)


def latest(records: Iterable[Record]) -> list[Record]:
    """Return the records that are ok, and failures that are the last record of their case."""
    records = list(records)
    if all(record.status == "ok" for record in records):
        return records
    last = {record.case: index for index, record in enumerate(records)}
    return [record for index, record in enumerate(records) if record.status == "ok" or index == last[record.case]]


def _write(file: int, lines: bytes) -> None:
    """Append lines to a file, from a new line on; on failure cut the file to its old length."""
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
    """Return the valid records of a run in the order of their measurement; see `scan`."""
    return scan(run).records


def scan(run: Path) -> Contents:
    """Return the contents of a run's journal.

    A broken line, such as one cut off by a kill, is left out; the replicate's other lines count, because all are
    written after the rounds. Of duplicates the first counts.
    Raises WrongRequest for a line of another schema, or a file that can't be read.
    """
    contents = Contents(run / JOURNAL)
    with refusing(f"{contents.path} can't be read"), suppress(FileNotFoundError, NotADirectoryError):
        with contents.path.open("rb") as file:
            _sort(file, contents)
    return contents


def _sort(lines: Iterable[bytes], contents: Contents) -> None:
    """Sort lines into valid and invalid ones."""
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
