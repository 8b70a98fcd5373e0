"""`advise`, from a model's name to an answer."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import msgspec
import pytest

from bench.analyse.analysed_run import AnalysedRun
from bench.cli import main
from bench.commands import advise
from bench.engine import model_look
from bench.engine.model_look import NotSeen
from bench.plan.case import Point
from bench.plan.invocation import ROOT
from bench.profiling import traces
from bench.sampling.requests import Look, Shape
from impls.catalogue import name_of
from tests.clock import Clock
from tests.make import advice
from tests.make.profiles import profile

Asked = Callable[..., list[Point]]
"""What sets what looks see, and returns the points that are asked for."""

Printed = Callable[..., str]

TINY = "tests.tiny_models"
NET = f"{TINY}:Net"

NAMED = "timm:vit_tiny_patch16_224"

LOOKED_S = 0.5
"""The seconds that looks take."""

SHAPE = {"num_tokens": 7, "token_len": 12, "channels": 12, "num_heads": 3}

BATCHES = {"4x5x16": 4, f"{TINY}:inputs": 2}
"""The batch of each input that a name gives here."""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the fewest rounds."""
    monkeypatch.setattr(advise, "BUDGET_S", 0.01)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch, scripted_workers: Clock) -> Asked:
    """Return a function that sets what looks see; the points that are asked for are in its list."""

    def saw(core_share: float = 0.2, **seen: Any) -> list[Point]:
        asked: list[Point] = []

        def look(_pool: Any, request: Look | Shape, number: int, *_: Any) -> dict[str, Any]:
            if isinstance(request, Shape):
                return {**SHAPE, **({"batch": BATCHES[given]} if (given := name_of(request.point.layer).input) else {})}
            if number == 0:
                asked.append(request.point)
                scripted_workers.sleep(LOOKED_S)
            seen_there: dict[str, Any] = msgspec.to_builtins(advice.looks(core_share, **seen)[number])
            return seen_there

        monkeypatch.setattr(model_look, "Pool", MagicMock())
        monkeypatch.setattr(model_look, "asked", look)
        return asked

    return saw


