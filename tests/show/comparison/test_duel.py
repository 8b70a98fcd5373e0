"""The output of a duel: in a terminal, as Markdown and as JSON."""

import json
import math
import re
from typing import Any

import pytest

from bench.analyse.change import Change
from bench.analyse.duel import Outcome
from bench.plan.case import AFTER, BEFORE
from bench.plan.sides import DIFFER, SAME
from bench.plan.verdicts import DIFFERENT, OF_SIDES, OPEN, SLOWER
from bench.show.comparison.duel import as_json, blocks, headline
from bench.show.markdown import MOST_CHARACTERS, markdown
from bench.show.terminal.console import rendered
from tests.make.duels import EQUAL, FAST, LOST, SLOW, UNSURE, ended, of, outcome

COMMAND = "python -m bench duel timm:davit_tiny --checkout .@main --checkout ."


def said(of: Outcome, width: int = 200, *doubts: str) -> str:
    """Return the output in a terminal."""
    return rendered(blocks(of, COMMAND, doubts), width=width)


def facts(of: Outcome, what: str) -> list[str]:
    """Return the lines of a terminal that say something of this."""
    return [line for line in said(of, 500).splitlines() if line.strip(" -•").startswith(what)]


# the answer


@pytest.mark.parametrize("each", [of(*FAST), of(*EQUAL), of(*UNSURE), of(*SLOW), *LOST], ids=lambda of: of.verdict)
def test_the_answer_comes_first_everywhere(each: Change) -> None:
    """The terminal, the comment and the JSON begin with the same sentence."""
    shown = outcome(each)
    answer = headline(shown)
    assert answer[0].isupper()
    assert not answer.endswith((": ", ":"))
    assert said(shown).startswith(answer)
    assert markdown(blocks(shown, COMMAND)).replace("\\", "").startswith(f"**{answer}**")
    assert json.loads(as_json(shown, COMMAND))["headline"] == answer


def test_no_two_verdicts_read_alike_and_sides_that_are_implementations_are_named() -> None:
    """Without their numbers and reasons the answers still differ; a name of code keeps its letters."""
    changes = [of(*FAST), of(*EQUAL), of(*UNSURE), of(*SLOW), *LOST[:2]]
    assert len({headline(outcome(each)).partition(":")[0] for each in changes}) == len(OF_SIDES)
    answers = [headline(outcome(each, names=("eager", "mine:attend"))) for each in changes]
    assert all("mine:attend" in answer for answer in answers)
    assert ["eager" in answer for answer in answers] == [True] * 5 + [False]


def test_the_answer_on_one_point_has_the_ratio_and_the_memory() -> None:
    """Memory that isn't known is not mentioned."""
    ends = {690: "; 31% less memory", 1310: "; 31% more memory", 1001: "; the same memory", None: "]"}
    answers = {headline(outcome(of(*FAST, memory_bytes=memory))): end for memory, end in ends.items()}
    assert all("1.50x [1.40, 1.60]" in answer and answer.endswith(end) for answer, end in answers.items())


def test_what_is_not_decided_may_take_longer() -> None:
    """The answer has the time that it took, and nothing foretells how long it takes."""
    assert "40s" in headline(outcome(of(*UNSURE)))
    undecided = [outcome(of(*UNSURE)), outcome(of(*SLOW), allow=0.05), outcome(of(1.1, math.nan, math.nan))]
    decided = [outcome(of(*SLOW)), outcome(of(*UNSURE), LOST[0])]
    for each in (*undecided, *decided):
        assert ("A longer --within may decide." in said(each)) == (each in undecided)
        assert "nan" not in said(each)


def test_one_answer_over_all_points_names_the_worst() -> None:
    """With its point and the number of points, and the verdicts on the others."""
    answer = headline(outcome(of(*FAST), of(*SLOW, tokens=9), of(*EQUAL, tokens=11)))
    assert all(words in answer for words in ("at 1 of 3 points", "at worst 0.950x", "at N=9; faster than before at 1"))
    lost = outcome(of(*FAST), ended("skipped", "crashed", tokens=9), ended("skipped", "incorrect", tokens=11))
    assert "after incorrect: (*because*)" in headline(lost)
    below = said(lost).splitlines()
    assert "N=9: after: after crashed: (*because*)" in below
    assert "N=11: before" not in said(lost)  # the headline says why


def test_what_is_allowed_is_said_beside_the_answer() -> None:
    """There are three answers, each with the given share; limits that aren't kept name the points."""
    of_each = [outcome(of(*FAST), of(*each, tokens=9), allow=0.0125) for each in (EQUAL, UNSURE, SLOW)]
    lines = [said(each).splitlines()[1] for each in of_each]
    assert all("1.25%" in line for line in lines)
    assert ["N=9" in line for line in lines] == [False, True, True]
    assert len({*lines}) == 3
    assert "1.25%" not in said(outcome(of(*FAST)))


def test_outputs_that_were_not_compared_are_said_first() -> None:
    """Two different layers don't count."""
    for allow in (None, 0.5):
        shown = outcome(of(*FAST), weights=DIFFER, allow=allow)
        assert headline(shown).endswith("Weights differ, so outputs were not compared")
        assert ("because outputs must be compared" in said(shown)) == (allow is not None)
    assert "Weights" not in headline(outcome(of(*FAST), weights=None))


