"""What a duel says of its verdicts: in a terminal, as Markdown and as JSON."""

import dataclasses
import json
import math
import re
from typing import Any

import pytest

from bench.analyse.change import Change
from bench.analyse.verdict import change
from bench.plan.case import AFTER, BEFORE, Case
from bench.plan.sides import DIFFER, SAME
from bench.plan.verdicts import DIFFERENT, FASTER, OF_SIDES, OPEN, SLOWER
from bench.show.comparison.duel import Told, as_json, blocks, differences, headline
from bench.show.markdown import MOST_CHARACTERS, markdown
from bench.show.terminal.console import rendered
from bench.show.text import faster
from bench.store.environment import Environment
from tests.make.points import point

BOUND = 0.01
IDENTITY = {"cpu": "A CPU", "cores": 2, "torch": "2.13.0", "python": "3.11.7"}
COMMAND = "python -m bench duel timm:davit_tiny --checkout .@main --checkout ."

FAST, EQUAL, UNSURE, SLOW = (1.5, 1.4, 1.6), (1.0, 0.995, 1.005), (0.99, 0.94, 1.04), (0.95, 0.94, 0.96)


def row(name: str, status: str = "ok", **changes: Any) -> dict[str, Any]:
    """Return the row of a side."""
    values = {
        "baseline": BEFORE,
        "latency_s": 1e-3,
        "memory_bytes": 1000,
        "processes": 3,
        "kernels": "aten::bmm;aten::_softmax",
    }
    of_status = values if status == "ok" else {"detail": f"{name} {status}: (*because*)"}
    return {"implementation": name, "status": status, "detail": None, **of_status, **changes}


def of(*speedup: float, tokens: int = 7, **changes: Any) -> Change:
    """Return the verdict on a side with this speed-up; changes are those of its row."""
    ends = dict(zip(("speedup", "speedup_low", "speedup_high"), speedup, strict=False))
    return change(point(num_tokens=tokens), [row(BEFORE), row(AFTER, **{**ends, **changes})], BEFORE, AFTER, BOUND)


def ended(before: str, after: str, tokens: int = 7) -> Change:
    """Return the verdict on sides with these statuses."""
    return change(point(num_tokens=tokens), [row(BEFORE, before), row(AFTER, after)], BEFORE, AFTER, BOUND)


LOST = (ended("ok", "incorrect"), ended("skipped", "crashed"), ended("oom", "skipped"), of())
"""The second side is different, or one has no time, or both have one but from different replicates."""


def told(*changes: Change, sides: dict[str, Any] | None = None, weights: str | None = SAME, **others: Any) -> Told:
    """Return what is known at the end of a duel of 40 seconds."""
    here = Environment(IDENTITY, {}, {"weights": weights, **({"sides": sides} if sides else {})})
    return dataclasses.replace(Told(changes, BEFORE, AFTER, here, COMMAND, BOUND, 40.0), **others)


def said(of: Told, width: int = 200) -> str:
    """Return what a terminal shows."""
    return rendered(blocks(of), width=width)


def test_medians_that_contradict_the_speedup_have_their_reason_beside_them() -> None:
    """In the terminal and in the comment; those that agree with the ratio, or may, have none."""
    opposed = told(of(*FAST, latency_s=1.03e-3))
    assert "contradict the speed-up" in said(opposed)
    assert "contradict the speed-up" in markdown(blocks(opposed)).partition("<details>")[0]
    for each in (of(*FAST, latency_s=0.97e-3), of(*UNSURE, latency_s=1.03e-3), of(*SLOW), *LOST):
        assert "contradict the speed-up" not in said(told(each))


@pytest.mark.parametrize("low", [0.9455, 0.94498, 0.8849, 0.98983, 0.3731])
def test_a_pair_has_one_bound_everywhere(low: float) -> None:
    """The headline has the bound that a run has of the same pair, and it follows from the figure beside it."""
    answer = headline(told(of(0.995, low, 1.04)))
    (bound,) = re.findall(r"at most ([\d.]+)", answer)
    (shown,) = re.findall(r"\[([\d.]+), ", answer)
    assert f" {bound}" in faster(1 / low)
    assert f" {bound}" in faster(1 / float(shown))


