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
from tests.make.points import point

AT = point(layer="timm:vit_tiny_patch16_224")

SHAPE: dict[str, Any] = {"num_tokens": 5, "token_len": 16, "channels": 16, "num_heads": 2, "batch": 0}

SHOWN = dataclasses.replace(AT, **{**SHAPE, "batch": AT.batch})


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that has all processes reply so, or die so, and returns the requests that they get."""

    def replying(reply: Looked | Died) -> list[Any]:
        requests: list[Any] = []

        def ask(request: Look | Shape, *_: object) -> Looked:
            requests.append(request)
            if isinstance(reply, Died):
                raise reply
            return reply

        pools = MagicMock()
        pools.return_value.worker.return_value.__enter__.return_value.ask = ask
        monkeypatch.setattr(model_look, "Pool", pools)
        return requests

    return replying


def test_the_first_process_tries_the_settings(pool: Any) -> None:
    """The others only look; all have the library of the model."""
    requests = pool(Looked("ok", "", seen={"shape": SHAPE}))
    assert model_look.look([AT], ("eager",), 3, 10.0) == {SHOWN: [{"shape": SHAPE}] * 3}
    assert requests == [Look(AT, 0, ["eager"]), Look(AT, 1, []), Look(AT, 2, [])]
    assert vars(model_look)["Pool"].call_args.kwargs == {"libraries": ("timm",)}


def test_no_further_process_looks_if_the_time_is_up(pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One looks at each point in any case."""
    monkeypatch.setattr(monotonic, "now_s", iter(range(100)).__next__)
    requests = pool(Looked("ok", "", seen={"shape": SHAPE}))
    points = [AT, dataclasses.replace(AT, batch=4)]
    looks = model_look.look(points, (), 3, 10.0, most_s=0.0)
    assert looks == {dataclasses.replace(SHOWN, batch=at.batch): [{"shape": SHAPE}] for at in points}
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
def test_a_model_that_can_not_be_used_is_a_wrong_request(pool: Any, reply: Any, kind: type[Exception]) -> None:
    """With the process's own line. If the machine lacks memory, the request was right."""
    pool(reply)
    with pytest.raises(kind, match="no such model" if kind is WrongRequest else "no memory"):
        model_look.look([AT], (), 1, 10.0)


def test_a_module_with_its_own_input_shows_its_shapes(pool: Any) -> None:
    """The module is asked once; other layers are not, and without such modules no process starts."""
    requests = pool(Looked("ok", "", seen=SHAPE))
    unknown: dict[str, Any] = dict.fromkeys(SHAPE, 1)
    points = (point(), *(dataclasses.replace(AT, **{**unknown, "batch": batch}) for batch in (1, 2)))
    assert model_look.shaped(points[:1]) == points[:1]
    assert requests == []
    first, *others = model_look.shaped(points)
    assert first == points[0]
    assert others == [dataclasses.replace(SHOWN, batch=each.batch) for each in points[1:]]
    assert [(type(request), request.point.layer) for request in requests] == [(Shape, AT.layer)]


def test_a_batch_that_nobody_gives_is_that_of_the_function_of_inputs(pool: Any) -> None:
    """One that is given stays; if the module can't be made, it is the usual one."""
    own = {**SHAPE, "batch": 3}
    pool(Looked("ok", "", seen=own))
    points = [dataclasses.replace(AT, **{**SHAPE, "batch": batch}) for batch in (0, 1, 2)]
    assert [each.batch for each in model_look.shaped(tuple(points))] == [3, 1, 2]
    pool(Looked("ok", "", seen={"shape": own}))
    assert [each.batch for each in model_look.look(points, (), 1, 10.0)] == [3, 1, 2]
    pool(Looked("error", "no such model"))
    assert model_look.shaped((points[0], point()))[0].batch == 8


def test_a_shape_that_a_module_does_not_have_is_refused(pool: Any) -> None:
    """The refusal says what it has; beside others its points are left out."""
    pool(Looked("ok", "", seen=SHAPE))
    with pytest.raises(WrongRequest, match="num_tokens = 7 must be 5 in the layer timm:vit_tiny_patch16_224; leave it"):
        model_look.shaped((AT,))
    said: list[str] = []
    assert model_look.shaped((AT, point()), say=said.append) == (point(),)
    assert [line.partition(" must")[0] for line in said] == ["left out: num_tokens = 7"]


def test_a_module_that_can_not_be_made_beside_others_keeps_its_points(pool: Any) -> None:
    """Its rows say why. If all fail, the request is wrong, with a line for each."""
    pool(Looked("error", "no such model"))
    other = dataclasses.replace(AT, layer="timm:vit_small_patch16_224")
    assert model_look.shaped((AT, point())) == (AT, point())
    with pytest.raises(WrongRequest, match="no such model\nno such model"):
        model_look.shaped((AT, other))
