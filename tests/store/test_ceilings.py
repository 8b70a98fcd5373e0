"""The best rates that devices have shown: kept by environment and setting, and only ever raised."""

from pathlib import Path

import pytest

from bench.store import ceilings
from tests.points import point

AT = point()
SLOW, FAST = {"flops_per_s": 1e9, "bytes_per_s": 5e9}, {"flops_per_s": 2e9, "bytes_per_s": 4e9}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file in which rates are kept."""
    file = tmp_path / "results" / "ceilings.json"
    monkeypatch.setattr(ceilings, "PATH", file)
    return file


@pytest.mark.usefixtures("path")
def test_rates_are_kept_by_environment_device_dtype_and_threads() -> None:
    """A rate of one thread says nothing about two, or about another environment."""
    assert ceilings.recall("here", AT) is None
    ceilings.remember("here", AT, SLOW)
    assert ceilings.recall("here", AT) == SLOW
    assert ceilings.recall("here", point(num_tokens=99)) == SLOW
    for other in (point(threads=2), point(dtype="bfloat16"), point(device="cuda", timing="device-hot")):
        assert ceilings.recall("here", other) is None
    assert ceilings.recall("there", AT) is None


def test_a_rate_is_only_raised(path: Path) -> None:
    """Each of the two keeps its best, and what is no better isn't written."""
    ceilings.remember("here", AT, SLOW)
    ceilings.remember("here", AT, FAST)
    assert ceilings.recall("here", AT) == {"flops_per_s": 2e9, "bytes_per_s": 5e9}
    path.chmod(0o400)
    before = path.stat().st_mtime_ns
    ceilings.remember("here", AT, SLOW)
    ceilings.remember("here", AT, {})
    assert path.stat().st_mtime_ns == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("content", ["", "[]", '{"here": 1}', '{"here": {"cpu float32 1": 1}}', "{"])
def test_a_file_that_is_none_is_as_good_as_no_file(path: Path, content: str) -> None:
    """What can't be read is taken again, and overwritten."""
    path.parent.mkdir()
    path.write_text(content)
    assert ceilings.recall("here", AT) is None
    ceilings.remember("here", AT, SLOW)
    assert ceilings.recall("here", AT) == SLOW


def test_a_folder_that_can_not_be_written_is_no_trouble(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is kept, and nothing is said."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(ceilings, "PATH", tmp_path / "file" / "ceilings.json")
    ceilings.remember("here", AT, SLOW)
    assert ceilings.recall("here", AT) is None
