"""A case in one replicate: its process, and what is known of it."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.engine.claims import Claims
from bench.engine.pool import Pool
from bench.engine.worker import Died, Worker
from bench.plan.case import Case
from bench.sampling.timed_inputs import JudgedCalls
from bench.store.record import Samples


class Ended(Exception):  # noqa: N818 - an outcome that becomes a row
    """A case ended without a time."""

    def __init__(self, status: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


@dataclass
class Member:
    """A case in one replicate: its process, and its outcome.

    `implementation` is what its process runs, which the case names unless it is the control.
    `env_id` names the environment of its pool. A `thorough` measurement also checks a normal input and inspects a call.
    `death` says how its process died, if it did; `is_left` is true if it was not measured for want of memory.
    """

    case: Case
    pool: Pool
    env_id: str
    thorough: bool
    implementation: str = ""
    status: str = "ok"
    detail: str = ""
    metrics: dict[str, Any] = field(default_factory=dict)
    samples: Samples = field(default_factory=Samples)
    death: Died | None = None
    is_left: bool = False
    cpu_s: float = 0.0
    """The processor's seconds that its process has used."""
    calls: int = 1
    """The number of calls in a timing."""
    call_s: float = 0.0
    """The seconds of a call in the warm-up."""
    remark: str = ""
    """What the implementation says about its precision, if that explains an incorrect output."""
    doubt: str = ""
    """What a user of it should know although it is right."""
    claims: Claims = field(default_factory=Claims)
    judged: JudgedCalls | None = None
    """What is judged of its timed calls."""
    pid: int | None = None
    worker: Worker | None = None
    folder: Path | None = None

    def __post_init__(self) -> None:
        self.implementation = self.implementation or self.case.implementation

    @property
    def is_ok(self) -> bool:
        """Whether nothing has ended the case."""
        return self.status == "ok" and not self.is_left

    def end(self, status: str, detail: str, death: Died | None = None) -> None:
        """End the case, perhaps by the death of a process."""
        self.status, self.detail, self.death = status, detail, death

    def close(self) -> None:
        """End its process, and remove its files."""
        if self.worker is not None:
            self.worker.close()
            self.worker = None
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None
