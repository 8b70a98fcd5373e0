"""The options of `pytest bench` and the sweep that they ask for."""

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.harness import options
from bench.machine import facts
from bench.plan.errors import WrongRequest
from bench.plan.sweep import Effort, Sweep, load_sweep
from bench.store import plan
from tests.points import point
from tests.refusals import refusal

FLAGS = {"within_s": "--within", "race": "--no-race"}
"""The options that aren't called like the values that they set."""


def asked(**values: Any) -> argparse.Namespace:
    """Return the options that set these values; None means that one isn't given."""
    given = {name: value for name, value in {"sweep": "article", **values}.items() if value is not None}
    flags = {name: FLAGS.get(name, options.flag(name)) for name in given}
    return given_in(
        [flags[name] if isinstance(value, bool) else f"{flags[name]}={value}" for name, value in given.items()]
    )


def given_in(words: Sequence[str]) -> argparse.Namespace:
    """Return the options in words."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    options.add(parser.add_argument)
    return parser.parse_args(words)


def test_without_options_the_sweep_is_the_files() -> None:
    """Nothing but the sweep's name gives what its file says, with this machine's threads."""
    plain = options.sweep(asked())
    assert plain.implementations == load_sweep("article").implementations
    assert [point.num_heads for point in plain.points] == [1, 4]


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the machine for one of two cores."""
    monkeypatch.setattr(facts, "visible_cores", lambda: 2)


def test_lists_replace_columns() -> None:
    """Comma lists take the place of the sweep's values, truths and numbers too, and the product follows."""
    sweep = options.sweep(asked(num_tokens="8, 16", num_heads="2", dtype="bfloat16", threads="1,2", allocator="system"))
    assert [(point.num_tokens, point.num_heads) for point in sweep.points] == [(8, 2), (16, 2)] * 2
    assert [point.threads for point in sweep.points] == [1, 1, 2, 2]
    assert {(point.dtype, point.allocator) for point in sweep.points} == {("bfloat16", "system")}
    points = options.sweep(asked(qkv_bias="true,false", qk_scale="0.5", num_heads="1")).points
    assert [(point.qkv_bias, point.qk_scale) for point in points] == [(True, 0.5), (False, 0.5)]


def test_effort_can_be_changed() -> None:
    """Processes, bound, time and budget of the file give way to those of the command line."""
    words = ["--processes", "7", "--budget-s", "1.5", "--within", "60s", "--bound", "5%", "--timeout-s", "9"]
    assert parsed(*words, "--check-memory").effort == Effort(
        processes=7, budget_s=1.5, race=True, bound=0.05, within_s=60, timeout_s=9.0, check_memory=True
    )


def parsed(*words: str) -> Sweep:
    """Return the sweep that these words on the command line ask for; without --sweep it is quick."""
    return options.sweep(given_in(words))


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("1.5h", 5400), ("60", 60), ("1s", 1), ("0.5m", 30)]
)
def test_a_duration_has_a_unit_or_is_in_seconds(text: str, seconds: float) -> None:
    """`--spread 1h` is an hour, and `--within 1s` a second, after which a race has taken its base alone."""
    assert parsed("--spread", text).effort.spread_s == seconds
    assert parsed("--within", text).effort.within_s == seconds


@pytest.mark.parametrize(("text", "bound"), [("2%", 0.02), ("0.02", 0.02), ("0.5%", 0.005), ("50%", 0.5), (".1", 0.1)])
def test_a_bound_is_a_percentage_or_a_share(text: str, bound: float) -> None:
    """`--bound 2%` and `--bound 0.02` are the same."""
    assert parsed("--bound", text).effort.bound == pytest.approx(bound)


DURATION = "must be a duration such as 90s, 30m or 1h"
SHARE = "such as 0.02 for 2 %"


