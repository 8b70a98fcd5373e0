"""The reasons for which `pytest bench` fails at a point, and so ends with status 1."""

from collections.abc import Sequence

from bench.plan.names import is_own
from bench.show.failures import Reason, reasons
from bench.show.rows import Row


def failing(rows: Sequence[Row], fail_on: Sequence[str] | None, *, lacks_device: bool) -> list[Reason]:
    """Return why a point fails, a reason for each status and detail; none if it doesn't fail.

    With `fail_on` the point fails if an implementation has one of these statuses. With None it fails if the device is
    missing, if a user's own implementation isn't ok, or if no implementation is ok and not all are unsupported.
    """
    bad = [row for row in rows if row["status"] != "ok"]
    if fail_on is not None:
        return reasons(row for row in bad if row["status"] in fail_on)
    nothing = len(bad) == len(rows) and any(row["status"] != "unsupported" for row in bad)
    return reasons(row for row in bad if nothing or lacks_device or is_own(row["implementation"]))
