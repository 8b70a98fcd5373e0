"""A duel: the rounds of both sides pair, and the second side has the weights of the first if they are the same."""

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.analyse.standing import Answer
from bench.analyse.summary import values_of
from bench.engine import duel as duel_module
from bench.engine.duel import Duel, grounds
from bench.engine.pool import Pool, Settings
from bench.plan.case import AFTER, BEFORE, CONTROL, Case
from bench.plan.sides import DIFFER, SAME, Side
from bench.plan.sweep import Effort, Sweep
from bench.sampling.requests import Looked
from bench.store import journal
from bench.store.record import Record
from bench.store.table import load
from tests.engine import threads
from tests.engine.interpreters import two
from tests.make.points import point
from tests.refusals import refusal

EFFORT = Effort(processes=2, budget_s=0.1, race=True, bound=0.02, within_s=0.01, timeout_s=60)
"""The time of a base alone."""

NAMES = (BEFORE, AFTER, CONTROL)


def sides_of(pythons: tuple[str, str], implementation: str = "sdpa") -> tuple[Side, Side]:
    """Return the sides of two interpreters."""
    before, after = (Side(name, implementation, python=path) for name, path in zip(NAMES, pythons, strict=False))
    return before, after


@contextmanager
def opened(
    folder: Path,
    sides: tuple[Side, Side],
    effort: Effort = EFFORT,
    layers: tuple[str, str] | None = None,
) -> Iterator[Duel]:
    """Open a duel at one tiny point with a control; `layers` are the sides' layers."""
    before, after = sides
    sweep = Sweep("tiny", (point(),), (before.name, after.name), before.name, effort, control=True)
    own = [tuple(dataclasses.replace(each, layer=name) for each in sweep.points) for name in layers or ()]
    points = (own[0], own[1]) if own else (sweep.points, sweep.points)
    with grounds(sides, 1) as grounded, Duel(sweep, folder / "run", grounded, points) as duel:
        yield duel


def measured(folder: Path, after: str, effort: Effort = EFFORT) -> Duel:
    """Return a duel of two implementations, the first of them sdpa, after its race."""
    with opened(folder, (Side("sdpa", "sdpa"), Side(after, after)), effort) as duel:
        [*duel.measured()]
    return duel


def records(folder: Path) -> dict[str, list[Record]]:
    """Return the records of each row."""
    of: dict[str, list[Record]] = {}
    for each in journal.read(folder / "run"):
        of.setdefault(each.case.implementation, []).append(each)
    return of


def pairs(folder: Path, after: str) -> set[int]:
    """Return the numbers of the replicates in which sdpa and the other side were measured."""
    of = records(folder)
    before, other = ({each.process for each in of[name]} for name in ("sdpa", after))
    return before & other


@pytest.fixture(autouse=True)
def _scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    threads.use(monkeypatch)


@pytest.mark.slow
def test_the_rounds_of_two_environments_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each replicate gives one ratio, and another one another: the second side takes twice the time.

    Every round has a sample of each side and of the control, each with the torch that it comes from. Processes of one
    server share the layout of the code, so each replicate has fresh servers of both sides.
    """
    threads.use_processes(monkeypatch)
    started: Counter[tuple[Pool, Settings]] = Counter()
    start = threads.in_a_process

    def counted(of: Pool, settings: Settings) -> Any:
        started[of, settings] += 1
        return start(of, settings)

    monkeypatch.setattr(Pool, "_started", counted)
    with opened(tmp_path, sides_of(two(tmp_path, "2e-3"))) as duel:
        [*duel.measured()]
    assert started == {(ground.pool, Settings.of(point())): EFFORT.processes for ground in duel.sides}
    of = records(tmp_path)
    before, after = values_of({name: of[name] for name in (BEFORE, AFTER)}).logs
    assert before - after == pytest.approx([-0.693] * 2, abs=0.005)
    assert len({*(before - after)}) == 2
    table = load(tmp_path / "run").set_index("implementation")
    assert table["torch_version"].to_dict() == {BEFORE: "2.0", AFTER: "2.1", CONTROL: "2.0"}
    assert table["speedup"].to_dict() == pytest.approx({BEFORE: 1, AFTER: 0.5, CONTROL: 1}, rel=0.01)
    for own in of.values():
        assert [each.process for each in own] == [0, 1]
        assert [each.metrics["kernels"] for each in own] == [("thorough",), ()]
        assert own[0].samples.rounds == of[BEFORE][0].samples.rounds
        assert len(own[0].samples.rounds) > 1
    told = json.loads((tmp_path / "run" / "environment.json").read_text())["context"]["sides"]
    assert [(name, side["torch"]) for name, side in told.items()] == [(BEFORE, "2.0"), (AFTER, "2.1")]


def test_a_second_run_into_the_folder_measures_only_what_is_missing(tmp_path: Path) -> None:
    """Existing replicates stay. A side without the other isn't a pair, and is measured again with it."""
    one, path = dataclasses.replace(EFFORT, processes=1, bound=0.99), tmp_path / "run" / journal.JOURNAL
    measured(tmp_path, "test:half", one)
    written = path.read_bytes()
    measured(tmp_path, "test:half", one)
    assert path.read_bytes() == written
    lines = written.splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line).get("implementation") != "test:half"]
    assert len(kept) == len(lines) - 1
    path.write_bytes(b"".join(kept))
    measured(tmp_path, "test:half", one)
    assert path.read_bytes().startswith(b"".join(kept))
    assert len(pairs(tmp_path, "test:half")) == 1


