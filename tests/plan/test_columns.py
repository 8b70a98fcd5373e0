"""How texts become the values of settings, and what these can't be."""

import math

import pytest

from bench.plan.columns import ValueKind, read
from bench.plan.sweep import SETTINGS, Effort
from tests.refusals import refusal


def test_a_text_has_a_unit_or_is_in_base_units() -> None:
    """`1h` is an hour and `60` a minute, `2%` and `0.02` are the same share; another text is refused by its option."""
    seconds = {"90s": 90, "30m": 1800, "1.5h": 5400, "60": 60}
    assert {text: SETTINGS["within_s"].read(text) for text in seconds} == seconds
    shares = {"2%": 0.02, "0.02": 0.02, ".1": 0.1}
    assert {text: SETTINGS["bound"].read(text) for text in shares} == pytest.approx(shares)
    for kind, texts in {
        ValueKind.SECONDS: ["1d", "", "soon", "m"],
        ValueKind.SHARE: ["abc", "%", "2%%"],
        ValueKind.COUNT: ["2.5", "few"],
    }.items():
        for text in texts:
            assert refusal(read, kind, "--option", text).startswith(f"--option {text} must be a ")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("processes", [0, 2.0, True, "2", 10**12]),
        ("race", [1, "true"]),
        ("bound", [0, 1, -0.1, math.nan, True, "2%"]),
        ("within_s", [0, math.inf, False, "12"]),
    ],
)
def test_a_value_that_cannot_be_has_a_mistake(name: str, wrong: list[object]) -> None:
    """The line has the setting and the value; the default has none."""
    for value in wrong:
        assert SETTINGS[name].mistake(value).startswith(f"{name} = {value!r} must be ")
    usual = getattr(Effort, name)
    assert usual is None or SETTINGS[name].mistake(usual) == ""
