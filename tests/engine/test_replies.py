"""Replies that an implementation may have written."""

from typing import Any

import pytest

from bench.engine import replies
from bench.engine.member import Ended

OUTCOME = {"status": "ok", "detail": "", "metrics": {}, "cpu_s": 0}
SAMPLE = {"timings_s": [1e-3, 2e-3], "switches": 0, "faults": 3}
REPLY = {"sample": SAMPLE, "held": [0, 2], "used_s": 0.01, "idle_s": 0.0, "cpu_s": 1.0}


def test_whole_replies_pass() -> None:
    """Other values beside the expected ones do no harm."""
    replies.check_outcome({**OUTCOME, "free_bytes": None})
    replies.check_sample({**REPLY, "status": "ok"}, 2)
    assert replies.call_s({"call_s": 0.5}) == 0.5
    assert replies.calls_per_timing({"calls_per_timing": 3}) == 3
    assert replies.free_bytes({"free_bytes": 7}) == 7
    assert replies.free_bytes({"free_bytes": "7"}) is None


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
        with pytest.raises(Ended, match=name) as ended:
            replies.check_outcome(reply)
        assert ended.value.status == "crashed"


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
    with pytest.raises(Ended, match="sample"):
        replies.check_sample({**REPLY, "sample": {**SAMPLE, **wrong}}, 2)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({}, ""),
        ({"reuses": False, "import_s": 0.5}, ""),
        ({"reuses": True}, replies.REUSES),
        ({"import_s": 20.04}, "its import takes 20.0 s in every process"),
        ({"reuses": True, "import_s": 3}, f"{replies.REUSES}; its import takes 3.0 s in every process"),
        ({"reuses": "yes", "import_s": "20"}, ""),
    ],
)
def test_what_a_user_should_know_is_said(reply: dict[str, Any], words: str) -> None:
    """One buffer for all outputs, and a long import; a value of another kind says nothing."""
    assert replies.doubts(reply) == words


@pytest.mark.parametrize("held", [None, [0], [0, 3], [0, -1], [0, "1"]])
def test_each_timing_names_the_input_of_the_call_that_is_held(held: Any) -> None:
    """The judge makes that input."""
    with pytest.raises(Ended, match="held"):
        replies.check_sample({**REPLY, "held": held}, 2)


@pytest.mark.parametrize("calls", [None, 0, True, 2.0])
def test_a_timing_has_a_whole_number_of_calls(calls: Any) -> None:
    """Without it the times of calls are unknown."""
    with pytest.raises(Ended, match="calls_per_timing"):
        replies.calls_per_timing({"calls_per_timing": calls})


@pytest.mark.parametrize("wrong", [None, 0.0, -1.0, "1", float("nan")])
def test_a_call_takes_a_time(wrong: Any) -> None:
    """The number of timings follows from it."""
    with pytest.raises(Ended, match="call_s"):
        replies.call_s({"call_s": wrong})
