"""Who does the work of a span."""

import pytest

from bench.show.report.innermost import innermost
from bench.store.profile import OPERATOR, Span

LINEAR = Span("aten::linear", OPERATOR, "host", 0, 0.0, 10.0)
MATMUL = Span("aten::matmul", OPERATOR, "host", 1, 0.1, 9.8)
MM = Span("aten::mm", OPERATOR, "host", 2, 0.2, 9.6)
VIEW = Span("aten::view", OPERATOR, "host", 2, 9.85, 0.01)
ELSEWHERE = Span("aten::bmm", OPERATOR, "thread 2", 3, 1.0, 8.0)
LATER = Span("aten::add", OPERATOR, "host", 1, 11.0, 9.0)


@pytest.mark.parametrize("span", [LINEAR, MATMUL, MM])
def test_who_calls_does_what_the_called_does(span: Span) -> None:
    """The product fills the operators that called it; what is short, on another thread or later doesn't."""
    assert innermost(span, [LINEAR, MATMUL, MM, VIEW, ELSEWHERE, LATER]) == MM


def test_half_of_a_span_is_needed() -> None:
    """A span that two others share equally does what the deeper ones do, one of three parts is its own."""
    third = Span("aten::mm", OPERATOR, "host", 1, 0.0, 3.3)
    half = Span("aten::mm", OPERATOR, "host", 1, 0.0, 5.0)
    assert innermost(LINEAR, [third]) == LINEAR
    assert innermost(LINEAR, [half]) == half
