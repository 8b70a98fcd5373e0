"""The journal: the truth of a run, one line per case and process."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from bench.plan.errors import WrongRequest
from bench.store.record import Record

JOURNAL = "journal.jsonl"
SET_ASIDE = "journal.cut"
"""Lines that were cut by a kill, kept for the curious."""


def append(run: Path, records: Iterable[Record]) -> None:
    """Append the records to the run's journal, each with one write that has reached the disk on return."""
    descriptor = os.open(run / JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        for record in records:
            line = json.dumps(record.to_json(), allow_nan=False) + "\n"
            os.write(descriptor, line.encode())
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(run: Path) -> list[Record]:
    """Return the records of a run, in the order in which they were measured.

    A last line without its end was cut by a kill and is passed over.
    Raises WrongRequest when another line is no record.
    """
    path = run / JOURNAL
    if not path.exists():
        return []
    *lines, _cut = path.read_bytes().split(b"\n")
    return [_record(path, number, line) for number, line in enumerate(lines, start=1) if line.strip()]


def set_aside_cut_line(run: Path) -> bool:
    """Move a last line that was cut by a kill to its own file and return whether there was one."""
    path = run / JOURNAL
    if not path.exists():
        return False
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end == len(content):
        return False
    with (run / SET_ASIDE).open("ab") as aside:
        aside.write(content[end:] + b"\n")
    os.truncate(path, end)
    return True


def _record(path: Path, number: int, line: bytes) -> Record:
    try:
        return Record.from_json(json.loads(line))
    except WrongRequest as error:
        raise WrongRequest(f"{path}: line {number}: {error}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise WrongRequest(f"{path}: line {number} is no record of attention-bench ({error!r})") from None
