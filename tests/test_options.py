"""The options of `pytest bench` and the sweep that they ask for."""

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from bench import options
from bench.plan.errors import WrongRequest
from bench.plan.sweep import Effort, Sweep, load_sweep
from bench.store import plan
from tests.points import point

NONE: dict[str, Any] = {
    **dict.fromkeys(
        [*options.LISTS, "run", "impl", "processes", "target", "budget_s", "within_s", "timeout_s", "check_memory"]
    ),
    **dict.fromkeys(["threads", "allocator"]),
    **dict.fromkeys(["extend", "retry_failed"], False),
    "sweep": "article",
}


def asked(**values: Any) -> argparse.Namespace:
    """Return options of which only some were given."""
    return argparse.Namespace(**{**NONE, **values})


def test_without_options_the_sweep_is_the_files() -> None:
    """Nothing but the sweep's name gives what its file says, with this machine's threads."""
    plain = options.sweep(asked())
    assert plain.implementations == load_sweep("article").implementations
    assert [point.num_heads for point in plain.points] == [1, 4]


def test_lists_replace_columns() -> None:
    """Comma lists take the place of the sweep's values, and the product follows."""
    sweep = options.sweep(asked(num_tokens="8, 16", num_heads="2", dtype="bfloat16", threads=3, allocator="system"))
    assert [(point.num_tokens, point.num_heads) for point in sweep.points] == [(8, 2), (16, 2)]
    assert {(point.dtype, point.threads, point.allocator) for point in sweep.points} == {("bfloat16", 3, "system")}


def test_the_baseline_is_always_measured() -> None:
    """Asking for sdpa alone still measures eager, which its ratio needs."""
    assert options.sweep(asked(impl="sdpa")).implementations == ("eager", "sdpa")


def test_effort_can_be_changed() -> None:
    """Processes, target and budget of the file give way to those of the command line."""
    effort = options.sweep(
        asked(processes=7, target=0.5, budget_s=1.5, within_s=60, timeout_s=9.0, check_memory=True)
    ).effort
    assert effort == Effort(processes=7, target=0.5, budget_s=1.5, within_s=60, timeout_s=9.0, check_memory=True)


def test_words_that_should_be_numbers_are_refused() -> None:
    """The refusal names the option and what it takes."""
    with pytest.raises(WrongRequest, match="--num-heads six must be whole numbers separated by commas"):
        options.sweep(asked(num_heads="six"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sweep": "quikc"}, "unknown sweep 'quikc'; expected one of allocator, article"),
        ({"device": "tpu"}, "device = 'tpu' must be cpu, cuda or cuda:<number>"),
        ({"processes": 0}, "processes = 0 must be a whole number of at least 1"),
        ({"mode": "eval"}, "mode = 'eval' must be one of inference, forward, train"),
    ],
)
def test_what_cannot_be_met_is_refused_with_what_could_be(values: dict[str, Any], message: str) -> None:
    """A value that no sweep can have names itself and its alternatives."""
    with pytest.raises(WrongRequest, match=message):
        options.sweep(asked(**values))


def test_the_folder_is_the_one_asked_for_or_a_new_one(tmp_path: Path) -> None:
    """Without --run the folder is named by time and sweep under results/."""
    sweep = load_sweep("article")
    assert options.run_folder(asked(run="there"), tmp_path, sweep) == Path("there")
    fresh = options.run_folder(asked(), tmp_path, sweep)
    assert fresh.parent == tmp_path / "results"
    assert fresh.name.endswith("Z-article")


# Options on a folder that holds a run

OWN = Sweep("mine", (point(), point(num_tokens=5)), ("eager", "sdpa"), effort=Effort(processes=2))


@pytest.fixture
def run(tmp_path: Path) -> dict[str, Any]:
    """Return the options that name the folder of a run, and no more."""
    plan.save(OWN, tmp_path)
    return {"run": str(tmp_path), "sweep": None}


def test_a_folder_alone_goes_on_with_its_own_plan(run: dict[str, Any]) -> None:
    """The default sweep is for new runs."""
    assert options.sweep(asked(**run)) == OWN
    assert options.sweep(asked(sweep=None)).name == "quick"


def test_the_options_that_a_run_was_begun_with_are_accepted(tmp_path: Path) -> None:
    """With the default sweep and with a named one, whatever was changed in it."""
    for words in ({"num_tokens": "8,16"}, {"impl": "eager,sdpa", "processes": 2}, {"sweep": "article", "threads": 1}):
        given = {"sweep": None, **words}
        begun = options.sweep(asked(**given))
        plan.save(begun, tmp_path)
        assert options.sweep(asked(**given, run=str(tmp_path))) == dataclasses.replace(begun, published=())


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"sweep": "article"}, "sweep: mine against article; points: 2 with .* against 2 with "),
        ({"impl": "sdpa,mha"}, "implementations: eager, sdpa against eager, sdpa, mha"),
        ({"processes": 9}, "processes: 2 against 9"),
        ({"num_tokens": "99"}, "points: 2 with .* against .*n99"),
    ],
)
def test_other_options_are_refused_with_two_ways_out(values: dict[str, Any], told: str, run: dict[str, Any]) -> None:
    """What is not said stays as the run has it."""
    with pytest.raises(WrongRequest, match=f"asked for: {told}.*; use a new folder, or --extend"):
        options.sweep(asked(**{**run, **values}))


def test_extending_adds_to_the_plan(run: dict[str, Any]) -> None:
    """Implementations, points and processes."""
    wider = options.sweep(asked(**run, impl="mha", processes=3, extend=True))
    assert wider.implementations == ("eager", "sdpa", "mha")
    assert (wider.points, wider.effort.processes) == (OWN.points, 3)
    assert options.sweep(asked(**{**run, "sweep": "article"}, extend=True)).points[:2] == OWN.points


@pytest.mark.parametrize("folder", [None, "missing"])
def test_only_a_run_can_be_extended(folder: str | None, tmp_path: Path) -> None:
    """A folder that holds none is likely to be misspelled."""
    with pytest.raises(WrongRequest, match="--extend adds to a run"):
        options.sweep(asked(run=folder and str(tmp_path / folder), extend=True))