@pytest.mark.parametrize(
    ("option", "text", "messages"),
    [
        *[
            (option, text, [f"{option} {text} ", DURATION])
            for option in ("--spread", "--within")
            for text in ("1d", "")
        ],
        ("--spread", "soon", ["--spread soon", DURATION]),
        ("--within", "abc", ["--within abc", DURATION]),
        ("--within", "m", ["--within m", DURATION]),
        ("--within", "0s", ["within_s = 0", "must be a number above 0"]),
        ("--within", "nan", ["within_s = nan", "must be a number above 0"]),
        ("--bound", "abc", ["--bound abc", "must be a share such as 2% or 0.02"]),
        ("--bound", "%", ["--bound %", "must be a share such as 2% or 0.02"]),
        ("--bound", "2%%", ["--bound 2%%", "must be a share such as 2% or 0.02"]),
        ("--bound", "0", ["bound = 0", "must be a share above 0 and below 1", SHARE]),
        ("--bound", "0%", ["bound = 0", "must be a share above 0 and below 1", SHARE]),
        ("--bound", "200%", ["bound = 2", "must be a share above 0 and below 1", SHARE]),
        ("--bound", "2", ["bound = 2", "must be a share above 0 and below 1", SHARE]),
        ("--bound", "nan", ["bound = nan", "must be a share above 0 and below 1", SHARE]),
    ],
)
def test_a_bound_or_a_duration_that_cannot_be_is_one_line(option: str, text: str, messages: list[str]) -> None:
    """It has the value, the rule, and what could have come."""
    (line,) = refusal(parsed, option, text).splitlines()
    assert all(message in line for message in messages)


def test_words_that_cannot_be_read_are_all_told() -> None:
    """A bound, a time and a number of heads are a line each."""
    lines = refusal(parsed, "--bound", "low", "--within", "soon", "--num-heads", "six").splitlines()
    assert [sum(word in line for line in lines) for word in ("--bound low", "--within soon", "--num-heads six")] == [
        1
    ] * 3
    assert len(lines) == 3


def test_no_race_takes_the_time_of_a_file_with_it(tmp_path: Path) -> None:
    """What the command line itself says of a race is refused beside it."""
    file = tmp_path / "timed.toml"
    file.write_text("implementations = ['eager']\nwithin_s = 60\n[[grid]]\nnum_tokens = 5\nchannels = 12\n")
    raced, shared = parsed("--sweep", str(file)), parsed("--sweep", str(file), "--no-race")
    assert (raced.effort.race, raced.effort.within_s) == (True, 60)
    assert (shared.effort.race, shared.effort.within_s) == (False, None)
    (line,) = refusal(parsed, "--no-race", "--within", "5m").splitlines()
    assert "within_s needs a race" in line


def test_the_default_sweep_is_a_race_unless_the_options_say_no() -> None:
    """Nothing but --no-race and --spread makes its shares equal."""
    assert [parsed(*words).effort.race for words in ([], ["--no-race"], ["--spread", "1h"])] == [True, False, False]


def tokens(**values: Any) -> list[int]:
    """Return the tokens of the points that these options ask for without naming a sweep."""
    return [point.num_tokens for point in options.sweep(asked(sweep=None, **values)).points]


def test_without_a_sweep_options_of_shape_are_one_product() -> None:
    """Five token counts are five points, and two head counts beside them ten, in a sweep of another name than quick."""
    assert tokens(num_tokens="128,256,512,1024,2048") == [128, 256, 512, 1024, 2048]
    sweep = options.sweep(asked(sweep=None, num_tokens="128:2048:x2", num_heads="3,6"))
    assert len(sweep.points) == 10
    assert sweep.name == "custom"
    assert {(point.batch, point.channels) for point in sweep.points} == {(8, 384)}


def test_without_a_sweep_options_of_execution_hold_for_quick() -> None:
    """Another dtype is quick's points in that dtype; beside a shape it is one product with it."""
    assert len(options.sweep(asked(sweep=None, dtype="bfloat16")).points) == len(load_sweep("quick").points)
    assert tokens(dtype="float32,bfloat16", batch="1") == [197, 197]


