"""Reasons of failures, and what fails a point."""

import re

import pytest

from bench.plan.case import CONTROL, Case
from bench.plan.sweep import Sweep
from bench.show.answer import points_of
from bench.show.failures import blocks, failing, of_baseline, reasons, sentence, told
from bench.show.rows import Row
from bench.show.terminal.console import rendered
from tests.make.points import vit_s
from tests.make.results import quick, results, timed

OK, MHA = ("eager", "ok", ""), ("mha", "unsupported", "needs an even number of heads")
OWN_WRONG, OWN_UNSUPPORTED = ("mykernel:adapt", "incorrect", "is off by 0.1"), ("mykernel:adapt", "unsupported", "no")
Ended = tuple[str, str, str]


def rows(*cases: Ended) -> list[Row]:
    """Return rows of implementation, status and detail."""
    return [{**Case(vit_s(), name).columns(), "status": status, "detail": detail} for name, status, detail in cases]


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ([OK], []),
        ([OK, MHA], []),
        ([OK, ("sdpa", "incorrect", "is off")], []),
        ([OK, ("mykernel:adapt", "ok", "")], []),
        ([OK, OWN_WRONG, MHA], ["mykernel:adapt incorrect: is off by 0.1"]),
        ([OK, OWN_UNSUPPORTED], ["mykernel:adapt unsupported: no"]),
        ([OK, ("installed", "crashed", "")], ["installed crashed"]),
        ([MHA, ("mha_weights", *MHA[1:])], []),
        (
            [("eager", "oom", "no memory"), ("sdpa", "oom", "no memory"), MHA],
            [
                "eager, sdpa oom: no memory",
                "mha unsupported: needs an even number of heads",
            ],
        ),
    ],
)
def test_by_default_an_own_implementation_that_is_not_ok_fails(cases: list[Ended], expected: list[str]) -> None:
    """A point where nothing could be measured fails too; a shipped implementation beside one that is ok doesn't."""
    assert [str(reason) for reason in failing(rows(*cases), None, lacks_device=False)] == expected


@pytest.mark.parametrize("status", ["crashed", "incorrect", "error", "timeout", "fallback"])
def test_a_baseline_that_failed_fails(status: str) -> None:
    """Nothing has a speed-up then, though another implementation is ok; as a rival of the baseline it fails nothing."""
    ended = rows(OK, ("sdpa", status, "why"))
    assert [reason.brief for reason in failing(ended, None, lacks_device=False, baseline="sdpa")] == [f"sdpa {status}"]
    assert failing(ended, None, lacks_device=False, baseline="eager") == []
    (said,) = of_baseline([ended], "sdpa")
    assert all(word in said for word in ("baseline sdpa failed", "no speed-ups", f"{status}: why"))
    assert " of " not in said
    assert " 1 of 2 points" in of_baseline([ended, rows(OK)], "sdpa")[0]


@pytest.mark.parametrize("status", ["unsupported", "oom", "skipped"])
def test_a_baseline_without_any_time_is_told(status: str) -> None:
    """It is no failure, but nothing has a speed-up: with its reason, and not where it has a time somewhere."""
    ended = rows(OK, ("sdpa", status, "why"))
    (said,) = of_baseline([ended, ended], "sdpa")
    assert all(word in said for word in ("baseline sdpa", "all 2 points", "no speed-ups", f"{status}: why"))
    assert "failed" not in said
    assert "all" not in of_baseline([ended, []], "sdpa")[0]
    for known in (rows(OK, ("sdpa", "ok", "")), rows(("sdpa", "ok", ""))):
        assert of_baseline([ended, known], "sdpa") == []
    assert of_baseline([rows(("sdpa", status, "why"))], "sdpa") == []


@pytest.mark.parametrize("status", ["ok", "oom", "unsupported", "skipped"])
def test_a_baseline_without_memory_or_that_was_not_tried_fails_nothing(status: str) -> None:
    """That is what the run has found out of it, or what was asked for."""
    ended = rows(OK, ("sdpa", status, "why"))
    assert failing(ended, None, lacks_device=False, baseline="sdpa") == []


def test_a_device_that_is_not_there_fails() -> None:
    """All are unsupported then, which would be fine for a layer that no implementation can express."""
    without = rows(*((name, "unsupported", "no CUDA device") for name in ("eager", "sdpa")))
    (reason,) = failing(without, None, lacks_device=True)
    assert (str(reason), reason.brief) == ("eager, sdpa unsupported: no CUDA device", "eager, sdpa unsupported")
    assert failing(without, None, lacks_device=False) == []


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([], []),
        (["incorrect"], ["mykernel:adapt"]),
        (["unsupported"], ["mha"]),
        (["unsupported", "incorrect", "oom"], ["mykernel:adapt", "mha"]),
        (["oom"], []),
    ],
)
def test_statuses_replace_the_rule(statuses: list[str], expected: list[str]) -> None:
    """What is asked for holds for shipped implementations and for a user's own alike, and nothing else does."""
    bad = failing(rows(OK, OWN_WRONG, MHA), statuses, lacks_device=True)
    assert [name for reason in bad for name in reason.names] == expected


def test_a_reason_names_all_that_share_it_at_the_same_points() -> None:
    """The reason's detail is one line, and the number of points is said."""
    lost = [("sdpa", "oom", "80\nGiB"), ("mha", "oom", "80 GiB"), ("flex", "error", "")]
    of = reasons([*rows(*lost), *[{**row, "num_tokens": 5} for row in rows(*lost[:2])]])
    assert [str(each) for each in of] == ["sdpa, mha oom: 80 GiB (at 2 points)", "flex error"]


