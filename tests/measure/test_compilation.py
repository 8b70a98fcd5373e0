"""What torch.compile did is counted, and a silent eager run is never a number."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from bench.measure import compilation, visit
from bench.plan.case import Point
from tests.measure.test_visit import SHORT, visited
from tests.points import point

pytestmark = pytest.mark.slow


def outcome(at: Point) -> visit.Outcome:
    """Return what a visit of one point says of compiled_eager."""
    request = visit.Request(at, ("eager", "compiled_eager"), "eager", SHORT, seed=1, thorough=False)
    return visit.make(request, lambda *_: None).outcomes["compiled_eager"]


def test_more_points_than_the_recompile_limit_are_all_compiled() -> None:
    """Four shapes in one process, two more than torch.compile is allowed here, each with a graph of its own."""
    with torch._dynamo.config.patch(recompile_limit=2):
        found = [outcome(point(num_tokens=tokens)) for tokens in range(3, 7)]
    assert [made.status for made in found] == ["ok"] * 4
    assert all(made.metrics["graphs"] >= 1 for made in found)
    assert all(made.metrics["compile_s"] > 0 for made in found)


def test_a_graph_from_the_cache_is_told_from_one_that_was_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an empty cache a visit compiles; the next one, after a reset, finds the graph on disk."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    first, second = outcome(point(num_tokens=9)), outcome(point(num_tokens=9))
    assert (first.metrics["compile_cached"], second.metrics["compile_cached"]) == (False, True)
    assert first.metrics["graphs"] == second.metrics["graphs"] == 1


def test_with_the_limit_exhausted_the_row_is_a_fallback_without_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the reset torch.compile runs eagerly in silence: that is no time of a compiled layer."""
    torch.compiler.reset()
    monkeypatch.setattr(torch.compiler, "reset", lambda: None)
    with torch._dynamo.config.patch(recompile_limit=1):
        found = [outcome(point(num_tokens=tokens)) for tokens in (3, 4)]
    assert [made.status for made in found] == ["ok", "fallback"]
    assert "recompile_limit" in found[1].detail
    assert "slots" not in found[1].metrics


def test_an_implementation_that_exhausted_the_limit_by_itself_is_a_fallback() -> None:
    """It warned in a log that nobody reads and ran eagerly: the row says so and holds no number."""
    made = visited("eager", "tests.foreign:exhausted").outcomes["tests.foreign:exhausted"]
    assert made.status == "fallback"
    assert "slots" not in made.metrics


def test_an_implementation_that_compiles_unannounced_may_not_fall_back_either() -> None:
    """A kernel that calls torch.compile by itself is no number where that gave up and would run it eagerly."""
    made = visited("eager", "tests.foreign:overworked").outcomes
    assert made["tests.foreign:overworked"].status == "fallback"
    assert "recompile_limit" in made["tests.foreign:overworked"].detail
    assert made["eager"].status == "ok"


def test_where_compiling_is_switched_off_a_compiled_layer_is_a_fallback() -> None:
    """With torch.compile told to do nothing it compiles no graph, and the row says so."""
    with torch.compiler.set_stance("force_eager"):
        made = visited("eager", "compiled_eager").outcomes["compiled_eager"]
    assert made.status == "fallback"
    assert "compiled no graph" in made.detail
    assert "slots" not in made.metrics


def test_a_compiled_layer_trains_and_says_what_it_keeps() -> None:
    """Forward and backward compile, are correct with their gradients, and keep no more than the eager layer."""
    made = visited("eager", "compiled_eager", mode="train").outcomes
    assert {outcome.status for outcome in made.values()} == {"ok"}
    assert 0 < made["compiled_eager"].metrics["saved_bytes"] <= made["eager"].metrics["saved_bytes"]


def test_a_recompilation_while_timing_is_an_error() -> None:
    """A call of another shape inside the frozen stance raises instead of compiling."""
    compiled = torch.compile(lambda x: x.sin() + 1, dynamic=False)
    compiled(torch.zeros(3))
    with compilation.frozen():
        compiled(torch.ones(3))
        with pytest.raises(RuntimeError, match="recompile"):
            compiled(torch.zeros(4))


def test_eager_implementations_have_no_graphs() -> None:
    """What is not compiled has neither a number of graphs nor a time to compile."""
    found = visited("eager", "sdpa").outcomes["sdpa"].metrics
    assert "graphs" not in found
    assert "compile_s" not in found


def test_without_a_compiler_the_case_is_unsupported_with_that_reason() -> None:
    """On a machine without a C++ compiler the row says so, and eager is measured beside it."""
    script = (
        "from tests.measure.test_compilation import outcome; from tests.points import point\n"
        "made = outcome(point()); print(made.status, made.detail)"
    )
    environment = {**os.environ, "CXX": "/nonexistent/compiler", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("unsupported ")
    assert "No working C++ compiler" in done.stdout
