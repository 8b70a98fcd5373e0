"""A look at a model in its process."""

import msgspec
import pytest

import impls
from bench.measure import look
from bench.modules.graph import cores
from bench.modules.graph.tracing import Untraceable
from bench.plan.case import OF_LAYERS
from bench.sampling.requests import Look, Shape
from bench.store.looks import Seen
from tests.make.points import point
from tests.measure.stub import Announcements


@pytest.fixture(autouse=True)
def _few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Profile as few calls as there can be."""
    monkeypatch.setattr(look, "CALLS", 1)


def looked(name: str, settings: tuple[str, ...] = (), mode: str = "inference") -> Seen:
    """Return the look at a tiny model, as it comes out of the pipe."""
    at = point(layer=f"tests.tiny_models:{name}", mode=mode)
    return msgspec.json.decode(msgspec.json.encode(look.look(Look(at, 1, settings), Announcements())), type=Seen)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("Net[input=1x5x16]", "train"),
        ("Net[kind=written,input=1x5x16]", "train"),
        ("Heads[input=1x5x16]", "inference"),
        ("Net[kind=learned bias,input=1x5x16]", "inference"),
    ],
)
def test_a_look_sees_what_a_plain_call_runs(name: str, mode: str) -> None:
    """A part of the time is in cores, which are in layers, in training with the backward pass; they have their lines.

    Torch's own modules have a fast path.
    """
    seen = looked(name, mode=mode)
    assert seen.kernels
    assert seen.has_whole is name.startswith(("Heads", "Encoder"))
    assert len(seen.cores) in (1, 2)
    for call in seen.calls:
        assert len(call.cores) == len(seen.cores)
        assert 0 < min(call.cores) <= sum(call.cores) < call.layers <= call.total_s
    assert seen.others == ()
    assert all(".py:" in core.lines and core.layer for core in seen.cores)


def test_a_softmax_of_no_core_has_a_share_and_a_reason() -> None:
    """It has its line of source, but isn't a core."""
    capped = looked("Net[kind=capped,input=1x5x16]")
    assert capped.cores == ()
    assert {other.layer for other in capped.others} == {"layers.0", "layers.1"}
    assert all(
        "tanh" in other.reason and "score_mod" in other.reason and ".py:" in other.lines for other in capped.others
    )
    assert all(0 < min(call.others) <= sum(call.others) < call.total_s for call in capped.calls)


def test_a_model_that_can_not_be_traced_is_looked_at_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the reason, without shares, and with its settings."""

    def untraceable(*_: object) -> None:
        raise Untraceable("a branch at model.py:3")

    monkeypatch.setattr(cores, "look", untraceable)
    seen = looked("Net[input=1x5x16]", ("eager",))
    assert (seen.untraced, seen.cores) == ("a branch at model.py:3", ())
    assert seen.settings["eager"].status == "ok"
    assert all(call.plain_s > 0 for call in seen.calls)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("Net[input=2x5x16]", (5, 16, 16, 2)),
        ("Heads[input=2x5x16]", (5, 16, 16, 2)),
        ("plain[input=2x5x16]", (5, 16, 16, 1)),
        ("plain[input=2x3x4x16]", (12, 16, 16, 1)),
        ("Net[input=tests.tiny_models:inputs]", (5, 16, 16, 2)),
    ],
)
def test_a_module_shows_its_shapes(name: str, columns: tuple[int, ...]) -> None:
    """Those of its largest core; without one, the tokens and the width of its input, however many dimensions."""
    shown = look.shape(Shape(point(layer=f"tests.tiny_models:{name}")), Announcements())
    assert shown == {**dict(zip(OF_LAYERS, columns, strict=True)), "batch": 2}


def test_settings_are_tried() -> None:
    """Two that are there, one that runs the same, and one that a CPU lacks, each with its way."""
    settings = looked("Net[input=1x5x16]", ("sdpa_math", "sdpa", "eager", "sdpa_cudnn")).settings
    assert {name: each.status for name, each in settings.items()} == {
        "sdpa_math": "ok",
        "sdpa": "same",
        "eager": "ok",
        "sdpa_cudnn": "unsupported",
    }
    written = looked("Net[kind=written,input=1x5x16]", ("sdpa",)).settings
    assert (written["sdpa"].status, written["sdpa"].by) == ("ok", "graph")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("plain[input=1x5x16]", "no attention was found"),
        ("Net[input=1x5x17]", "fails when called with [2, 5, 17]"),
    ],
)
def test_what_can_not_be_looked_at_is_said(name: str, words: str) -> None:
    """A model without attention, and another input."""
    with pytest.raises((impls.Unsupported, impls.Unresolved)) as error:
        looked(name)
    assert words in str(error.value)
