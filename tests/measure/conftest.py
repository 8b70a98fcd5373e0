"""Real processes for tests: a pool of one server, and replicates that measure in it; and the names of devices."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bench.engine.member import Member
from bench.engine.pool import Pool
from bench.engine.replicate import Replicate
from bench.measure import devices
from bench.plan.case import Case, Point
from bench.sampling.rounds import Length
from tests.make.points import point

SHORT = Length(0.05)

Measured = Callable[..., dict[str, Member]]
"""`measured(*implementations, at=point, **columns)` returns the members of a replicate; the first is the baseline."""


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    """Return a pool whose server has imported torch, and has not used the compiler."""
    opened = Pool(1, (), with_gradients=True)
    yield opened
    opened.close()


@pytest.fixture
def measured(pool: Pool) -> Measured:
    """Return a function that measures implementations of a tiny point in a replicate."""

    def measure(*names: str, at: Point | None = None, **columns: Any) -> dict[str, Member]:
        where = at or point(**columns)
        members = {name: Member(Case(where, name), pool, thorough=True) for name in names}
        Replicate([*members.values()], members[names[0]], SHORT, seed=7, number=0).measure(60.0)
        return members

    return measure


@pytest.fixture(params=["cpu", "cuda"])
def on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a device; a GPU's tensors are the CPU's, and it draws them as a GPU does."""
    monkeypatch.setattr(devices.Gpu, "place", "cpu")
    return str(request.param)
