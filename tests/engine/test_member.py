"""What a process claims is compared with what was seen, and its replies with their types."""

from typing import Any
from unittest import mock

import pytest

from bench.engine import member
from bench.engine.member import Claims, Ended, Ending, Member, Prepared
from bench.engine.pool import Pool
from bench.store.record import Samples
from tests.engine.test_run_folder import HERE
from tests.make.records import case, samples

OUTCOME = {"status": "ok", "detail": "", "metrics": {}}
SAMPLE = {"timings_s": [1e-3, 2e-3], "switches": 0}
REPLY = {"sample": SAMPLE, "used_s": 0.01}


def sampled(claimed_s: float, waited_s: float, count: int = 5, used_s: float | None = None) -> Claims:
    """Return the claims of a process after as many samples, to which nothing was objected."""
    claims = Claims()
    for _ in range(count):
        assert claims.add(claimed_s, waited_s, used_s or claimed_s) == ""
    return claims


def test_more_time_than_has_passed_is_an_objection() -> None:
    """No process can have worked longer than the engine waited for it."""
    assert "came after 0.01 s" in Claims().add(0.011, 0.010, 0.0)


def test_more_cores_than_threads_are_an_objection() -> None:
    """Twice the time on one thread is the work of two cores; two threads may do it."""
    claims = sampled(0.1, 0.1, used_s=0.2)
    assert "worked on 2.0 cores, and threads is 1" in claims.of_all(threads=1)
    assert claims.of_all(threads=2) == ""


@pytest.mark.parametrize(("count", "objects"), [(2, False), (6, True)])
def test_the_cores_of_the_samples_in_the_middle_count(count: int, objects: bool) -> None:
    """They make the time of the row: of ten samples so many took a fifth less time, with a quarter more of a core."""
    claims = sampled(0.1, 0.1, 10 - count)
    for _ in range(count):
        claims.add(0.08, 0.08, 0.1)
    assert ("cores, and threads is 1" in claims.of_all(threads=1)) is objects


def test_a_timing_of_one_short_call_is_worked_on_one_core() -> None:
    """The readings around it take longer than the call."""
    claims = sampled(1e-4, 3e-4, used_s=2.5e-4)
    assert claims.of_all(threads=1) == ""


def test_whole_replies_pass() -> None:
    """Other values beside the expected ones do no harm."""
    assert member.read({**OUTCOME, "free_bytes": None}, Ending).status == "ok"
    assert member.sampled({**REPLY, "status": "ok"}, 2).sample.timings_s == [1e-3, 2e-3]
    assert member.calls_per_timing({"calls_per_timing": 3}) == 3
    prepared = member.read({"call_s": 0.5, "free_bytes": 7}, Prepared)
    assert (prepared.call_s, prepared.free_bytes) == (0.5, 7)


def detail_of(call: Any, *given: Any) -> str:
    """Return the detail with which a reply ends its case as a crash."""
    with pytest.raises(Ended, match=r"^sent a reply that is not valid: ") as ended:
        call(*given)
    assert ended.value.status == "crashed"
    return ended.value.detail


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "fine"},
        {"detail": 3},
        {"metrics": []},
        {"metrics": {"pid": 1}},
        {"metrics": 3},
    ],
)
def test_an_outcome_of_another_kind_is_a_crash(wrong: dict[str, Any]) -> None:
    """The detail names the value that is wrong or missing."""
    (name,) = wrong
    for reply in ({**OUTCOME, **wrong}, {key: value for key, value in OUTCOME.items() if key != name}):
        assert name in detail_of(member.read, reply, Ending)


@pytest.mark.parametrize(
    "wrong",
    [
        {"timings_s": []},
        {"timings_s": [0.0, 1.0]},
        {"timings_s": [1.0]},
        {"timings_s": ["1", "1"]},
        {"timings_s": [1.0, float("inf")]},
        {"switches": -1},
        {"switches": 2**63},
        {"timings_s": [1.0, 10**400]},
    ],
)
def test_a_sample_that_no_clock_gives_is_a_crash(wrong: dict[str, Any]) -> None:
    """A timing is a positive number, a count is whole."""
    assert next(iter(wrong)) in detail_of(member.sampled, {**REPLY, "sample": {**SAMPLE, **wrong}}, 2)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({}, ""),
        ({"reuses": False, "import_s": 0.5}, ""),
        ({"reuses": True}, member.REUSES),
        ({"import_s": 20.04}, "its import takes 20 s in every process"),
        ({"reuses": True, "import_s": 3}, f"{member.REUSES}; its import takes 3 s in every process"),
    ],
)
def test_what_a_user_should_know_is_said(reply: dict[str, Any], words: str) -> None:
    """One buffer for all outputs, and a long import."""
    assert member.read({"call_s": 1.0, **reply}, Prepared).doubts == words


@pytest.mark.parametrize("calls", [None, 0, True, 2.0])
def test_a_timing_has_a_whole_number_of_calls(calls: Any) -> None:
    """Without it the times of calls are unknown."""
    assert "calls_per_timing" in detail_of(member.calls_per_timing, {"calls_per_timing": calls})


@pytest.mark.parametrize(
    "wrong",
    [
        *({"call_s": value} for value in (None, 0.0, -1.0, "1", float("nan"))),
        *({"remark": 3}, {"reuses": "yes"}, {"import_s": "20"}, {"free_bytes": "7"}),
    ],
)
def test_what_is_known_of_one_that_is_prepared_has_its_type(wrong: dict[str, Any]) -> None:
    """The number of timings follows from the time of a call."""
    assert next(iter(wrong)) in detail_of(member.read, {"call_s": 1.0, **wrong}, Prepared)


@pytest.mark.parametrize(
    ("reported", "words"),
    [
        ({"peak_byte": 7}, ("peak_byte", "did you mean peak_bytes?")),
        ({"saved_bytes": "many"}, ("saved_bytes",)),
        ({"host_s": -1.0}, ("host_s",)),
    ],
)
def test_what_cannot_be_is_an_error_row(reported: dict[str, object], words: tuple[str, ...]) -> None:
    """An unknown metric or a wrong value ends the case in words, without samples; what else was measured is kept."""
    one = Member(case(), mock.create_autospec(Pool), "", thorough=False, samples=samples(1.0))
    one.metrics = {"peak_bytes": 7}
    good = one.record(3, "2026-01-31T12:00:00+00:00", 5, HERE)
    one.metrics |= reported
    bad = one.record(3, "2026-01-31T12:00:00+00:00", 5, HERE)
    assert (good.status, good.samples, good.seed, good.process) == ("ok", samples(1.0), 5, 3)
    assert (bad.status, bad.samples) == ("error", Samples())
    assert all(word in bad.detail for word in words)
    assert bad.metrics["peak_bytes"] == 7