def test_a_race_of_two_sides_goes_on_until_their_ratio_is_known(tmp_path: Path) -> None:
    """It is known to the bound, which two replicates can't show. Implementations have no code of their own."""
    answers: list[Answer] = []
    effort = dataclasses.replace(EFFORT, within_s=600.0)
    with opened(tmp_path, (Side("sdpa", "sdpa"), Side("eager", "eager")), effort) as duel:
        [*duel.measured(answered=lambda _, answer: answers.append(answer))]
    assert not duel.differs_in_code
    assert [answer.is_good for answer in answers] == [False] * (len(answers) - 1) + [True]
    assert answers[0].replicates == effort.processes
    assert answers[-1].bound <= effort.bound < answers[0].bound
    assert {len(records(tmp_path)[name]) for name in ("sdpa", "eager")} == {answers[-1].replicates}
    assert "sides" not in json.loads((tmp_path / "run" / "environment.json").read_text())["context"]


def test_where_one_side_cannot_be_prepared_the_other_is_skipped(tmp_path: Path) -> None:
    """Nothing is timed without the other, every row says how it ended, and none is tried again."""
    measured(tmp_path, "test:exits")
    own = {name: (each.status, each.own_cause) for name, (each,) in records(tmp_path).items()}
    assert own == {"sdpa": ("skipped", False), CONTROL: ("skipped", False), "test:exits": ("crashed", True)}


