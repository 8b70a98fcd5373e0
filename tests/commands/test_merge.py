"""The command that joins shards, and what shows a run of several machines."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.cli import main
from bench.plan.grid import Shard
from bench.show.pages import comparison
from tests.engine.test_merge import HERE, OTHER, SWEEP, run, shards

NAMED = dataclasses.replace(OTHER, context={**OTHER.context, "machine_name": "big node"})


def test_shards_of_one_machine_are_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says what was added and how much of the sweep there is; `show` and `compare` take the result."""
    parts, out = shards(tmp_path, 2), tmp_path / "out"
    assert main(["merge", str(out), str(parts[0])]) == 0
    assert "16 records of 4 of 8 points" in capsys.readouterr().out
    assert main(["merge", str(out), *map(str, parts)]) == 0
    assert "32 records of 8 of 8 points" in capsys.readouterr().out
    assert main(["show", str(out)]) == 0
    assert "sdpa" in capsys.readouterr().out


def test_two_machines_are_shown_separately(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each under its name, then what to use where; a comparison takes those that both runs have."""
    here = shards(tmp_path, 1)
    there = run(tmp_path / "there", SWEEP.sharded(Shard(1, 1)), NAMED)
    out = tmp_path / "out"
    assert main(["merge", str(out), *map(str, here), str(there)]) == 0
    capsys.readouterr()
    assert main(["show", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "machine big-node" in printed
    lines = printed.splitlines()
    (header,) = [number for number, line in enumerate(lines) if line.split()[-2:] == ["big-node", HERE.env_id]]
    assert [line.split()[0] for line in lines[header + 1 :]] == [f"N={tokens}" for tokens in range(1, 9)]
    assert main(["merge", str(tmp_path / "alone"), str(there)]) == 0
    capsys.readouterr()
    assert main(["compare", str(out), str(tmp_path / "alone")]) == 0
    assert "machine big node" in capsys.readouterr().out


def test_each_machine_has_a_page_of_its_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The machine's env_id stands in the name of the file, which the machine's line names.

    Files of one machine are refused.
    """
    pages: dict[str, Path] = {}
    monkeypatch.setattr(comparison, "write", lambda path, _report, base, _new: pages.update({path.name: base.folder}))
    there, out = run(tmp_path / "there", SWEEP, NAMED), str(tmp_path / "out")
    assert main(["merge", out, str(shards(tmp_path, 1)[0]), str(there)]) == 0
    assert main(["compare", out, out, "--report", "page.html"]) == 0
    assert f"machine big node, page page-{NAMED.env_id}.html" in capsys.readouterr().out
    assert {*pages} == {f"page-{HERE.env_id}.html", f"page-{NAMED.env_id}.html"}
    assert pages[f"page-{NAMED.env_id}.html"] == tmp_path / "out" / "big-node"
    assert main(["compare", out, out, "--to", "text"]) == 2


def test_no_machine_in_both_is_not_comparable(tmp_path: Path, refused: Callable[..., str]) -> None:
    """The line names the machines of both."""
    here, there = shards(tmp_path, 1)[0], run(tmp_path / "there", SWEEP, NAMED)
    main(["merge", str(tmp_path / "out"), str(here), str(there)])
    third = run(tmp_path / "third", SWEEP, dataclasses.replace(OTHER, identity={**OTHER.identity, "cores": 64}))
    assert "no machine is in both" in refused("compare", tmp_path / "out", third, status=3)
