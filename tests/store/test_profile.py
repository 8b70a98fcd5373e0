"""Profiles on disk."""

import dataclasses
import json
from pathlib import Path

import pytest

from bench.store import profile
from bench.store.profile import Kernel
from tests.make import profiles
from tests.make.profiles import stepwise
from tests.refusals import refusal


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run folder with an empty folder of traces."""
    (tmp_path / profile.TRACES).mkdir()
    return tmp_path


def test_what_is_saved_is_what_is_loaded(run: Path) -> None:
    """Profiles with stages, of training, and of a kernel of one's own come back as they went in."""
    saved = [profiles.profile("my.kernel:adapt"), stepwise(), stepwise(mode="train")]
    paths = [profile.save(each, run) for each in saved]
    assert sorted(profile.load(run), key=lambda each: each.case.name) == sorted(saved, key=lambda each: each.case.name)
    assert all(":" not in path.name for path in paths)


def test_profiles_of_earlier_versions_can_be_read() -> None:
    """Of the spans that they kept, the kernels of a GPU are left, and of blocks of memory none."""
    spans = [
        {"name": name, "kind": kind, "lane": lane, "depth": 0, "start_s": 1.0, "duration_s": 2.0}
        for name, kind, lane in (("aten::mm", "operator", "host"), ("gemm", "kernel", "stream 7"))
    ]
    values = profiles.profile().to_json()
    del values["kernels"]
    blocks = [{"bytes": 8, "operator": "aten::mm", "stage": "", "start_s": 0.0, "end_s": None}]
    read = profile.Profile.from_json({**values, "spans": spans, "blocks": blocks})
    assert read == dataclasses.replace(profiles.profile(), kernels=(Kernel("gemm", "stream 7", 1.0, 2.0),))


def test_points_stand_by_their_size(run: Path) -> None:
    """1024 tokens come after 197; a run without a folder of traces has no profiles."""
    for tokens in (1024, 50, 197):
        profile.save(profiles.profile(num_tokens=tokens), run)
    assert [each.case.point.num_tokens for each in profile.load(run)] == [50, 197, 1024]
    assert profile.load(run / "nowhere") == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((text, "x.profile.json is no profile") for text in ("", "[]", "{}", '{"schema_version": 1}', '{"case": 1}')),
        (json.dumps({**profiles.profile().to_json(), "schema_version": "new"}), "x.profile.json is no profile"),
        (json.dumps({**profiles.profile().to_json(), "schema_version": 99}), "99; this suite reads up to"),
        (json.dumps({**profiles.profile().to_json(), "stages": [{"name": 1}]}), "stages"),
        (json.dumps({**profiles.profile().to_json(), "spans": [1]}), "spans"),
        (json.dumps({**profiles.profile().to_json(), "batch": "8"}), "batch"),
    ],
)
def test_a_file_that_is_no_profile_is_refused(run: Path, content: str, message: str) -> None:
    """A line names the file, or for a newer schema the versions that this suite reads."""
    (run / profile.TRACES / f"x{profile.SUFFIX}").write_text(content)
    assert message in refusal(profile.load, run)
