"""What makes `pytest bench` fail at a point, and so end with status 1."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.plan.names import is_own

Row = Mapping[str, Any]
"""A row of the results by column; a text that is missing is None or empty."""


def reasons(rows: Sequence[Row], fail_on: Sequence[str] | None, *, lacks_device: bool) -> list[str]:
    """Return why a point fails, a text for each status and reason; nothing if it doesn't.

    With `fail_on` the statuses in it fail the point, whoever has them. With None the point fails if its device isn't
    there, if a user's own implementation isn't ok, or if none is, except that this layer has no implementation at all.
    """
    bad = [row for row in rows if row["status"] != "ok"]
    if fail_on is not None:
        return _told(row for row in bad if row["status"] in fail_on)
    if lacks_device:
        return _told(bad)
    if len(bad) == len(rows) and any(row["status"] != "unsupported" for row in bad):
        return ["no implementation could be measured", *_told(bad)]
    return _told(row for row in bad if is_own(row["implementation"]))


def _told(rows: Iterable[Row]) -> list[str]:
    """Return a text for each status and reason, with the implementations that share it."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        found.setdefault((row["status"], row["detail"] or ""), []).append(row["implementation"])
    return [
        f"{', '.join(names)} {status}" + (f": {detail}" if detail else "") for (status, detail), names in found.items()
    ]
