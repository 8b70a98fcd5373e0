"""Whether two results may be compared."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench.plan.errors import NotComparable, WrongRequest
from bench.store import environment as environments
from bench.store import table
from bench.store.comparable import check_comparable
from bench.store.record import SCHEMA_VERSION
from bench.store.table import COLUMNS, RESULTS
from tests.examples import case, environment


def run(folder: Path, name: str, *rows: dict[str, Any], identity: dict[str, Any] | None = None) -> Path:
    """Write a run folder, with an environment where an identity is given."""
    path = folder / name
    path.mkdir()
    least = {**dict.fromkeys(COLUMNS), "status": "ok", "env_id": "same", "schema_version": SCHEMA_VERSION}
    whole = [{**least, **case().columns(), **row} for row in rows or ({},)]
    table.save(table.typed(pd.DataFrame(whole, columns=list(COLUMNS))), path)
    if identity is not None:
        environments.save(environment(**identity), path)
    return path


@pytest.mark.parametrize("identity", [None, {}, {"gpus": {"cuda:0": "H200"}}])
def test_the_same_conditions_are_comparable(tmp_path: Path, identity: dict[str, Any] | None) -> None:
    """Two runs of one identity may be compared, with or without an environment beside them."""
    base, new = run(tmp_path, "base", identity=identity), run(tmp_path, "new", identity=identity)

    check_comparable(base, new)
    check_comparable(base / RESULTS, str(new))


@pytest.mark.parametrize("as_file", [False, True])
def test_another_identity_is_refused_with_what_differs(tmp_path: Path, as_file: bool) -> None:
    """Runs of two identities are refused in one line that tells every difference."""
    base = run(tmp_path, "base", identity={})
    new = run(tmp_path, "new", identity={"cores": 4, "torch": "2.14.0"})

    with pytest.raises(NotComparable) as refusal:
        check_comparable(*((base / RESULTS, new / RESULTS) if as_file else (base, new)))

    message = str(refusal.value)
    assert "cores: 2 against 4" in message
    assert "torch: '2.13.0' against '2.14.0'" in message
    assert "\n" not in message


@pytest.mark.parametrize(("base_identity", "new_identity"), [(None, None), ({}, None), (None, {}), ({}, {})])
def test_rows_of_another_environment_are_refused(
    tmp_path: Path, base_identity: dict[str, Any] | None, new_identity: dict[str, Any] | None
) -> None:
    """Where the environments don't tell, the env_ids of the rows do."""
    base = run(tmp_path, "base", {"env_id": "one"}, identity=base_identity)
    new = run(tmp_path, "new", {"env_id": "other"}, identity=new_identity)

    with pytest.raises(NotComparable, match=r"one.*other"):
        check_comparable(base, new)


def test_an_unknown_environment_is_another(tmp_path: Path) -> None:
    """A row that doesn't say where it was measured can't be compared with one that does."""
    base, new = run(tmp_path, "base", {"env_id": None}), run(tmp_path, "new", {"env_id": "other"})

    with pytest.raises(NotComparable, match=r"unknown.*other"):
        check_comparable(base, new)


def test_only_shared_cases_count(tmp_path: Path) -> None:
    """Cases that one side alone has are not compared, so that their environment doesn't matter."""
    base = run(tmp_path, "base", {"batch": 1}, {"batch": 2, "env_id": "elsewhere"})
    new = run(tmp_path, "new", {"batch": 1}, {"batch": 3, "env_id": "another place"})

    check_comparable(base, new)


@pytest.mark.parametrize("missing", ["base", "new"])
def test_what_is_no_run_is_a_wrong_request(tmp_path: Path, missing: str) -> None:
    """A side that holds no results is a wrong request, and not two incomparable ones."""
    run(tmp_path, {"base": "new", "new": "base"}[missing])

    with pytest.raises(WrongRequest, match=rf"{missing}.*does not exist") as refusal:
        check_comparable(tmp_path / "base", tmp_path / "new")

    assert not isinstance(refusal.value, NotComparable)
