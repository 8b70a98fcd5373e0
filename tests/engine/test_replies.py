"""Replies that an implementation may have written."""

from typing import Any

import pytest

from bench.engine import replies
from bench.engine.member import Ended
from bench.engine.replies import Outcome, Prepared

OUTCOME = {"status": "ok", "detail": "", "metrics": {}, "cpu_s": 0}
SAMPLE = {"timings_s": [1e-3, 2e-3], "switches": 0, "faults": 3}
REPLY = {"sample": SAMPLE, "held": [0, 2], "used_s": 0.01, "idle_s": 0.0, "cpu_s": 1.0}


def test_whole_replies_pass() -> None:
    """Other values beside the expected ones do no harm."""
    assert replies.read({**OUTCOME, "free_bytes": None}, Outcome).status == "ok"
    assert replies.sampled({**REPLY, "status": "ok"}, 2).sample.timings_s == [1e-3, 2e-3]
    assert replies.calls_per_timing({"calls_per_timing": 3}) == 3
    prepared = replies.read({"call_s": 0.5, "free_bytes": 7}, Prepared)
    assert (prepared.call_s, prepared.free_bytes) == (0.5, 7)


def printed(call: Any, *given: Any) -> str:
    """Return the detail with which a reply ends its case as a crash."""
    with pytest.raises(Ended, match=r"^sent a reply that is not valid: ") as ended:
        call(*given)
    assert ended.value.status == "crashed"
    return ended.value.detail


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "fine"},
        {"status": ["ok"]},
        {"detail": 3},
        {"metrics": []},
        {"metrics": {"pid": 1}},
        {"cpu_s": float("nan")},
    ],
)
def test_an_outcome_of_another_kind_is_a_crash(wrong: dict[str, Any]) -> None:
    """The detail names the value that is wrong or missing."""
    (name,) = wrong
    for reply in ({**OUTCOME, **wrong}, {key: value for key, value in OUTCOME.items() if key != name}):
        assert f" {name} " in printed(replies.read, reply, Outcome)


@pytest.mark.parametrize(
    "wrong",
    [
        {"timings_s": []},
        {"timings_s": [0.0, 1.0]},
        {"timings_s": [1.0]},
        {"timings_s": [1.0, 1.0, 1.0]},
        {"timings_s": ["1", "1"]},
        {"timings_s": [1.0, float("inf")]},
        {"switches": -1},
        {"faults": 0.5},
        {"faults": 2**63},
        {"timings_s": [1.0, 10**400]},
    ],
)
def test_a_sample_that_no_clock_gives_is_a_crash(wrong: dict[str, Any]) -> None:
    """A timing is a positive number, a count is whole."""
    assert f"sample.{next(iter(wrong))}" in printed(replies.sampled, {**REPLY, "sample": {**SAMPLE, **wrong}}, 2)


@pytest.mark.parametrize("held", [None, [0], [0, 3], [0, -1], [0, "1"]])
def test_each_timing_names_the_input_of_the_call_that_is_held(held: Any) -> None:
    """The judge makes that input."""
    assert "held" in printed(replies.sampled, {**REPLY, "held": held}, 2)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({}, ""),
        ({"reuses": False, "import_s": 0.5}, ""),
        ({"reuses": True}, replies.REUSES),
        ({"import_s": 20.04}, "its import takes 20.0 s in every process"),
        ({"reuses": True, "import_s": 3}, f"{replies.REUSES}; its import takes 3.0 s in every process"),
    ],
)
def test_what_a_user_should_know_is_said(reply: dict[str, Any], words: str) -> None:
    """One buffer for all outputs, and a long import."""
    assert replies.read({"call_s": 1.0, **reply}, Prepared).doubts == words


@pytest.mark.parametrize("calls", [None, 0, True, 2.0])
def test_a_timing_has_a_whole_number_of_calls(calls: Any) -> None:
    """Without it the times of calls are unknown."""
    assert "calls_per_timing must be a whole number" in printed(replies.calls_per_timing, {"calls_per_timing": calls})


@pytest.mark.parametrize(
    "wrong",
    [
        *({"call_s": value} for value in (None, 0.0, -1.0, "1", float("nan"))),
        *({"remark": 3}, {"reuses": "yes"}, {"import_s": "20"}, {"free_bytes": "7"}),
    ],
)
def test_what_is_known_of_one_that_is_prepared_has_its_type(wrong: dict[str, Any]) -> None:
    """The number of timings follows from the time of a call."""
    assert f"{next(iter(wrong))} must be" in printed(replies.read, {"call_s": 1.0, **wrong}, Prepared)