def test_a_bound_beside_an_allowance_that_is_not_met_is_not_equal_to_it() -> None:
    """An allowance has the digits that it was given with, and a bound enough to be on its side of it."""
    close = said(told(of(1.0, 0.98983, 1.011), allow=0.01))
    assert "at most 1.1% slower" in close
    kept = said(told(of(0.995, 1 / 1.1235, 1.04), allow=0.125))
    assert "at most 12.4% slower" in kept
    assert "12.5% slower is allowed: kept" in kept


# the answer


@pytest.mark.parametrize("each", [of(*FAST), of(*EQUAL), of(*UNSURE), of(*SLOW), *LOST], ids=lambda of: of.verdict)
def test_the_answer_comes_first_everywhere(each: Change) -> None:
    """The terminal, the comment and the JSON begin with the same sentence."""
    of_one = told(each)
    answer = headline(of_one)
    assert answer[0].isupper()
    assert not answer.endswith((": ", ":"))
    assert said(of_one).startswith(answer)
    assert markdown(blocks(of_one)).replace("\\", "").startswith(f"**{answer}**")
    assert json.loads(as_json(of_one))["headline"] == answer


def test_no_two_verdicts_read_alike() -> None:
    """Without their numbers and reasons the answers still differ."""
    answers = [headline(told(each)).partition(":")[0] for each in (of(*FAST), of(*EQUAL), of(*UNSURE), of(*SLOW))]
    answers += [headline(told(each)).partition(":")[0] for each in LOST[:2]]
    assert len({*answers}) == len(OF_SIDES)


def test_a_side_that_is_an_implementation_is_named() -> None:
    """A name of code keeps its letters."""
    answer = headline(told(of(*FAST), before="eager", after="mine:attend"))
    assert answer.startswith("mine:attend is ")
    assert "eager" in answer


@pytest.mark.parametrize(
    ("memory", "words"), [(690, "31% less memory"), (1310, "31% more memory"), (1001, "the same memory"), (None, "")]
)
def test_the_answer_on_one_point_has_the_ratio_and_the_memory(memory: int | None, words: str) -> None:
    """Memory that isn't known is not mentioned."""
    answer = headline(told(of(*FAST, memory_bytes=memory)))
    assert "1.50x [1.40, 1.60]" in answer
    assert answer.endswith(f" {words}" if words else "]")
    assert ("memory" in answer) == bool(words)


def test_an_open_answer_says_how_well_it_is_known_and_what_decides() -> None:
    """The proposed time is no less than what is needed; without any knowledge of it none is proposed."""
    answer = headline(told(of(*UNSURE), needed_s=107.0))
    assert "40s" in answer
    ((number, unit),) = re.findall(r"--within (\d+)([sm])", answer)
    assert int(number) * {"s": 1, "m": 60}[unit] >= 107
    assert "--within" not in headline(told(of(*UNSURE)))
    assert "--within" not in headline(told(of(*SLOW), needed_s=107.0))
    unknown = told(of(1.1, math.nan, math.nan))
    assert unknown.worst.verdict == OPEN
    assert "nan" not in said(unknown)


@pytest.mark.parametrize(
    ("verdicts", "kind", "label", "ratio"),
    [
        ([of(*FAST), of(1.2, 1.1, 1.3, tokens=9)], FASTER, "N=9", "1.20x"),
        ([of(*FAST), of(*SLOW, tokens=9), of(0.9, 0.89, 0.91, tokens=11)], SLOWER, "N=11", "0.900x"),
        ([of(*FAST), of(*UNSURE, tokens=9), of(*EQUAL, tokens=11)], OPEN, "N=9", "0.99x"),
    ],
    ids=lambda of: of if isinstance(of, str) else "",
)
def test_one_answer_over_all_points_is_the_worst(verdicts: list[Change], kind: str, label: str, ratio: str) -> None:
    """The answer names the point, and how many there are."""
    of_all = told(*verdicts)
    assert of_all.worst.verdict == kind
    answer = headline(of_all)
    assert all(words in answer for words in (label, ratio, str(len(verdicts))))


