"""Looks at models through processes."""

import dataclasses
from typing import Any

import pytest

from bench.engine import look as engine
from bench.engine.worker import Died
from bench.plan.errors import WrongRequest
from tests.points import point

AT = point(layer="timm:vit_tiny_patch16_224")


class Worker:
    """A process that replies as it was made to."""

    def __init__(self, reply: dict[str, Any] | Died) -> None:
        self.reply = reply
        self.requests: list[dict[str, Any]] = []

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, request: dict[str, Any], _timeout_s: float, _heard: Any) -> dict[str, Any]:
        """Reply, or die."""
        self.requests.append(request)
        if isinstance(self.reply, Died):
            raise self.reply
        return self.reply


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that puts a worker in place of all processes."""

    def replying(reply: dict[str, Any] | Died) -> Worker:
        worker = Worker(reply)

        class Pool:
            def __init__(self, *_: object, libraries: tuple[str, ...]) -> None:
                assert libraries == ("timm",)

            def worker(self, *_: object) -> Worker:
                return worker

            def close(self) -> None:
                pass

        monkeypatch.setattr(engine, "Pool", Pool)
        return worker

    return replying


def test_the_first_process_tries_the_settings(pool: Any) -> None:
    """The others only look."""
    worker = pool({"status": "ok", "detail": "", "seen": {"cores": []}})
    seen = engine.look([AT], ("eager",), 3, 10.0)
    assert seen == {AT: [{"cores": []}] * 3}
    assert [request["settings"] for request in worker.requests] == [["eager"], [], []]
    assert worker.requests[0]["point"] == dataclasses.asdict(AT)


@pytest.mark.parametrize("status", ["error", "unsupported"])
def test_a_model_that_can_not_be_used_is_a_wrong_request(pool: Any, status: str) -> None:
    """With the process's own line."""
    pool({"status": status, "detail": "timm has no model", "seen": {}})
    with pytest.raises(WrongRequest, match="timm has no model"):
        engine.look([AT], (), 1, 10.0)


@pytest.mark.parametrize(
    "reply", [{"status": "oom", "detail": "no memory", "seen": {}}, Died("crashed", "no memory", is_outside=True)]
)
def test_a_lack_of_memory_is_none(pool: Any, reply: Any) -> None:
    """The request was right: the machine lacks something."""
    pool(reply)
    with pytest.raises(engine.NotSeen, match="no memory"):
        engine.look([AT], (), 1, 10.0)
