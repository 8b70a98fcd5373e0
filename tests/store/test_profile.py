"""Profiles on disk."""

import json
from pathlib import Path

import pytest

from bench.plan.errors import WrongRequest
from bench.store import profile
from tests import profiles


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run folder with an empty folder of traces."""
    (tmp_path / profile.TRACES).mkdir()
    return tmp_path


def test_what_is_saved_is_what_is_loaded(run: Path) -> None:
    """Profiles with stages, of training, and of a kernel of one's own come back as they went in."""
    saved = [profiles.profile("my.kernel:adapt"), profiles.stepwise(), profiles.stepwise(mode="train")]
    paths = [profile.save(each, run) for each in saved]
    assert sorted(profile.load(run), key=lambda each: each.case.name) == sorted(saved, key=lambda each: each.case.name)
    assert all(":" not in path.name for path in paths)


def test_points_stand_by_their_size(run: Path) -> None:
    """1024 tokens come after 197."""
    for tokens in (1024, 50, 197):
        profile.save(profiles.profile(num_tokens=tokens), run)
    assert [each.case.point.num_tokens for each in profile.load(run)] == [50, 197, 1024]


def test_a_run_without_profiles_has_none(tmp_path: Path) -> None:
    """No folder of traces is no error."""
    assert profile.load(tmp_path) == []


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema_version": 1}', '{"schema_version": "new"}'])
def test_a_file_that_is_no_profile_is_refused(run: Path, content: str) -> None:
    """One line names the file."""
    (run / profile.TRACES / f"x{profile.SUFFIX}").write_text(content)
    with pytest.raises(WrongRequest, match=r"x\.profile\.json is no profile of attention-bench"):
        profile.load(run)


def test_a_newer_schema_is_refused(run: Path) -> None:
    """The line says which versions this suite reads."""
    values = {**profiles.profile().to_json(), "schema_version": profile.SCHEMA_VERSION + 1}
    (run / profile.TRACES / f"x{profile.SUFFIX}").write_text(json.dumps(values))
    with pytest.raises(WrongRequest, match=f"schema_version {profile.SCHEMA_VERSION + 1}; this suite reads up to"):
        profile.load(run)
