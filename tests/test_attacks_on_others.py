"""Implementations that harm others end with what they did in their rows; the others are measured."""

import re
from pathlib import Path

import pytest

from bench.engine import run as engine
from bench.plan.case import Point
from bench.plan.sweep import Effort, Sweep
from bench.sampling.rounds import Length
from bench.store.table import load
from tests import attacks_on_others
from tests.make.points import point

pytestmark = pytest.mark.slow

EFFORT = Effort(processes=1, timeout_s=60)
LENGTH = Length(0.3, 12)

SHAPE = {"batch": 2, "num_tokens": 64, "channels": 64, "num_heads": 4}


def ends(at: Point, folder: Path, *implementations: str) -> dict[str, str]:
    """Return the status and the detail of implementations that are measured until none is missing."""
    with engine.Run(Sweep("attacks", (at,), implementations, effort=EFFORT), folder) as run:
        while missing := run.missing(at):
            run.replicate({at: missing}, LENGTH)
    table = load(folder).fillna({"detail": ""}).set_index("implementation")
    return {name: f"{table['status'][name]}: {table['detail'][name]}" for name in implementations}


BY_SIGNALS = ("kills", "terminates_one", "kills_when_made")
BY_LIMITS = ("limits_memory_when_made", "is_first_without_memory")
BY_FILES = ("writes_into_files", "writes_into_memory", "puts_folders")


@pytest.mark.parametrize("names", [BY_SIGNALS, BY_LIMITS, BY_FILES], ids=["signals", "limits", "files"])
def test_who_harms_others_is_named_and_they_are_measured(names: tuple[str, ...], tmp_path: Path) -> None:
    """By a signal, a limit, or a file: either the others are out of reach, or its row says what it did."""
    attacks = {f"tests.attacks_on_others:{name}": attacks_on_others.EXPECTED[name] for name in names}
    expected = {"eager": "ok: ", "sdpa": "ok: ", **attacks}
    seen = ends(point(**SHAPE), tmp_path, "eager", "sdpa", *attacks)
    assert {name: end for name, end in seen.items() if not re.match(expected[name], end)} == {}


def test_a_layer_can_not_replace_the_comparison(tmp_path: Path) -> None:
    """Where outputs are compared there is no user's code, also if kernel and layer lie in one file."""
    at = point(**SHAPE, layer="tests.attacks_on_others:Layer")
    seen = ends(at, tmp_path, "eager", "tests.attacks_on_others:values")
    assert seen["eager"].startswith("ok: ")
    assert " is off by " in seen["tests.attacks_on_others:values"]