def test_a_point_without_a_result_is_worse_than_any_time() -> None:
    """The reason is in the answer, and in a list that names point and side, but not who was skipped for another."""
    lost = told(of(*FAST), ended("skipped", "crashed", tokens=9), ended("ok", "incorrect", tokens=11))
    assert lost.worst.verdict == DIFFERENT
    assert "after incorrect: (*because*)" in headline(lost)
    lines = said(lost).splitlines()
    listed = [line for line in lines if "because" in line][1:]
    assert [line.partition("N=")[2].split(":")[0] for line in listed] == ["9", "11"]
    assert not any("before skipped" in line for line in lines)


# what ends with 1


@pytest.mark.parametrize(
    ("verdicts", "allow", "is_bad", "allowed"),
    [
        ([of(*FAST), of(*EQUAL)], 0.02, False, "kept"),
        ([of(*SLOW)], None, False, None),
        ([of(*SLOW)], 0.02, True, "exceeded"),
        ([of(*SLOW)], 0.07, False, "kept"),
        ([of(*FAST), of(*SLOW, tokens=9)], 0.02, True, "exceeded"),
        ([of(*UNSURE)], 0.02, False, "not decided"),
        *[([of(*FAST), each], allow, True, None) for each in LOST for allow in (None, 0.5)],
    ],
)
def test_what_is_bad(verdicts: list[Change], allow: float | None, is_bad: bool, allowed: str | None) -> None:
    """Another function and a side without a time, and of times only one that is shown to be beyond what is allowed."""
    of_all = told(*verdicts, allow=allow)
    assert of_all.is_bad == is_bad
    assert json.loads(as_json(of_all))["allowed"] == allowed


def test_what_is_allowed_is_said_beside_the_answer() -> None:
    """Three answers to it, each with the share; those that aren't kept or aren't decided name the points."""
    of_each = [told(of(*FAST), of(*each, tokens=9), allow=0.03) for each in (EQUAL, UNSURE, SLOW)]
    lines = [said(each).splitlines()[1] for each in of_each]
    assert all("3%" in line for line in lines)
    assert ["N=9" in line for line in lines] == [False, True, True]
    assert len({*lines}) == 3
    assert "3%" not in said(told(of(*FAST)))


# facts


def test_kernels_are_said_before_and_after() -> None:
    """Once if they are the same, that of the core first; other points have other lines, what has no time has none."""
    new = of(*FAST, kernels="aten::_flash_attention")
    (line,) = facts(told(new), "kernels")
    assert line.index("aten::bmm") < line.index("aten::_flash_attention")
    (line,) = facts(told(of(*FAST)), "kernels")
    assert line.count("aten::bmm, aten::_softmax") == 1
    assert len(facts(told(new, of(*FAST, tokens=9)), "kernels")) == 2
    assert facts(told(of(*FAST), LOST[0]), "kernels") == [line]
    assert not facts(told(ended("oom", "skipped")), "kernels")
    row = {**of(*FAST).base, "kernels": "conv;cat;add;norm;addmm;gelu;mean;_flash_attention"}
    (line,) = facts(told(dataclasses.replace(of(*FAST), base=row, new=row)), "kernels")
    assert "in both _flash_attention, conv, cat, add, norm, addmm …" in line


def facts(of: Told, what: str) -> list[str]:
    """Return the lines of a terminal that say something of this."""
    return [line for line in said(of, 500).splitlines() if line.strip(" -•").startswith(what)]


def test_what_was_judged_is_said() -> None:
    """The largest error beside its tolerance, if anything was judged."""
    judged = of(*FAST, error=2e-7, tolerance=1e-5), of(*FAST, tokens=9, error=4e-7, tolerance=1e-5)
    lines = [line for way in (SAME, DIFFER, None) for line in facts(told(*judged, weights=way), "function")]
    assert len({*lines}) == 3
    assert ["4e-07" in line for line in lines] == [True, False, False]
    train = of(*FAST, error=2e-7, tolerance=1e-5)
    train = dataclasses.replace(train, case=Case(dataclasses.replace(train.point, mode="train"), AFTER))
    assert "gradients" in facts(told(train), "function")[0]