def test_models_and_layers_are_options() -> None:
    """A model brings its shape, a layer its rules."""
    (model,) = options.sweep(asked(sweep=None, model="vit_b_16_384", num_heads="12")).points
    assert (model.num_tokens, model.channels, model.num_heads, model.qkv_bias) == (577, 768, 12, True)
    (conv,) = options.sweep(asked(sweep=None, layer="conv", image_size="8", channels="64")).points
    assert (conv.layer, conv.num_tokens) == ("conv", 64)


@pytest.mark.parametrize(
    ("values", "messages"),
    [
        ({"num_heads": "six"}, ["--num-heads six must be whole numbers or ranges"]),
        ({"qkv_bias": "yes"}, ["--qkv-bias yes must be true or false"]),
        ({"qk_scale": "1,small"}, ["--qk-scale 1,small must be numbers"]),
        ({"num_tokens": "128:64:8"}, ["num_tokens = 128:64:8 is empty"]),
        ({"sweep": "quikc"}, ["unknown sweep 'quikc'; expected one of allocator, article", "did you mean quick?"]),
        ({"processes": 0}, ["processes = 0 must be a whole number of at least 1"]),
        ({"dtype": "fp32"}, ["dtype = 'fp32' must be one of float32, bfloat16, float16; did you mean float32?"]),
        ({"model": "vit_b"}, ["unknown model 'vit_b'; expected one of", "did you mean vit_b_16_"]),
        ({"threads": "1,64"}, ["threads = 64 is more than the 2 cores"]),
        ({"impl": "./mykernel:adapt"}, ["must be spelled module:attribute", "did you mean mykernel:adapt?"]),
        ({"impl": "nosuch:adapt"}, ["there is no module nosuch"]),
        (
            {"fail_on": "incorect"},
            ["unknown status of --fail-on 'incorect'; expected one of", "did you mean incorrect?"],
        ),
        ({"fail_on": "ok"}, ["unknown status of --fail-on 'ok'"]),
    ],
)
def test_what_cannot_be_met_is_refused_with_what_could_be(values: dict[str, Any], messages: list[str]) -> None:
    """A wrong value is one line that names it, the rule or the alternatives, and the nearest of them."""
    (line,) = refusal(options.sweep, asked(**values)).splitlines()
    assert all(message in line for message in messages)


def test_all_mistakes_are_told_in_one_message() -> None:
    """Two wrong implementations, a wrong value and a wrong status are three lines."""
    names, dtype, status = refusal(options.sweep, asked(impl="sdap,onlin", dtype="fp32", fail_on="all")).splitlines()
    assert "did you mean sdpa for 'sdap', online for 'onlin'?" in names
    assert "dtype" in dtype
    assert "'all'" in status


def test_more_threads_than_cores_can_be_insisted_on() -> None:
    """With --oversubscribe they are measured, and the run knows that it was asked for."""
    sweep = options.sweep(asked(threads="64", oversubscribe=True))
    assert {point.threads for point in sweep.points} == {64}
    assert sweep.effort.oversubscribe


@pytest.mark.parametrize(
    ("text", "statuses"),
    [(None, None), ("none", ()), ("incorrect,oom", ("incorrect", "oom")), ("skipped", ("skipped",))],
)
def test_statuses_that_fail_a_point(text: str | None, statuses: tuple[str, ...] | None) -> None:
    """They are a comma list, `none` for none of them, and the rule's own where nothing is said."""
    assert options.fail_on(asked(fail_on=text)) == statuses


def test_the_folder_is_the_one_asked_for_or_a_new_one() -> None:
    """Without --run the folder is named by time and sweep under results/, where the user is."""
    sweep = load_sweep("article")
    assert options.run_folder(asked(run="there"), sweep.name) == Path("there")
    fresh = options.run_folder(asked(), sweep.name)
    assert fresh.parent == Path("results")
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


