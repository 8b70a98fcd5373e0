"""Texts around pictures."""

import dataclasses

from bench.show.figures.captions import calls, facts, origin_rows
from bench.show.rows import origins
from tests.profiles import profile, stepwise


def test_facts_are_what_is_fixed() -> None:
    """The device with its name, and no column that the picture shows."""
    assert facts(stepwise().case.point, origin_rows([stepwise(), profile()])) == [
        *("vit", "cpu (A CPU)", "float32", "inference", "B=8", "N=197", "C=384", "H=6", "1 thread"),
    ]
    assert "N=197" not in facts(stepwise().case.point, origin_rows([stepwise()]), ["num_tokens"])


def test_origins_say_how_many_calls_and_with_what() -> None:
    """A range where profiles differ, and each version once."""
    other = dataclasses.replace(profile(), calls=7)
    assert calls([stepwise(), other]) == "means over 3 to 7 calls under the profiler"
    assert origins(origin_rows([stepwise(), other])) == ["torch 2.13.0", "commit 0123456789ab+"]
