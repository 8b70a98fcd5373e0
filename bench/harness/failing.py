"""The reasons for which `pytest bench` fails at a point, and so ends with status 1."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.plan.names import is_own

Row = Mapping[str, Any]
"""A row of the results by column; a text that is missing is None or empty."""


@dataclass(frozen=True)
class Reason:
    """Implementations that share a status and a detail."""

    names: tuple[str, ...]
    status: str
    detail: str

    def __str__(self) -> str:
        """Return the whole reason: `eager, sdpa oom: not enough memory`."""
        return f"{self.brief}: {self.detail}" if self.detail else self.brief

    @property
    def brief(self) -> str:
        """The implementations and the status: `eager, sdpa oom`."""
        return f"{', '.join(self.names)} {self.status}"


def reasons(rows: Sequence[Row], fail_on: Sequence[str] | None, *, lacks_device: bool) -> list[Reason]:
    """Return why a point fails, a reason for each status and detail; none if it doesn't fail.

    With `fail_on` the point fails if an implementation has one of these statuses. With None it fails if the device is
    missing, if a user's own implementation isn't ok, or if no implementation is ok and not all are unsupported.
    """
    bad = [row for row in rows if row["status"] != "ok"]
    if fail_on is not None:
        return _gathered(row for row in bad if row["status"] in fail_on)
    nothing = len(bad) == len(rows) and any(row["status"] != "unsupported" for row in bad)
    return _gathered(row for row in bad if nothing or lacks_device or is_own(row["implementation"]))


def _gathered(rows: Iterable[Row]) -> list[Reason]:
    names_by_reason: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        names_by_reason.setdefault((row["status"], row["detail"] or ""), []).append(row["implementation"])
    return [Reason(tuple(names), status, detail) for (status, detail), names in names_by_reason.items()]
