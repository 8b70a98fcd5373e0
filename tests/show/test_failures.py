"""Reasons of failures, and what fails a point."""

import itertools
import re

import pytest

from bench.analyse.rows import Row
from bench.plan.case import Case
from bench.plan.sweep import Sweep
from bench.show.answer import points_of
from bench.show.failures import failing, of_baseline, reasons, table
from bench.show.terminal.console import rendered
from bench.store.record import STATUSES
from tests.make.points import vit_s
from tests.make.results import results

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
        ([OK, OWN_WRONG, MHA], ["mykernel:adapt incorrect"]),
        ([OK, OWN_UNSUPPORTED], ["mykernel:adapt unsupported"]),
        ([OK, ("installed", "crashed", "")], ["installed crashed"]),
        ([MHA, ("mha_weights", *MHA[1:])], []),
        ([("eager", "oom", "no memory"), ("sdpa", "oom", "no memory"), MHA], ["eager, sdpa oom", "mha unsupported"]),
    ],
)
def test_by_default_an_own_implementation_that_is_not_ok_fails(cases: list[Ended], expected: list[str]) -> None:
    """A point where nothing could be measured fails too; a shipped implementation beside one that is ok doesn't."""
    assert [reason.brief for reason in failing(rows(*cases), None, lacks_device=False)] == expected


def test_a_baseline_that_failed_fails() -> None:
    """Running out of memory or an unsupported case is a result; another implementation's failure fails nothing."""
    for status in STATUSES[1:]:
        ended = rows(OK, ("sdpa", status, "why"))
        expected = [] if status in ("oom", "unsupported", "skipped") else [f"sdpa {status}"]
        assert [reason.brief for reason in failing(ended, None, lacks_device=False, baseline="sdpa")] == expected
        assert failing(ended, None, lacks_device=False, baseline="eager") == []


def test_a_baseline_without_a_time_is_told_first() -> None:
    """With the number of points and its reason; one that isn't supported at some points is told nowhere."""
    cases = [Case(vit_s(num_tokens=tokens), name) for tokens in (5, 7) for name in ("eager", "sdpa")]
    (said,) = of_baseline(points_of(results(cases, {cases[0]: ("error", "why")})), "eager")
    assert said == "The baseline eager has no time at 1 of 2 points, so there are no ratios there: error: why."
    unsupported = {cases[0]: ("unsupported", "no")}
    assert of_baseline(points_of(results(cases, unsupported)), "eager") == []
    (said,) = of_baseline(points_of(results(cases, {**unsupported, cases[2]: ("unsupported", "no")})), "eager")
    assert "at all 2 points" in said
    assert of_baseline(points_of(results(cases, dict.fromkeys(cases, ("oom", "")))), "eager") == []


def test_a_device_that_is_not_there_fails_and_statuses_replace_the_rule() -> None:
    """All are unsupported then; requested statuses apply to shipped implementations and to a user's own."""
    without = rows(*((name, "unsupported", "no CUDA device") for name in ("eager", "sdpa")))
    (reason,) = failing(without, None, lacks_device=True)
    assert (reason.brief, reason.detail) == ("eager, sdpa unsupported", "no CUDA device")
    assert failing(without, None, lacks_device=False) == []
    asked: tuple[list[str], ...] = ([], ["incorrect"], ["unsupported"], ["unsupported", "incorrect", "oom"], ["oom"])
    found = [failing(rows(OK, OWN_WRONG, MHA), statuses, lacks_device=True) for statuses in asked]
    own, mha = "mykernel:adapt", "mha"
    assert [[*itertools.chain(*(reason.names for reason in bad))] for bad in found] == [
        [],
        [own],
        [mha],
        [own, mha],
        [],
    ]


def test_a_number_in_a_reason_is_that_of_its_implementation() -> None:
    """Those that share a whole reason at the same points are one; numbers that differ between points are told so."""
    lost = [
        ("sdpa", "incorrect", "off by\n0.2"),
        ("mha", "incorrect", "off by 0.02"),
        ("flex", "incorrect", "off by 0.2"),
    ]
    of = reasons([*rows(*lost), {**rows(lost[1])[0], "num_tokens": 5, "detail": "off by 0.3"}])
    assert [(each.names, each.detail, len(each.points)) for each in of] == [
        (("sdpa", "flex"), "off by 0.2", 1),
        (("mha",), "at the first point: off by 0.02", 2),
    ]


def shown(*fates: tuple[int, str, str], planned: Sweep | None = None) -> list[str]:
    """Return the lines of the table of a run of two points and three implementations, with these failures."""
    cases = [Case(vit_s(num_tokens=tokens), name) for tokens in (5, 7) for name in ("eager", "sdpa", "mha")]
    of = results(cases, {cases[number]: (status, why) for number, status, why in fates})
    return [re.sub(" {2,}", " | ", line) for line in rendered(table(points_of(of, planned)), width=110).splitlines()]


def test_each_failure_is_a_line_of_one_table() -> None:
    """Failures come first, cases that were never tried last; brackets aren't markup."""
    assert shown((1, "unsupported", "no bias"), (4, "unsupported", "no bias"), (2, "error", "[80] GiB")) == [
        "Not timed: 3 of 6 cases.",
        "status | who | where | why",
        "error | mha | N=5 | [80] GiB",
        "unsupported | sdpa | all 2 points | no bias",
    ]
    assert shown() == [""]