@pytest.mark.parametrize("allow", [None, 0.5])
def test_outputs_that_were_not_compared_are_said_first(allow: float | None) -> None:
    """A gate doesn't let them pass; two layers are no such case."""
    of_one = told(of(*FAST), weights=DIFFER, allow=allow)
    assert headline(of_one).endswith("Weights differ: outputs not compared")
    assert of_one.is_bad is (allow is not None)
    assert json.loads(as_json(of_one))["weights"] == DIFFER
    assert not told(of(*FAST), weights=None, allow=0.5).is_bad


def test_the_setting_of_memory_is_said_in_words() -> None:
    """A user's program has the C library's defaults, with which the difference can be another one."""
    kept = told(of(*FAST))
    assert "C library's defaults" in said(kept, 500)
    comment = markdown(blocks(kept)).partition("<details>")
    assert ["--allocator system" in part for part in (comment[0], comment[2])] == [True, False]
    usual = of(*FAST)
    usual = dataclasses.replace(usual, case=Case(dataclasses.replace(usual.point, allocator="system"), AFTER))
    assert "C library" not in said(told(usual), 500)


def package(digest: str, version: str = "1.0", commit: str = "") -> dict[str, str]:
    """Return a package as environment.json has it."""
    return {"file": "mylib/__init__.py", "digest": digest, "version": version, "commit": commit}


GIVEN = {"implementation": "as_is", "layer": "mylib:A"}


def side(torch: str = "2.13.0", **packages: dict[str, str]) -> dict[str, Any]:
    """Return a side as environment.json has it."""
    return {"given": dict(GIVEN), "torch": torch, "python": "3.11.7", "packages": packages}


def test_the_code_of_each_side_is_said() -> None:
    """What was asked for, its commit, and the versions of torch and of packages."""
    sides = {
        BEFORE: {**side(mylib=package("1", "", "abc")), "given": {**GIVEN, "checkout": "../mylib@main"}},
        AFTER: {**side("2.14.0", mylib=package("2", "1.1")), "given": {**GIVEN, "checkout": "../mylib"}},
    }
    of_sides = told(of(*FAST), sides=sides)
    for name, words in (
        (BEFORE, ("mylib:A", "../mylib@main", "commit abc", "torch 2.13.0")),
        (AFTER, ("mylib:A", "../mylib", "torch 2.14.0", "mylib 1.1")),
    ):
        (line,) = [line for line in facts(of_sides, f"{name}: ") if "torch" in line]
        assert all(each in line for each in words)
    assert "No difference" not in said(of_sides)
    assert "A CPU, 2 cores" in facts(of_sides, "machine")[0]


def test_a_duel_on_a_gpu_names_it_and_says_what_nobody_sees() -> None:
    """The machine line has the card, and launch-bound sides that who calls them waits for the host."""

    def on_gpu(host_s: float, tokens: int = 7) -> Change:
        at = point(num_tokens=tokens, device="cuda", timing="device-cold")
        columns: dict[str, Any] = {"host_s": host_s, "timing": at.timing}
        sides = [row(BEFORE, **columns), row(AFTER, speedup=1.5, speedup_low=1.4, speedup_high=1.6, **columns)]
        return change(at, sides, BEFORE, AFTER, BOUND)

    here = Environment({**IDENTITY, "gpus": {"cuda:0": "A GPU 80 GiB"}}, {}, {"weights": SAME})
    text = said(dataclasses.replace(told(on_gpu(2e-3), on_gpu(1e-4, tokens=9)), here=here))
    assert "machine: A GPU 80 GiB, A CPU" in text
    assert "At 1 of 2 points the host needs 2.00 ms to queue a call" in text
    assert "the host needs" not in said(dataclasses.replace(told(on_gpu(1e-4)), here=here))


