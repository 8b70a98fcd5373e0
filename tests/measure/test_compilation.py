"""What torch.compile did is counted, and a silent eager run is never a number."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from bench.engine.member import Member
from bench.engine.pool import Pool
from bench.engine.replicate import Replicate
from bench.measure import compilation
from bench.plan.case import Case
from bench.sampling.rounds import Length
from tests.make.points import point
from tests.measure.stub import case

pytestmark = [pytest.mark.slow, pytest.mark.toolchain]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """Return a pool whose server has used the compiler."""
    opened = Pool(1, ("compiled_eager",))
    yield opened
    opened.close()


def measured(pool: Pool, *names: str, **columns: Any) -> dict[str, Member]:
    """Return the members of a replicate that measures implementations of a tiny point; the first is the baseline."""
    members = {name: Member(Case(point(**columns), name), pool, thorough=True) for name in names}
    Replicate([*members.values()], members[names[0]], Length(0.05), seed=7, number=0).measure(60.0)
    return members


@pytest.mark.usefixtures("compiler")
def test_a_compiled_case_trains_and_tells_its_graph_from_one_of_the_cache(pool: Pool) -> None:
    """The first process compiles, forward and backward; the next one finds the graph on disk. Eager code has neither.

    Both are correct with their gradients.
    """
    scale = random.SystemRandom().random()  # no session before had it
    first, second = (measured(pool, "eager", "compiled_eager", qk_scale=scale, mode="train") for _ in range(2))
    assert {member.status for members in (first, second) for member in members.values()} == {"ok"}
    metrics = [members["compiled_eager"].metrics for members in (first, second)]
    assert [each["compile_cached"] for each in metrics] == [False, True]
    assert [each["graphs"] for each in metrics] == [1, 1]
    assert min(each["compile_s"] for each in metrics) > 0
    assert not {"graphs", "compile_s"} & set(first["eager"].metrics)


def test_an_implementation_that_exhausted_the_limit_by_itself_is_a_fallback(pool: Pool) -> None:
    """Where torch.compile gave up it would run eagerly, whether it declares compilation or not, so it isn't timed."""
    members = measured(pool, "eager", "tests.foreign:exhausted", "tests.foreign:overworked")
    assert [member.status for member in members.values()] == ["ok", "fallback", "fallback"]
    assert ["recompile_limit" in member.detail for member in members.values()] == [False, True, True]


def test_where_compiling_is_switched_off_a_compiled_layer_is_a_fallback() -> None:
    """If torch.compile is to do nothing it compiles no graph, and the row says so."""
    with torch.compiler.set_stance("force_eager"), case(point(), "compiled_eager") as process:
        reply = process.prepare()
    assert reply["status"] == "fallback"
    assert "compiled no graph" in reply["detail"]


def test_a_recompilation_while_timing_is_an_error() -> None:
    """A call of another shape inside the frozen stance raises instead of compiling."""
    compiled = torch.compile(lambda x: x.sin() + 1, dynamic=False, backend="eager")
    compiled(torch.zeros(3))
    with compilation.frozen():
        compiled(torch.ones(3))
        with pytest.raises(RuntimeError, match="recompile"):
            compiled(torch.zeros(4))


def test_without_a_compiler_the_case_is_unsupported_with_that_reason() -> None:
    """On a machine without a C++ compiler the row says so."""
    from torch._inductor import config  # its import takes seconds

    settings = {"cpp.cxx": ("/nonexistent/compiler",), "force_disable_caches": True}
    with config.patch(settings), case(point(num_tokens=11), "compiled_eager") as process:
        reply = process.prepare()
    assert reply["status"] == "unsupported"
    assert "No working C++ compiler" in reply["detail"]
