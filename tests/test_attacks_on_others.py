"""Implementations that harm others end with what they did in their rows; the others are measured."""

import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from bench.engine import run as engine
from bench.plan.case import Point
from bench.plan.sweep import Effort, Sweep
from bench.sampling.rounds import Length
from bench.store.table import load
from tests.make.points import point

pytestmark = pytest.mark.slow

ENDED = "error: while it was asked, processes of this run that waited ended: "
CHANGED = "error: (while it was asked, )?changed how other processes of this run are scheduled: "


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have temporary folders of their own: the attacks spoil those of all runs, also of tests beside these."""
    (folder := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)


def ends(asked: Mapping[Point, Iterable[str]], folder: Path, length: Length) -> dict[str, str]:
    """Return the status and the detail of implementations at the layers of points, measured until none is missing."""
    names = tuple(dict.fromkeys(name for names in asked.values() for name in names))
    sweep = Sweep("attacks", tuple(asked), names, effort=Effort(processes=1, timeout_s=60))
    with engine.Run(sweep, folder) as run:
        for at, own in asked.items():
            while missing := [name for name in run.missing(at) if name in own]:
                run.replicate({at: missing}, length)
    rows = load(folder).fillna({"detail": ""}).to_dict("records")
    return {f"{row['layer']} {row['implementation']}": f"{row['status']}: {row['detail']}" for row in rows}


@pytest.mark.usefixtures("scripted_processes")
@pytest.mark.parametrize(
    "attacks",
    [
        {"kills": ENDED, "terminates_one": ENDED, "kills_when_made": ENDED},
        {
            "limits_memory": f"{CHANGED}.*limits",
            "limits_memory_when_made": CHANGED,
            "limits_cpu_of_one": CHANGED,
            "is_first_without_memory": CHANGED,
        },
    ],
    ids=["signals", "limits"],
)
def test_who_harms_others_is_named_and_they_are_measured(attacks: dict[str, str], tmp_path: Path) -> None:
    """By a signal or a limit, in a call or before: its row says what it did."""
    expected = {"eager": "ok: ", "sdpa": "ok: ", **{f"test:{name}": end for name, end in attacks.items()}}
    seen = ends({point(): [*expected]}, tmp_path, Length(0.05, 12))
    assert {name: seen for name, end in expected.items() if not re.match(end, seen[f"vit {name}"])} == {}
