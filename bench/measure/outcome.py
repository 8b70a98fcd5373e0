"""The outcome of a case in one process."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Outcome:
    """How a case ended, and why; `metrics` has metrics and other fields of a record by name."""

    status: str = "ok"
    detail: str = ""
    metrics: dict[str, Any] = field(default_factory=dict)

    def end(self, status: str, detail: str) -> None:
        """End the case with a status; nothing more is measured."""
        self.status, self.detail = status, detail