def test_each_reason_is_told_once_with_its_points() -> None:
    """Of many reasons none is left out; numbers alone make no other reason, and points are named, or many counted."""
    at = [vit_s(num_tokens=tokens) for tokens in (5, 7, 9, 11, 13, 15)]
    ends = [("sdpa", f"off by 0.{n}") if n < 2 else ("mha", "no memory") for n in range(len(at))]
    lost = [
        {**Case(each, name).columns(), "status": "error", "detail": detail}
        for each, (name, detail) in zip(at, ends, strict=True)
    ]
    more = [{**Case(at[0], f"k{n}").columns(), "status": "error", "detail": "abcdefghij"[n]} for n in range(9)]
    labels = {each: f"N={each.num_tokens}" for each in at}
    first, second, *others = told(reasons([*lost, *more]), labels)
    assert first == "sdpa at N=5 and N=7: error: off by 0.0 (elsewhere with other numbers)"
    assert second == "mha at N=9, N=11, N=13 and N=15: error: no memory"
    assert others == [f"k{n} at N=5: error: {'abcdefghij'[n]}" for n in range(9)]
    assert told(reasons(lost[2:3]), {at[2]: "N=9"}) == ["mha: error: no memory"]
    every = [{**row, "implementation": "eager", "detail": "no"} for row in lost]
    assert told(reasons(every), labels) == ["eager at all 6 points: error: no"]


def test_failures_are_counted_by_status_and_implementation() -> None:
    """What was never tried comes last; that all went well is said too."""
    assert sentence(points_of(quick())).startswith(
        "2 of 84 cases (12 points × 7 implementations) have no time: 2 unsupported (mha at 2 points)"
    )
    cases = [Case(vit_s(), name) for name in ("eager", "sdpa", "mha")]
    table = results(cases, {cases[0]: ("skipped", ""), cases[1]: ("oom", "")})
    assert sentence(points_of(table)).endswith("no time: 1 oom (sdpa at 1 point); 1 skipped (eager at 1 point).")
    assert sentence(points_of(timed([vit_s()], {"eager": 1.0, "sdpa": 1.0}))) == "All 2 cases were measured."


def test_all_failures_are_listed_each_reason_once() -> None:
    """What was never tried stands apart, and so does what was measured with a doubt; brackets are no markup."""
    at = (vit_s(), vit_s(num_tokens=50))
    cases = [Case(each, name) for each in at for name in ("eager", "sdpa", "mha", "flex")]
    fates = dict.fromkeys((cases[0], cases[1], cases[5]), ("oom", "[80] GiB"))
    fates |= {cases[2]: ("timeout", "after 300 s"), cases[3]: ("unsupported", "no bias")}
    table = results(cases, fates)
    table.loc[table["implementation"].eq("mha") & table["status"].eq("ok"), "detail"] = "crashed: killed"
    failed, untried = rendered(blocks(table)).split("not tried: 1 case\n")
    assert failed.startswith("failed: 4 cases\n")
    assert re.search(r"timeout +mha +after 300 s; at N=197\n", failed)
    assert re.search(r"oom +eager +\[80\] GiB; at N=197\n +oom +sdpa +\[80\] GiB; at N=197 and N=50\n", failed)
    assert re.match(r" +unsupported +flex +no bias; at N=197\n", untried)
    assert re.search(r"measured, with a doubt: 1 case\n +ok +mha +crashed: killed; at N=50\n", untried)
    assert rendered(blocks(results(cases))) == "all 8 cases were measured\n"


def test_the_control_is_no_case() -> None:
    """It isn't counted among those that were measured; where it failed it is listed by its own name."""
    cases = [Case(vit_s(), name) for name in ("eager", "sdpa", CONTROL)]
    assert rendered(blocks(results(cases))) == "all 2 cases were measured\n"
    text = rendered(blocks(results(cases, {cases[2]: ("error", "worked on")})))
    assert text.startswith("failed: the control at 1 point\n")
    both = results(cases, dict.fromkeys(cases[1:], ("error", "worked on")))
    assert rendered(blocks(both)).startswith("failed: 1 case, and the control at 1 point\n")
    assert sentence(points_of(both)).startswith("1 of 2 cases have no time")


def test_cases_that_wait_are_counted_by_the_plan() -> None:
    """Whatever was measured of them: those without a row wait, at a point that was begun too."""
    at = (vit_s(), vit_s(num_tokens=50))
    sweep = Sweep("mine", (*at, *(vit_s(num_tokens=tokens) for tokens in range(300, 398))), ("eager", "sdpa", "mha"))
    table = results([Case(each, name) for each in at for name in ("eager", "sdpa")])
    said = "296 of 300 cases (100 points × 3 implementations) have no time: 296 not tried yet (100 points)."
    assert sentence(points_of(table, sweep)) == said
    assert rendered(blocks(table, sweep)) == said + "\n"


def test_a_failed_point_is_named_among_those_of_the_plan() -> None:
    """One that waits is another point all the same; of an only point nothing is said."""
    case = Case(vit_s(), "sdpa")
    table = results([Case(vit_s(), "eager"), case], {case: ("error", "no")})
    sweep = Sweep("mine", (vit_s(), vit_s(num_tokens=50)), ("eager", "sdpa"))
    assert re.search(r"error +sdpa +no; at N=197\n", rendered(blocks(table, sweep)))
    assert re.search(r"error +sdpa +no\n", rendered(blocks(table)))
