"""The settings of an effort: their values, their options, and what these can't be."""

import argparse
import math

import pytest

from bench.plan.columns import ValueKind, read
from bench.plan.sweep import SETTINGS, Effort
from tests.refusals import refusal

ABOVE_0 = "a number above 0"


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("within_s", {"90s": 90, "30m": 1800, "1.5h": 5400, "60": 60}),
        ("within_s", {"1s": 1, "0.5m": 30}),
        ("budget_s", {"2": 2}),
        ("bound", {"2%": 0.02, "0.02": 0.02, "50%": 0.5, ".1": 0.1}),
        ("processes", {"7": 7}),
    ],
)
def test_a_text_has_a_unit_or_is_in_base_units(name: str, texts: dict[str, float]) -> None:
    """`1h` is an hour and `60` a minute, `2%` and `0.02` are the same share."""
    assert {text: SETTINGS[name].read(text) for text in texts} == pytest.approx(texts)


@pytest.mark.parametrize(
    ("name", "texts", "rule"),
    [
        ("within_s", ["1d", "", "soon", "m"], "a duration such as 90s, 30m or 1h"),
        ("bound", ["abc", "%", "2%%"], "a share such as 2% or 0.02"),
        ("processes", ["2.5", "few"], "a whole number of at least 1"),
    ],
)
def test_what_cannot_be_read_is_one_line(name: str, texts: list[str], rule: str) -> None:
    """It has the option, the text, and what could have come."""
    for text in texts:
        assert refusal(SETTINGS[name].read, text) == f"{SETTINGS[name].option} {text} must be {rule}"
    assert refusal(read, ValueKind.SHARE, "--allow", "much").startswith("--allow much must be a share")


@pytest.mark.parametrize(
    ("name", "rule", "wrong"),
    [
        ("processes", "a whole number of at least 1", [0, 2.0, True, "2"]),
        ("race", "true or false", [1, "true"]),
        ("bound", "a share above 0 and below 1, such as 0.02 for 2 %", [0, 1, -0.1, math.nan, True, "2%"]),
        ("within_s", ABOVE_0, [0, math.inf, False, "12"]),
        ("budget_s", ABOVE_0, [-1]),
        ("timeout_s", ABOVE_0, [0.0]),
        ("oversubscribe", "true or false", [1]),
        ("allow_error", "a share above 0 and below 1, such as 0.02 for 2 %", [0, 1, "5%"]),
    ],
)
def test_a_value_that_cannot_be_has_its_rule(name: str, rule: str, wrong: list[object]) -> None:
    """The default and a usual value have no mistake."""
    assert [SETTINGS[name].mistake(value) for value in wrong] == [
        f"{name} = {value!r} must be {rule}" for value in wrong
    ]
    usual = getattr(Effort, name)
    assert usual is None or SETTINGS[name].mistake(usual) == ""


def test_each_setting_has_one_option_and_none_is_given_by_default() -> None:
    """A switch takes no value; one that is usually on is switched off."""
    parser = argparse.ArgumentParser()
    for each in SETTINGS.values():
        each.add_to(parser.add_argument)
    assert {*vars(parser.parse_args([])).values()} == {None}
    words = ["--within", "4m", "--no-race", "--oversubscribe", "--timeout-s", "5"]
    given = {name: value for name, value in vars(parser.parse_args(words)).items() if value is not None}
    assert given == {"within_s": "4m", "race": False, "oversubscribe": True, "timeout_s": "5"}
