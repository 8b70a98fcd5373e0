"""What called what."""

import dataclasses

from bench.analyse.callers import chains, partly_kept
from bench.store.profile import OPERATOR, STAGE, Operator, Span
from tests.profiles import profile


def span(name: str, depth: int, start_s: float, *, lane: str = "host", kind: str = OPERATOR) -> Span:
    """Return a span of a second."""
    return Span(name, kind, lane, depth, start_s, 1.0)


def test_a_chain_holds_what_is_around_from_the_outside_in() -> None:
    """Stages and operators alike; what stands beside a caller is called by nothing."""
    spans = [
        span("merge heads", 0, 0.0, kind=STAGE),
        span("clone", 1, 0.0),
        span("copy_", 2, 0.5),
        span("clone", 0, 2.0),
        span("copy_", 1, 2.5),
        span("copy_", 1, 2.8),
    ]
    found = chains(spans)
    assert found["copy_"] == {("merge heads", "clone"): 1, ("clone",): 2}
    assert found["clone"] == {("merge heads",): 1, (): 1}


def test_lanes_have_nothing_to_do_with_each_other() -> None:
    """A kernel that runs while an operator does wasn't called in it."""
    found = chains([span("mm", 0, 0.0), span("kernel", 1, 0.2, lane="stream 7"), span("empty", 1, 0.5)])
    assert found == {"mm": {(): 1}, "kernel": {(): 1}, "empty": {("mm",): 1}}


def test_the_order_of_spans_is_that_of_time() -> None:
    """A list in any order gives the same chains, also where a caller and what it calls begin together."""
    spans = [span("outer", 0, 0.0), span("inner", 1, 0.0), span("leaf", 2, 0.0), span("next", 0, 1.0)]
    assert chains(spans[::-1]) == chains(spans)
    assert chains(spans)["leaf"] == {("outer", "inner"): 1}


def test_a_depth_that_is_left_out_does_not_mix_siblings() -> None:
    """Where the spans between were dropped, two of one depth still aren't in each other."""
    assert chains([span("outer", 0, 0.0), span("one", 2, 0.1), span("two", 2, 0.2)])["two"] == {("outer",): 1}


def test_a_chain_can_do_without_a_name() -> None:
    """What it called is then called by what is around it, and its own calls are still there."""
    found = chains([span("outer", 0, 0.0), span("view", 1, 0.1), span("copy_", 2, 0.2)], {"view"})
    assert found["copy_"] == {("outer",): 1}
    assert found["view"] == {("outer",): 1}


def test_what_has_fewer_spans_than_calls_is_partly_kept() -> None:
    """None, or some; stages have no calls to be set against."""
    made = dataclasses.replace(
        profile(operators=(Operator("view", 3, 1e-6, 0), Operator("mm", 1, 1e-3, 0), Operator("reshape", 1, 1e-6, 0))),
        spans=(span("scores", 0, 0.0, kind=STAGE), span("view", 1, 0.1), span("mm", 1, 0.2)),
    )
    assert partly_kept(made) == {"view", "reshape"}
