"""Looks at models that can't be used."""

from typing import Any
from unittest.mock import MagicMock

import pytest

from bench.engine import model_look
from bench.engine.worker import Died
from bench.plan.errors import WrongRequest
from bench.sampling.requests import Looked
from tests.make.points import point
from tests.refusals import refusal

AT = point(layer="timm:vit_tiny_patch16_224")


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Looked("error", "no such model"), WrongRequest),
        (Looked("oom", "no memory"), model_look.NotSeen),
        (Died("crashed", "no memory", is_outside=True), model_look.NotSeen),
    ],
)
def test_a_model_that_can_not_be_used_is_a_wrong_request(reply: Any, kind: type[Exception]) -> None:
    """With the process's own line. If the machine lacks memory, it can't be looked at, though the request was right."""
    pool = MagicMock()
    pool.worker.return_value.__enter__.return_value.ask.side_effect = [reply, reply]
    with pytest.raises(kind, match=reply.detail) as raised:
        model_look.look(pool, [AT], (), 1, 10.0)
    assert raised.type is kind
    assert refusal(model_look.shown, pool, [AT.layer]).endswith(reply.detail)