def test_what_weakens_the_answer_stands_below_it() -> None:
    """A machine that wasn't quiet and sides of the same code are said outside of the fold; a quiet one is a fact."""
    same = {BEFORE: side(), AFTER: side()}
    busy = told(of(*FAST), sides=same, machine=(False, "The machine was not quiet."))
    above, _, _ = markdown(blocks(busy)).partition("<details>")
    assert "not quiet" in above
    assert "No difference" in above
    assert facts(told(of(*FAST), machine=(True, "The machine was quiet.")), "control")


@pytest.mark.parametrize(
    ("before", "after", "differing"),
    [
        (side(mylib=package("1")), side(mylib=package("1", "1.1")), []),
        (side(mylib=package("1")), side(mylib=package("2")), ["mylib"]),
        (side("2.12.0"), side(), ["torch"]),
        (side(), side(timm=package("3")), ["timm"]),
        (side(), {**side(), "given": {**GIVEN, "layer": "mylib:B"}}, ["layer"]),
    ],
)
def test_sides_differ_in_sources_and_not_in_names_of_versions(
    before: dict[str, Any], after: dict[str, Any], differing: list[str]
) -> None:
    """A version that was raised without a change is no difference."""
    assert differences({BEFORE: before, AFTER: after}) == differing


# its forms


def test_the_comment_has_a_row_for_each_point_and_two_folds() -> None:
    """Every row has as many cells as the heading; the commands of all and of each point are in a fold.

    All of it fits into a comment.

    A revision behind an @ mentions nobody.
    """
    sides = {name: {**side(), "given": {**GIVEN, "checkout": f"../timm@{name}"}} for name in (BEFORE, AFTER)}
    many = [of(*FAST, tokens=5 + number) for number in range(3)]
    text = markdown(blocks(told(*many, ended("ok", "incorrect", tokens=20), allow=0.02, sides=sides)))
    above, facts_of, again = text.split("<details>")
    table = [line for line in above.splitlines() if line.startswith("|")]
    assert len(table) == 2 + 4
    assert len({line.count("|") for line in table}) == 1
    assert [fold.count("</details>") for fold in (facts_of, again)] == [1, 1]
    assert again.rstrip().endswith("</details>")
    assert COMMAND in again
    assert ".@main" in COMMAND
    assert not any("@" in line for line in re.sub("`[^`]*`", "", text).splitlines())
    assert r"(\*because\*)" in above
    assert len(text) < MOST_CHARACTERS


def test_json_has_null_for_what_is_not_known() -> None:
    """The output's numbers are those of the verdicts, and it is JSON in the strict sense."""
    content = json.loads(as_json(told(of(*SLOW, memory_bytes=500), of(1.1, math.nan, math.inf, tokens=9), LOST[0])))
    slow, unknown, lost = content["points"]
    assert [each["verdict"] for each in (slow, unknown, lost)] == [SLOWER, OPEN, DIFFERENT]
    assert (slow["speedup"], slow["speedup_low"], slow["speedup_high"], slow["memory_ratio"]) == (*SLOW, 0.5)
    assert (unknown["speedup_low"], unknown["speedup_high"], lost["speedup"]) == (None, None, None)
    assert slow["point"]["num_tokens"] == 7
    assert (lost["after"]["status"], lost["after"]["kernels"]) == ("incorrect", [])
    assert slow["after"]["kernels"] == ["aten::bmm", "aten::_softmax"]
    assert (content["verdict"], content["command"]) == (DIFFERENT, COMMAND)


@pytest.mark.parametrize("width", [80, 100])
def test_a_narrow_terminal_shows_the_verdicts(width: int) -> None:
    """No line of the table is longer than the terminal, and no verdict is cut."""
    lines = said(told(of(*FAST), of(*SLOW, tokens=9)), width).splitlines()
    assert max(map(len, lines)) <= width
    for tokens, kind in ((7, FASTER), (9, SLOWER)):
        assert any(line.startswith(f"N={tokens} ") and kind in line for line in lines)
