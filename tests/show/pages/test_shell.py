"""What all pages share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import vl_convert

from bench.show.pages import shell


@pytest.fixture
def bundles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """Return the versions for which Vega's JavaScript was put together, with a folder of caches of the test's own."""
    versions: list[str] = []

    def bundle(vl_version: str) -> str:
        versions.append(vl_version)
        return "vega"

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    shell.vega_script.cache_clear()
    yield versions
    shell.vega_script.cache_clear()


def test_vega_is_put_together_once_for_all_processes_of_a_user(bundles: list[str]) -> None:
    """The second process, whose memory is empty, reads the script that the first has kept."""
    first = shell.vega_script()
    shell.vega_script.cache_clear()
    assert shell.vega_script() == first == "vega"
    assert len(bundles) == 1


def test_another_version_of_vega_has_a_script_of_its_own(bundles: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that an older vl-convert left is not used."""
    shell.vega_script()
    shell.vega_script.cache_clear()
    monkeypatch.setattr(shell, "version", lambda _package: "another")
    shell.vega_script()
    assert len(bundles) == 2


def test_a_user_without_a_home_gets_no_folder_of_caches(
    bundles: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing is written into the folder in which the command runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert shell.vega_script() == "vega"
    assert not any(tmp_path.iterdir())


def test_a_folder_of_caches_that_cannot_be_written_costs_time_alone(bundles: list[str], tmp_path: Path) -> None:
    """A file stands in the place of the folder."""
    (tmp_path / "caches").write_text("", encoding="utf-8")
    assert shell.vega_script() == "vega"
    assert len(bundles) == 1