def test_no_memory_for_a_look_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], made_up: Asked
) -> None:
    """The request was right, and the line says what happened."""
    made_up()

    def look(*_: Any, **__: Any) -> None:
        raise NotSeen("timm:vit could not be inspected: oom: not enough memory")

    monkeypatch.setattr(advise, "look", look)
    assert main(["advise", NAMED]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "could not be inspected: oom: not enough memory" in line


def test_a_small_share_ends_after_the_look(made_up: Asked, tmp_path: Path, printed: Printed) -> None:
    """The first line says the bound, and nothing is measured."""
    asked = made_up(core_share=0.05)
    output = printed("advise", NAMED, "--run", tmp_path / "run", "--batch", "2")
    assert "Attention takes 5" in output
    assert "--anyway" in output
    assert [(point.layer, point.batch) for point in asked] == [(NAMED, 2)]
    assert not (tmp_path / "run" / "results.csv").exists()
    assert json.loads((tmp_path / "run" / "advice.json").read_text())["alternatives"] == []


@pytest.mark.parametrize(
    ("words", "at"),
    [
        (["vit", "--num-tokens", "9", "--channels", "24"], ("vit", 8, 9, 24)),
        ([f"{NET}[kind=written]", "--num-tokens", "9"], (f"{NET}[kind=written]", 8, 9, 384)),
        ([NET, "--input", f"{TINY}:inputs"], (f"{NET}[input={TINY}:inputs]", 2, 7, 12)),
    ],
)
def test_any_module_is_looked_at(
    words: list[str], at: tuple[str, int, int, int], made_up: Asked, tmp_path: Path, printed: Printed
) -> None:
    """Layers from the suite or elsewhere take columns; a layer with its own input has the columns of its core."""
    made_up(core_share=0.05)
    of = json.loads(printed("advise", *words, "--format", "json", "--run", tmp_path / "run"))["point"]
    assert (of["layer"], of["batch"], of["num_tokens"], of["channels"]) == at


def test_settings_are_measured_in_a_run(made_up: Asked, tmp_path: Path, printed: Printed) -> None:
    """The model's run is an ordinary one that other commands read; the race's time doesn't include the looks."""
    made_up()
    run = tmp_path / "run"
    words = ("--no-compile", "--within", "5s", "--run", run, "--format", "json")
    content = json.loads(printed("advise", NAMED, *words))
    assert [each["name"] for each in content["alternatives"]] == ["sdpa", "eager", "sdpa_flash"]
    assert content["alternatives"][1]["status"] == "ok"
    assert content["layers"][0]["path"] == "blocks.0.attn"
    assert (content["point"]["num_tokens"], content["point"]["num_heads"], content["point"]["channels"]) == (7, 3, 12)
    assert "eager" in printed("show", run)
    effort = vars(AnalysedRun(run).effort)
    assert (effort["race"], effort["bound"], effort["processes"]) == (True, 0.02, 2)
    assert effort["within_s"] == 5.0 - LOOKED_S
    assert "| `eager` |" in (run / "advice.md").read_text()


def test_a_graph_is_the_control_of_settings_that_go_by_it(made_up: Asked, tmp_path: Path, printed: Printed) -> None:
    """It is measured beside them, and only then."""
    made_up(settings={"eager": {"status": "ok", "detail": "", "by": "graph"}})
    words = ("--no-compile", "--within", "1s", "--run", tmp_path / "run", "--format", "json")
    content = json.loads(printed("advise", NAMED, *words))
    assert [(each["name"], each["status"]) for each in content["alternatives"]] == [("graph", "ok"), ("eager", "ok")]


def test_named_settings_are_measured_alone(made_up: Asked, tmp_path: Path, printed: Printed) -> None:
    """Beside the unchanged model, however little attention takes; nothing is compiled unasked."""
    made_up(core_share=0.01)
    words = ("--impl", "as_is,eager,sdpa_math", "--within", "1s", "--run", tmp_path / "run", "--format", "json")
    content = json.loads(printed("advise", NAMED, *words))
    assert [each["name"] for each in content["alternatives"]] == ["eager", "sdpa_math"]
    assert {*AnalysedRun(tmp_path / "run").table["implementation"]} == {"as_is", "eager", "sdpa_math"}


def test_every_command_that_is_printed_ends_with_0(
    made_up: Asked, tmp_path: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with several points, which lie in one folder, and with a quote and a space in its name."""
    made_up()
    monkeypatch.setattr(traces, "write", lambda cases, _: (profile() for _ in cases))
    monkeypatch.chdir(ROOT)
    run = tmp_path / "it's mine"
    words = ("--batch", "2,4", "--no-compile", "--within", "1s", "--run", run)
    output = printed("advise", NAMED, *words)
    commands = [shlex.split(each)[3:] for each in re.findall(r"python -m bench [^;\n]+", output)]
    for command in commands:
        printed(*command)
    assert [command[0] for command in commands] == ["show", "profile"]
    assert {*AnalysedRun(run).table["batch"]} == {2, 4}


@pytest.mark.slow
def test_a_wrong_mask_in_a_model_is_incorrect(
    tmp_path: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A right attend is measured, and a refused one says why: all of it in real processes."""
    for name in ("LOOKS", "PROCESSES"):
        monkeypatch.setattr(advise, name, 1)
    monkeypatch.setattr(advise, "advised", lambda *_, **__: ["sdpa_math"])
    names = [f"{TINY}:wrong", f"{TINY}:right", "sdpa_math"]
    words = ("--within", "1s", "--no-compile", "--run", tmp_path / "run", "--format", "json")
    output = printed("advise", NET, "--input", "2x9x16", "--impl", ",".join(names), *words, status=1)
    content = json.loads(output)
    by_name = {each["name"]: each for each in content["alternatives"]}
    assert [by_name[name]["status"] for name in names] == ["incorrect", "ok", "ok"]
    assert by_name["sdpa_math"]["kernels"] != by_name[f"{TINY}:right"]["kernels"]
    assert content["recommendation"] is None