def test_a_side_that_is_killed_once_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All get fresh processes, and the replicates are whole; no row says that it was skipped."""
    monkeypatch.setenv("TEST_FOLDER", str(tmp_path))
    measured(tmp_path, "test:killed_once")
    assert [*tmp_path.glob("test-*")]
    assert {each.status for own in records(tmp_path).values() for each in own} == {"ok"}
    assert len(pairs(tmp_path, "test:killed_once")) == 2


WEIGHTS = [["qkv.weight", [3, 4]], ["out.bias", [4]]]
RENAMED = [["linear.weight", [3, 4]], ["projection.bias", [4]]]
SHAPE = [2, 7, 12]
RAISED = Looked("error", "give another shape", "raises: RuntimeError: no (mine.py, line 3)")
DIED = Looked("crashed", "ended with exit status 7")


@contextmanager
def checkouts(folder: Path, patch: pytest.MonkeyPatch, *described: dict[str, Any] | Looked) -> Iterator[Duel]:
    """Open a duel of two folders whose modules are as described."""
    folders = [folder / name for name in (BEFORE, AFTER)]
    for each in folders:
        each.mkdir(parents=True, exist_ok=True)
    own = {"input": SHAPE, "output": SHAPE, "weights": WEIGHTS}
    modules = {each: {"mine": (f"{each}/mine.py", f"digest of {each.name}", "1.0")} for each in folders}
    looks = {
        str(each): of if isinstance(of, Looked) else Looked("ok", seen={**own, "modules": modules[each], **of})
        for each, of in zip(folders, described, strict=False)
    }

    def replied(pool: Pool, *_: object) -> Looked:
        return looks[pool.paths[-1]]

    patch.setattr(duel_module, "replied", replied)
    before, after_it = (
        Side(name, "sdpa", checkout=str(each)) for name, each in zip((BEFORE, AFTER), folders, strict=True)
    )
    with opened(folder, (before, after_it)) as duel:
        yield duel


@pytest.mark.parametrize(("weights", "is_same"), [(WEIGHTS, True), (RENAMED, False)], ids=["the same", "renamed"])
def test_the_second_side_is_judged_by_the_first_if_weights_are_the_same(
    weights: list[Any], is_same: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With other weights each side has its own judge.

    The control and the first side always have the first side's judge.
    """
    with checkouts(tmp_path, monkeypatch, {}, {"weights": weights}) as duel:
        before, after, control = (duel.member(Case(point(), name)) for name in NAMES)
        own, other = (ground.pool for ground in duel.sides)
        assert (before.pool, after.pool, control.pool) == (own, other, own)
        assert before.judged_by == control.judged_by == (own, point())
        assert after.judged_by == ((own if is_same else other), point())
        assert (before.takes_weights, after.takes_weights) == (False, is_same)
        context = duel.environment.context
        assert context["weights"] == (SAME if is_same else DIFFER)
        packages = [context["sides"][name]["packages"]["mine"] for name in (BEFORE, AFTER)]
        assert [(each["file"], each["digest"]) for each in packages] == [
            ("mine.py", "digest of before"),
            ("mine.py", "digest of after"),
        ]


@pytest.mark.parametrize(
    ("described", "status", "detail"),
    [
        (({}, {"output": [2, 8, 12]}), "incorrect", "after has output shape [2, 8, 12], but before has [2, 7, 12]"),
        (({}, DIED), "crashed", "after ended with exit status 7"),
        ((RAISED, {}), "error", "before raises: RuntimeError: no (mine.py, line 3)"),
    ],
    ids=["output", "dies", "before raises"],
)
def test_a_side_that_is_broken_is_a_result(
    described: tuple[Any, ...], status: str, detail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row has the reason, the other side is not timed alone, and nothing of it is tried again."""
    with checkouts(tmp_path, monkeypatch, *described) as duel:
        [*duel.measured()]
    ends = {name: (own.status, own.own_cause, own.detail) for name, (own,) in records(tmp_path).items()}
    broken = BEFORE if RAISED is described[0] else AFTER
    assert ends.pop(broken) == (status, True, detail)
    assert {each[:2] for each in ends.values()} == {("skipped", False)}


@pytest.mark.parametrize(
    ("described", "words"),
    [
        (({}, {"modules": {"mine": ("/elsewhere/mine.py", "", "")}}), ("after (--checkout", "mine from /elsewhere")),
        (({}, {"modules": {}}), ("after (--checkout", "no package was imported from the checkout")),
        ((DIED, RAISED), ("before (--checkout", "crashed: ended with exit status 7")),
    ],
    ids=["elsewhere", "nothing", "both broken"],
)
def test_sides_that_are_not_what_was_asked_for_are_a_wrong_request(
    described: tuple[Any, ...], words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code from elsewhere than the checkout is not that side's; what neither side can do was asked for wrongly."""
    said = refusal(checkouts(tmp_path, monkeypatch, *described).__enter__)
    assert all(each in said for each in words)


def test_two_layers_share_their_processes_and_are_each_judged_by_themselves(tmp_path: Path) -> None:
    """Each side is measured at its own point, and nothing is said about its outputs."""
    layers = ("mine:First", "mine:Second")
    before, after = (Side(name, "sdpa", layer=layer) for name, layer in zip(NAMES, layers, strict=False))
    with opened(tmp_path, (before, after), layers=layers) as duel:
        assert duel.sides[0].pool is duel.sides[1].pool
        [*duel.measured()]
        members = [duel.member(Case(point(), name)) for name in NAMES]
        assert [each.point.layer for each in members] == [*layers, layers[0]]
        assert [each.judged_by[1].layer for each in members] == [*layers, layers[0]]
    assert {each.status for own in records(tmp_path).values() for each in own} == {"ok"}