# facts


def test_kernels_of_one_side_alone_and_the_largest_error_are_said() -> None:
    """Nothing is said of kernels that both ran, of a side without a time, or of outputs that were not compared."""
    shown = outcome(of(*FAST, kernels="aten::bmm;aten::_flash_attention"), of(*FAST, tokens=9))
    assert facts(shown, "kernels") == ["kernels only in after: aten::_flash_attention"]
    assert [*facts(outcome(of(*FAST)), "kernels"), *facts(outcome(LOST[0]), "kernels")] == []
    judged = of(*FAST, error=2e-7, tolerance=1e-5), of(*FAST, tokens=9, error=4e-7, tolerance=1e-5)
    lines = [facts(outcome(*judged, weights=way), "outputs") for way in (SAME, DIFFER, None)]
    assert ["4e-07" in "".join(each) for each in lines] == [True, False, False]
    assert [len(each) for each in lines] == [1, 0, 1]


def side(torch: str = "2.13.0", commit: str = "", **digests: str) -> dict[str, Any]:
    """Return a side with packages as environment.json has it."""
    package = {"file": "mylib/__init__.py", "version": "1.0", "commit": commit}
    packages = {name: {**package, "digest": digest} for name, digest in digests.items()}
    given = {"implementation": "as_is", "layer": "mylib:A", "checkout": f"../mylib@{commit}"}
    return {"given": given, "torch": torch, "python": "3.11.7", "packages": packages}


def test_the_code_of_each_side_is_said() -> None:
    """The output has the request, its commit, and the versions of torch and of packages."""
    shown = outcome(of(*FAST), sides={BEFORE: side(commit="abc", mylib="1"), AFTER: side("2.14.0", mylib="2")})
    for name, words in ((BEFORE, ("mylib:A", "../mylib@abc", "commit abc", "torch 2.13.0")), (AFTER, ("2.14.0",))):
        (line,) = [line for line in facts(shown, f"{name}: ") if "torch" in line]
        assert all(each in line for each in words)
    assert "A CPU, 2 cores" in facts(shown, "machine")[0]


@pytest.mark.parametrize(
    ("after", "is_same"),
    [
        (side(commit="abc", mylib="1"), True),
        (side(mylib="2"), False),
        (side("2.14.0", mylib="1"), False),
        (side(mylib="1", timm="3"), False),
        ({**side(mylib="1"), "given": {"implementation": "sdpa", "layer": "mylib:A"}}, False),
    ],
)
def test_sides_of_the_same_code_are_told(after: dict[str, Any], *, is_same: bool) -> None:
    """Another checkout or commit of the same sources isn't a difference; the line is not folded, like doubts."""
    shown = outcome(of(*FAST), sides={BEFORE: side(mylib="1"), AFTER: after})
    above, _, _ = markdown(blocks(shown, COMMAND, ["A doubt."])).partition("<details>")
    assert "A doubt." in above
    assert ("Both sides have the same code." in above) == is_same


# its forms


def test_the_comment_has_a_row_for_each_point_and_two_folds() -> None:
    """Every row has as many cells as the heading, and all of it fits into a comment.

    A revision after an @ doesn't mention a user.
    """
    sides = {name: side(commit=name, mylib=name) for name in (BEFORE, AFTER)}
    many = [of(*FAST, tokens=5 + number) for number in range(3)]
    shown = outcome(*many, ended("ok", "incorrect", tokens=20), allow=0.02, sides=sides)
    text = markdown(blocks(shown, COMMAND))
    above, facts_of, again = text.split("<details>")
    table = [line for line in above.splitlines() if line.startswith("|")]
    assert len(table) == 2 + 4
    assert len({line.count("|") for line in table}) == 1
    assert [fold.count("</details>") for fold in (facts_of, again)] == [1, 1]
    assert COMMAND in again
    assert not any("@" in line for line in re.sub("`[^`]*`", "", text).splitlines())
    assert r"(\*because\*)" in above
    assert len(text) < MOST_CHARACTERS


def test_json_has_null_for_what_is_not_known() -> None:
    """Its numbers come from the changes, and it is strict JSON."""
    shown = outcome(of(*SLOW, memory_bytes=500), of(1.1, math.nan, math.inf, tokens=9), LOST[0], allow=0.02)
    content = json.loads(as_json(shown, COMMAND))
    slow, unknown, lost = content["points"]
    assert [each["verdict"] for each in (slow, unknown, lost)] == [SLOWER, OPEN, DIFFERENT]
    assert (slow["speedup"], slow["speedup_low"], slow["speedup_high"], slow["memory_ratio"]) == (*SLOW, 0.5)
    assert (unknown["speedup_low"], unknown["speedup_high"], lost["speedup"]) == (None, None, None)
    assert slow["point"]["num_tokens"] == 7
    assert (lost["after"]["status"], lost["after"]["kernels"]) == ("incorrect", [])
    assert slow["after"]["kernels"] == ["aten::bmm", "aten::_softmax"]
    assert (content["verdict"], content["command"], content["weights"]) == (DIFFERENT, COMMAND, SAME)
    assert (content["allow"], content["allowed"]) == (0.02, None)
