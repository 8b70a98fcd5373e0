"""Profiles on disk."""

import json
from pathlib import Path

import pytest

from bench.store import profile
from tests.make import profiles
from tests.refusals import refusal


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run folder with an empty folder of traces."""
    (tmp_path / profile.TRACES).mkdir()
    return tmp_path


def test_what_is_saved_is_what_is_loaded(run: Path) -> None:
    """Profiles with stages, of training, and of a kernel of one's own come back as they went in."""
    saved = [profiles.profile("my.kernel:adapt"), profiles.graph(), profiles.graph(mode="train")]
    paths = [profile.save(each, run) for each in saved]
    assert sorted(profile.load(run), key=lambda each: each.case.name) == sorted(saved, key=lambda each: each.case.name)
    assert all(":" not in path.name for path in paths)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "x.profile.json is not a profile"),
        (json.dumps({**profiles.profile().to_json(), "schema_version": 99}), "schema_version is 99, but this suite"),
        (json.dumps({**profiles.profile().to_json(), "stages": [{"name": 1}]}), "stages"),
        (json.dumps({**profiles.profile().to_json(), "batch": "8"}), "batch"),
    ],
)
def test_a_file_that_is_no_profile_is_refused(run: Path, content: str, message: str) -> None:
    """A line names the file, and for another schema both versions."""
    (run / profile.TRACES / f"x{profile.SUFFIX}").write_text(content)
    assert message in refusal(profile.load, run)
