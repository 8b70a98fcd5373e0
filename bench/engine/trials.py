"""The choice of implementations that the next process measures together, after a process died with several.

A dead process tells which implementation was running, but not whether that one is the cause: another one's timer may
have fired, or the process may have been killed from outside. So one death decides nothing. After every death there is
another attempt in a fresh process, which separates the suspects, until each implementation has a result or has died
twice.

A visit of k implementations of which m die takes 2 m + 1 processes as a rule, and never more than MOST * k.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bench.engine.worker import Died

MOST = 5
"""The most processes that a visit takes for each of its implementations."""


@dataclass(frozen=True)
class End:
    """The end of an implementation that died twice; `own_cause` is true if it is known to be the cause."""

    implementation: str
    status: str
    detail: str
    own_cause: bool


class Trials:
    """The processes of one visit: `group` is what the next one measures; then `came_through` or `died` is called.

    `missing` are the implementations to measure; `baseline` is measured with them even if it isn't missing; it is None
    if the baseline failed.
    """

    def __init__(self, missing: Sequence[str], baseline: str | None) -> None:
        self._baseline = baseline
        self._cleared = {baseline} - {*missing, None}
        self._ended: set[str] = set()
        self._queue = [[*missing]]
        self._deaths: Counter[str] = Counter()
        self._tries: Counter[frozenset[str]] = Counter()
        self._nameless: Counter[frozenset[str]] = Counter()

    @property
    def group(self) -> list[str]:
        """The implementations that the next process measures; empty if the visit is finished."""
        while self._queue and not self._suspects:
            del self._queue[0]
        if not self._queue:
            return []
        beside = {self._baseline} - {*self._suspects, *self._ended, None}
        return [*filter(None, beside), *self._suspects]

    def came_through(self) -> None:
        """Record that the group was measured: none of it is a suspect any more."""
        self._cleared.update(self._queue.pop(0))

    def died(self, death: Died) -> list[End]:
        """Return the implementations that end with this death; the others are tried again."""
        suspects, named = self._suspects, death.implementation
        key = frozenset(suspects)
        is_nameless = named not in self.group
        self._tries[key] += 1
        self._nameless[key] += is_nameless
        self._deaths.update(suspects)
        if len(suspects) == 1:
            if self._deaths[suspects[0]] > 1:
                return self._end(suspects, death, own_cause=is_own(death))
        elif is_nameless:
            if self._nameless[key] > 1:
                return self._end(suspects, death, own_cause=False)
        elif self._tries[key] > 1 or not (death.is_outside or named in self._cleared):
            self._set_apart(named, suspects)
        return []

    @property
    def _suspects(self) -> list[str]:
        return [name for name in self._queue[0] if name not in self._cleared | self._ended]

    def _set_apart(self, named: str, suspects: list[str]) -> None:
        others = [name for name in suspects if name != named]
        if named not in suspects:  # the baseline, which has a result: one of the others is the cause
            self._queue[:1] = [[name] for name in suspects]
        elif named == self._baseline:  # first, because the others are measured with it
            self._queue.insert(0, [named])
        else:
            self._queue[:1] = [others]
            self._queue.append([named])

    def _end(self, suspects: list[str], death: Died, *, own_cause: bool) -> list[End]:
        self._ended.update(suspects)
        return [
            End(name, death.status, detail(name, death, own_cause=own_cause), own_cause=own_cause) for name in suspects
        ]


def is_own(death: Died) -> bool:
    """Return whether a death with only one suspect shows that it is the cause."""
    return bool(death.implementation) and not death.is_outside


def detail(implementation: str, death: Died, *, own_cause: bool) -> str:
    """Return the detail of an implementation that ends with its second death."""
    remarks = ["second death, in a fresh process"]
    if death.implementation not in ("", implementation):
        remarks.append(f"while {death.implementation} was running")
    if not own_cause:
        remarks.append("not known to be its own fault, so a resumed run tries it again")
    return f"{death.detail} ({', '.join(remarks)})"
