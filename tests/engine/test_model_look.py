"""Looks at models, and the shapes that they show."""

import dataclasses
from typing import Any
from unittest.mock import MagicMock

import pytest

from bench.engine import model_look
from bench.engine.worker import Died
from bench.machine import monotonic
from bench.plan.errors import WrongRequest
from bench.sampling.requests import Look, Looked, Shape
from bench.store.looks import Seen
from tests.make.points import point
from tests.refusals import refusal

AT = point(layer="timm:vit_tiny_patch16_224")

SHOWN: dict[str, Any] = {"num_tokens": 5, "token_len": 16, "channels": 16, "num_heads": 2, "batch": 3}


def replying(reply: Looked | Died) -> tuple[Any, list[Any]]:
    """Return a pool whose processes reply so, or die so, and the requests that they get."""
    requests: list[Any] = []

    def ask(request: Look | Shape, *_: object) -> Looked:
        requests.append(request)
        if isinstance(reply, Died):
            raise reply
        return reply

    pool = MagicMock()
    pool.worker.return_value.__enter__.return_value.ask = ask
    return pool, requests


def test_the_first_process_tries_the_settings() -> None:
    """The others only look."""
    pool, requests = replying(Looked("ok", seen={"untraced": "a branch"}))
    assert model_look.look(pool, [AT], ("eager",), 3, 10.0) == {AT: [Seen(untraced="a branch")] * 3}
    assert requests == [Look(AT, 0, ["eager"]), Look(AT, 1, []), Look(AT, 2, [])]


def test_no_further_process_looks_if_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """One looks at each point in any case."""
    monkeypatch.setattr(monotonic, "now_s", iter(range(100)).__next__)
    pool, requests = replying(Looked("ok", seen={"untraced": "a branch"}))
    points = [AT, dataclasses.replace(AT, batch=4)]
    assert model_look.look(pool, points, (), 3, 10.0, most_s=0.0) == {at: [Seen(untraced="a branch")] for at in points}
    assert len(requests) == 2


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Looked("error", "no such model"), WrongRequest),
        (Looked("unsupported", "no such model"), WrongRequest),
        (Looked("oom", "no memory"), model_look.NotSeen),
        (Died("crashed", "no memory", is_outside=True), model_look.NotSeen),
    ],
)
def test_a_model_that_can_not_be_used_is_a_wrong_request(reply: Any, kind: type[Exception]) -> None:
    """With the process's own line. If the machine lacks memory, it can't be looked at, though the request was right."""
    pool, _ = replying(reply)
    with pytest.raises(kind, match=reply.detail) as raised:
        model_look.look(pool, [AT], (), 1, 10.0)
    assert raised.type is kind
    assert refusal(model_look.shown, pool, [AT.layer]).endswith(reply.detail)


def test_a_module_with_its_own_input_shows_its_shapes() -> None:
    """Each is asked once, in one pool."""
    pool, requests = replying(Looked("ok", seen=SHOWN))
    layers = [AT.layer, "timm:vit_small_patch16_224"]
    assert model_look.shown(pool, layers) == dict.fromkeys(layers, SHOWN)
    assert [(type(request), request.point.layer) for request in requests] == [(Shape, layer) for layer in layers]
