"""The environment of a run: its identity, its short name, its file."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.store.environment import ENVIRONMENT, Environment, differences, load, save
from tests.make.records import environment
from tests.refusals import refusal

texts = st.text(max_size=3)
leaves = st.none() | st.booleans() | st.integers(-3, 3) | texts
identities = st.dictionaries(texts, leaves | st.dictionaries(texts, leaves, max_size=2), max_size=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cores": 4}, "cores: 2 against 4"),
        ({"gpus": {"cuda:0": "H200"}}, "gpus: {} against {'cuda:0': 'H200'}"),
        ({"cudnn": "9.1"}, "cudnn: not recorded against '9.1'"),
    ],
)
def test_each_fact_that_differs_has_a_line(change: dict[str, Any], message: str) -> None:
    """The line has both values, or says which side lacks the fact, in both directions."""
    assert differences(environment(), environment(**change)) == [message]
    (name,) = change
    lines = differences(environment(**change, torch="2.14.0"), environment())
    assert [line.partition(":")[0] for line in lines] == [name, "torch"]


def test_each_environment_variable_is_a_fact_of_its_own() -> None:
    """A variable that a run lacks was not set there; an older run has none, and is like a run without any."""
    frozen = environment(variables={"OMP_DYNAMIC": "1", "TORCHINDUCTOR_FREEZING": "1"})
    assert differences(environment(), frozen) == [
        "variable OMP_DYNAMIC: not set against '1'",
        "variable TORCHINDUCTOR_FREEZING: not set against '1'",
    ]
    unlike = environment(variables={"OMP_DYNAMIC": "1", "TORCHINDUCTOR_FREEZING": "0"})
    assert differences(frozen, unlike) == ["variable TORCHINDUCTOR_FREEZING: '1' against '0'"]
    assert frozen.env_id != unlike.env_id != environment().env_id


@settings(max_examples=50)
@given(identities, identities)
def test_env_ids_differ_if_there_are_differences(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Two environments have different names exactly if they have a difference."""
    base, new = Environment(one, {}, {}), Environment(other, {}, {})
    assert (base.env_id != new.env_id) == bool(differences(base, new))


def test_a_run_keeps_its_first_environment(tmp_path: Path) -> None:
    """The environment comes back as it was saved, with its name.

    A resumed run's stays, because its rows came from there.
    """
    assert load(tmp_path) is None
    first = environment(wait_policy={"OMP_WAIT_POLICY": "active"})
    save(first, tmp_path)
    save(environment(cpu="Another CPU"), tmp_path)
    assert load(tmp_path) == first
    assert json.loads((tmp_path / ENVIRONMENT).read_text(encoding="utf-8"))["env_id"] == first.env_id


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b'{"identity": {}, "state": {}}'])
def test_a_broken_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """A file that isn't an environment is refused in one line with its path."""
    (tmp_path / ENVIRONMENT).write_bytes(content)
    assert refusal(load, tmp_path).startswith(f"{tmp_path / ENVIRONMENT} is not an environment of attention-bench (")


# Other runtimes


def with_runtimes(**versions: str) -> Environment:
    """Return an environment with these versions of runtimes."""
    return dataclasses.replace(environment(), runtimes=versions)


def test_a_runtime_that_both_runs_used_must_be_the_same() -> None:
    """The runtime's version is a difference like torch's; a runtime that only one run used isn't."""
    older, newer = with_runtimes(openvino="2026.3", onnxruntime="0.10"), with_runtimes(openvino="2026.4")
    assert differences(older, newer) == ["openvino: '2026.3' against '2026.4'"]
    assert differences(with_runtimes(onnxruntime="0.10"), newer) == []
    assert older.env_id == newer.env_id == environment().env_id


def test_a_run_that_goes_on_remembers_new_runtimes(tmp_path: Path) -> None:
    """The file gets the missing ones, and keeps everything else."""
    save(dataclasses.replace(environment(), context={"host": "first"}), tmp_path)
    save(with_runtimes(openvino="2026.4"), tmp_path)
    save(with_runtimes(onnxruntime="0.10"), tmp_path)
    loaded = load(tmp_path)
    assert loaded is not None
    assert (loaded.runtimes, loaded.context) == ({"openvino": "2026.4", "onnxruntime": "0.10"}, {"host": "first"})
