"""A change of precision in a sentence."""

from dataclasses import replace

from bench.analyse.conclusions import changes
from bench.analyse.summary import summarise
from bench.show.precision_text import in_words
from tests.examples import case
from tests.runs import in_precision as measured


def test_of_several_shapes_the_least_and_the_most_are_told() -> None:
    """At each shape the implementation counts that is fastest in the other precision."""
    records = [
        replace(each, case=case(each.case.implementation, dtype=each.case.point.dtype, num_tokens=number))
        for number, names in ((50, ("eager", "sdpa")), (197, ("sdpa",)))
        for name in names
        for dtype in ("float32", "bfloat16")
        for each in [measured(name, dtype, 0, slowness=2.0 if name == "eager" else 1.0)]
    ]
    (line,) = in_words(summarise(records, "sdpa"), changes(records))
    assert "each of 2 shapes: 2.00x (sdpa) to 2.00x (sdpa)" in line
