"""What the README says exists."""

import re
import tomllib
from pathlib import Path

import pytest

from bench.cli import main
from bench.plan.sweep import load_sweep, shipped_names

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_it_begins_with_the_two_commands() -> None:
    """Installing nox and running the sweep is the first thing said, the tests the second."""
    first = README.split("```")[1]
    assert "pip install nox && nox -s bench" in first
    assert "nox -s tests" in first


def test_every_nox_session_it_names_exists() -> None:
    """`nox -s NAME` is written only for sessions of noxfile.py."""
    sessions = set(re.findall(r"@nox\.session\ndef (\w+)", (ROOT / "noxfile.py").read_text(encoding="utf-8")))
    assert set(re.findall(r"nox -s (\w+)", README)) <= sessions


def test_every_command_it_names_exists(capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m bench NAME` is written only for commands of the command line."""
    with pytest.raises(SystemExit):
        main(["--help"])
    known = capsys.readouterr().out
    assert all(name in known for name in set(re.findall(r"python -m bench (\w+)", README)))


def test_every_shipped_sweep_is_named() -> None:
    """A reader learns of all sweeps."""
    assert all(f"`{name}`" in README for name in shipped_names())


def test_its_sweep_file_is_a_sweep(tmp_path: Path) -> None:
    """The example can be copied and run as it stands."""
    content = README.split("```toml\n")[1].split("```")[0]
    path = tmp_path / "mine.toml"
    path.write_text(content, encoding="utf-8")
    assert tomllib.loads(content)["processes"] == 3
    assert len(load_sweep(str(path)).points) == 3


def test_every_file_it_links_is_there() -> None:
    """Links into the project and pictures lead somewhere."""
    targets = [found for found in re.findall(r"\]\(([^)#]+)\)", README) if not found.startswith("https://")]
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
