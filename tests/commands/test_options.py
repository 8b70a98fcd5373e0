"""The options of `run` and the sweep that they ask for."""

import argparse
import shlex
from pathlib import Path

import pytest

from bench.commands import options
from bench.machine import facts
from bench.plan.sweep import Effort, Sweep, load_sweep
from bench.store import journal, plan
from tests.make.points import point
from tests.refusals import refusal


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the machine for one of two cores."""
    monkeypatch.setattr(facts, "visible_cores", lambda: 2)


def given(line: str) -> argparse.Namespace:
    """Return the options in a line."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    options.add(lambda _title: parser.add_argument)
    return parser.parse_args(shlex.split(line))


def asked(line: str) -> Sweep:
    """Return the sweep that the options in a line ask for; without --sweep it is quick."""
    return options.sweep(given(line))


def test_options_of_shape_are_one_product_and_those_of_execution_hold_for_the_sweep() -> None:
    """Lists replace columns; a product isn't named quick, and columns that it leaves out have their defaults."""
    sweep = asked("--num-tokens 128:2048:x2 --num-heads 3,6 --qkv-bias true --qk-scale 0.5")
    assert sorted({each.num_tokens for each in sweep.points}) == [128, 256, 512, 1024, 2048]
    assert (len(sweep.points), sweep.name) == (10, "custom")
    assert {(each.batch, each.channels, each.qkv_bias, each.qk_scale) for each in sweep.points} == {(8, 384, True, 0.5)}
    points = asked("--sweep article --num-tokens '8, 16' --num-heads 2 --threads 1,2").points
    assert [(each.num_tokens, each.threads) for each in points] == [(8, 1), (16, 1), (8, 2), (16, 2)]
    assert len(asked("--dtype bfloat16").points) == len(load_sweep("quick").points)
    assert [each.num_tokens for each in asked("--dtype float32,bfloat16 --batch 1").points] == [197, 197]


def test_none_is_no_value_of_an_optional_column() -> None:
    """It replaces a column of a sweep too, and is one point however often it is given; a layer may lack the column."""
    line = "--layer attention --num-tokens 64 --window-size none,8,none --qk-scale none,0.5"
    found = [(each.window_size, each.qk_scale) for each in asked(line).points]
    assert found == [(None, None), (8, None), (None, 0.5), (8, 0.5)]
    assert [each.num_kv_tokens for each in asked("--layer vit --num-kv-tokens none --num-tokens 8").points] == [None]
    assert refusal(asked, "--num-heads none").startswith("num_heads = 'none' must be a whole number from 1 to ")


def test_a_gpu_has_a_default_sweep_of_its_own() -> None:
    """Its shapes without options of shape; beside one its dtype and implementations, at the shape of all defaults."""
    plain, one = asked("--device cuda"), asked("--device cuda:1 --num-tokens 64")
    assert (plain.name, plain.points) == ("gpu", load_sweep(facts.here("gpu")).points)
    assert one.implementations == plain.implementations
    ((at,), usual) = one.points, asked("--num-tokens 64").points[0]
    assert (at.device, at.dtype) == ("cuda:1", "bfloat16")
    assert (at.batch, at.num_tokens, at.channels, at.num_heads) == (8, 64, usual.channels, usual.num_heads)


def test_effort_can_be_changed() -> None:
    """The command line replaces processes, bound, time and budget in the file; more threads than cores are allowed."""
    line = "--processes 7 --budget-s 1.5 --within 60s --bound 5% --timeout-s 9 --threads 64 --oversubscribe"
    effort = Effort(processes=7, budget_s=1.5, race=True, bound=0.05, within_s=60, timeout_s=9.0, oversubscribe=True)
    assert asked(line).effort == effort


# what can't be met


def test_all_mistakes_are_in_one_message() -> None:
    """Two wrong implementations, a wrong value and a wrong status are three lines, and so are words of three kinds."""
    names, dtype, status = refusal(asked, "--impl sdap,onlin --dtype fp32 --fail-on all").splitlines()
    assert "did you mean sdpa for 'sdap', online for 'onlin'?" in names
    assert "dtype" in dtype
    assert "'all'" in status
    lines = sorted(refusal(asked, "--bound low --within soon --num-heads six").splitlines())
    assert [line.partition(" must")[0] for line in lines] == ["--bound low", "--num-heads six", "--within soon"]


def test_statuses_that_fail_a_point() -> None:
    """They are a comma list, `none` for none of them, and the usual rule where nothing is said."""
    statuses = [options.fail_on(given(line)) for line in ("", "--fail-on none", "--fail-on incorrect,oom")]
    assert statuses == [None, (), ("incorrect", "oom")]


def test_the_folder_is_the_one_asked_for_or_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --run the folder is named by time and sweep under results/, where the user is; no two are the same."""
    monkeypatch.chdir(tmp_path)
    assert options.run_folder(given("--run there"), "article") == Path("there")
    fresh = options.run_folder(given(""), "article")
    assert fresh.parent == Path("results")
    assert fresh.name.endswith("Z-article")
    assert len({fresh, *(options.run_folder(given(""), "article") for _ in range(9))}) == 10
    assert not Path("there").exists()


# a folder that holds a run

OWN = Sweep("mine", (point(), point(num_tokens=5)), ("eager", "sdpa"), effort=Effort(processes=2))


@pytest.fixture
def run(tmp_path: Path) -> str:
    """Return the options that name the folder of a run, and no more."""
    plan.keep(OWN, journal.scan(tmp_path))
    return f"--run {tmp_path}"


def test_a_folder_alone_goes_on_with_its_own_plan(run: str) -> None:
    """The default sweep is for new runs."""
    assert asked(run) == OWN
    assert asked("").name == "quick"


@pytest.mark.parametrize(
    "line", ["--num-tokens 8,16", "--impl eager,sdpa --processes 2", "--sweep article --threads 1"]
)
def test_the_options_that_a_run_was_begun_with_are_accepted(tmp_path: Path, line: str) -> None:
    """It holds for the default sweep and for a named one, with any changes."""
    begun = asked(line)
    plan.keep(begun, journal.scan(tmp_path))
    assert asked(f"{line} --run {tmp_path}") == begun


def test_a_shard_is_a_part_of_the_sweep(tmp_path: Path) -> None:
    """Its folder goes on with it, under the same name or none; another shard of the folder is refused with both."""
    part, run = asked("--sweep article --shard 1/2"), f"--run {tmp_path}"
    assert (str(part.shard), len(part.whole)) == ("1/2", len(asked("--sweep article").points))
    assert {*part.points} < {*part.whole}
    plan.keep(part, journal.scan(tmp_path))
    for again in ("", "--shard 1/2", "--sweep article --shard 1/2"):
        assert asked(f"{run} {again}").points == part.points
    assert "shard: 1/2 against 2/2" in refusal(asked, f"{run} --sweep article --shard 2/2")
