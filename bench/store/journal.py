"""The journal: the truth of a run, one line per case and process, the lines of a visit written at once."""

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.plan.case import Point
from bench.plan.errors import WrongRequest
from bench.store.record import Record

JOURNAL = "journal.jsonl"
SET_ASIDE = "journal.cut"
"""Lines of visits that were cut by a kill, kept for the curious."""


def append(run: Path, records: Sequence[Record]) -> None:
    """Append the records of one visit to the run's journal with one write that has reached the disk on return."""
    lines = "".join(json.dumps(record.to_json(), allow_nan=False) + "\n" for record in records)
    with (run / JOURNAL).open("ab", buffering=len(lines) * 4 + 1) as file:  # larger than what is written: one write
        file.write(lines.encode())
        file.flush()
        os.fsync(file.fileno())


def read(run: Path) -> list[Record]:
    """Return the records of a run, in the order in which they were measured.

    A visit that was cut by a kill is passed over, because its rounds are not whole.
    Raises WrongRequest when a line is no record.
    """
    return [record for record, _ in _whole_visits(run)[0]]


def repair(run: Path) -> int:
    """Move what a kill cut short out of the journal, so that appending goes on; return the number of lines moved."""
    whole, cut = _whole_visits(run)
    if cut:
        with (run / SET_ASIDE).open("ab") as aside:
            aside.write(b"".join(line + b"\n" for line in cut))
        temporary = run / f".{JOURNAL}.{os.getpid()}"
        temporary.write_bytes(b"".join(line + b"\n" for _, line in whole))
        temporary.replace(run / JOURNAL)
    return len(cut)


def _whole_visits(run: Path) -> tuple[list[tuple[Record, bytes]], list[bytes]]:
    """Return the records of whole visits with their lines, and the lines of cut ones."""
    path = run / JOURNAL
    if not path.exists():
        return [], []
    *lines, end = path.read_bytes().split(b"\n")
    entries = [(_record(path, number, line), line) for number, line in enumerate(lines, start=1) if line.strip()]
    sizes = Counter(_visit(record) for record, _ in entries)
    whole = [entry for entry in entries if sizes[_visit(entry[0])] >= entry[0].visit_size]
    cut = [line for record, line in entries if sizes[_visit(record)] < record.visit_size]
    return whole, [*cut, *([end] if end else [])]


def _visit(record: Record) -> tuple[Point, int]:
    return record.case.point, record.process


def _record(path: Path, number: int, line: bytes) -> Record:
    try:
        record = Record.from_json(json.loads(line))
        if not isinstance(record.visit_size, int):
            raise TypeError(f"visit_size must be a whole number, got {record.visit_size!r}")
        hash(record.case)  # a list in a column of the case is no value of one
        return record
    except WrongRequest as error:
        raise WrongRequest(f"{path}: line {number}: {error}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise WrongRequest(f"{path}: line {number} is no record of attention-bench ({error!r})") from None