def test_a_race_goes_on_with_another_bound_and_more_time(tmp_path: Path) -> None:
    """With its sweep named and without; then what is not said is what the run began with.

    That it is no race any more makes it another run, which is said with both values.
    """
    begun = options.sweep(asked(sweep=None, bound=0.1, within_s=60.0))
    plan.save(begun, tmp_path)
    again = options.sweep(asked(run=str(tmp_path), sweep=None, bound="1%", within_s="10m"))
    assert again == dataclasses.replace(begun, effort=dataclasses.replace(begun.effort, bound=0.01, within_s=600))
    assert options.sweep(asked(run=str(tmp_path), sweep=None)).effort == begun.effort
    assert options.sweep(asked(run=str(tmp_path), sweep="quick", within_s="10m")).effort.within_s == 600
    line = refusal(options.sweep, asked(run=str(tmp_path), sweep=None, race=False))
    assert "race: True against False" in line
    assert "\n" not in line


def test_the_options_that_a_run_was_begun_with_are_accepted(tmp_path: Path) -> None:
    """With the default sweep and with a named one, whatever was changed in it."""
    for words in ({"num_tokens": "8,16"}, {"impl": "eager,sdpa", "processes": 2}, {"sweep": "article", "threads": "1"}):
        given = {"sweep": None, **words}
        begun = options.sweep(asked(**given))
        plan.save(begun, tmp_path)
        assert options.sweep(asked(**given, run=str(tmp_path))) == dataclasses.replace(begun, published=())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sweep": "article"}, "sweep: mine against article; points: 2 with .* against 2 with "),
        ({"impl": "sdpa,mha"}, "implementations: eager, sdpa against eager, sdpa, mha"),
        ({"processes": 9}, "processes: 2 against 9"),
        ({"num_tokens": "99"}, "points: 2 with .* against .*n99"),
    ],
)
def test_other_options_are_refused_with_two_ways_out(values: dict[str, Any], message: str, run: dict[str, Any]) -> None:
    """What is not said stays as the run has it."""
    with pytest.raises(WrongRequest, match=f"asked for: {message}.*; use a new folder, or --extend"):
        options.sweep(asked(**{**run, **values}))


def test_a_new_run_has_a_control_unless_the_options_say_no() -> None:
    """With a named sweep, and with the default one."""
    for name in ("article", None):
        assert options.sweep(asked(sweep=name)).control
        assert not options.sweep(asked(sweep=name, no_control=True)).control


def test_a_run_keeps_its_control(tmp_path: Path, run: dict[str, Any]) -> None:
    """An older run stays without one, whether or not the sweep is named; one that has it can't go on without it."""
    for values in ({}, {"no_control": True}):
        assert not options.sweep(asked(**run, **values)).control
    begun = options.sweep(asked())
    folder = tmp_path / "run"
    folder.mkdir()
    plan.save(dataclasses.replace(begun, control=False), folder)
    assert not options.sweep(asked(run=str(folder))).control
    plan.save(begun, folder)
    assert options.sweep(asked(run=str(folder), sweep=None)).control
    for name in ("article", None):
        with pytest.raises(WrongRequest, match="control: True against False"):
            options.sweep(asked(run=str(folder), sweep=name, no_control=True))


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


def test_a_shard_is_a_part_of_the_sweep(tmp_path: Path) -> None:
    """Its folder goes on with it, under the same name or none; another shard of the folder is refused with both."""
    part = options.sweep(asked(sweep="article", shard="1/2"))
    assert (str(part.shard), len(part.whole)) == ("1/2", len(options.sweep(asked(sweep="article")).points))
    assert {*part.points} < {*part.whole}
    plan.save(part, tmp_path)
    for again in ({"sweep": None}, {"sweep": None, "shard": "1/2"}, {"shard": "1/2"}):
        assert options.sweep(asked(run=str(tmp_path), **again)).points == part.points
    with pytest.raises(WrongRequest, match="shard: 1/2 against 2/2"):
        options.sweep(asked(run=str(tmp_path), sweep="article", shard="2/2"))
    with pytest.raises(WrongRequest, match="--shard 5/4 must be I/N"):
        options.sweep(asked(shard="5/4"))
