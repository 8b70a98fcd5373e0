"""Results of two machines, or of one machine with other software, are not compared."""

from pathlib import Path
from typing import Any

import pytest

from bench.plan.errors import NotComparable, WrongRequest
from bench.store import environment as environments
from bench.store import table as store
from bench.store.comparable import check_comparable
from bench.store.environment import Environment
from tests.analyse.tables import row, table
from tests.examples import case, environment


def test_runs_of_one_identity_are_comparable(tmp_path: Path) -> None:
    """The same machine at another hour, under another load, is the same machine."""
    here = environment()
    busy = Environment(here.identity, {"load_1min": 9.0}, {"host": "elsewhere"})
    check_comparable(run(tmp_path / "base", here), run(tmp_path / "new", busy))


def test_runs_of_two_identities_are_refused_with_what_differs(tmp_path: Path) -> None:
    """Each key that differs stands on the one line, with both values."""
    base = run(tmp_path / "base", environment(torch="2.13.0", cores=2))
    new = run(tmp_path / "new", environment(torch="2.14.0", cores=8))
    with pytest.raises(NotComparable) as refusal:
        check_comparable(base, new)
    said = str(refusal.value)
    assert "cores: 2 against 8; torch: '2.13.0' against '2.14.0'" in said
    assert "\n" not in said


def test_results_files_inside_runs_have_their_runs_identity(tmp_path: Path) -> None:
    """The path of results.csv says the same as that of its folder."""
    base = run(tmp_path / "base", environment(cpu="A CPU"))
    new = run(tmp_path / "new", environment(cpu="B CPU"))
    with pytest.raises(NotComparable, match="cpu: 'A CPU' against 'B CPU'"):
        check_comparable(base / store.RESULTS, str(new / store.RESULTS))


@pytest.mark.parametrize("alone", ["both", "one"])
def test_files_without_an_environment_are_compared_by_the_env_id_of_their_rows(tmp_path: Path, alone: str) -> None:
    """A results file that was taken out of its run still carries the identity's short name."""
    base = run(tmp_path / "base", None if alone == "both" else environment(), env_id="aaaa")
    same, other = run(tmp_path / "same", None, env_id="aaaa"), run(tmp_path / "other", None, env_id="bbbb")
    check_comparable(base, same)
    with pytest.raises(NotComparable, match="env_id aaaa against bbbb"):
        check_comparable(base, other)


def test_files_in_one_folder_are_told_apart_by_their_rows(tmp_path: Path) -> None:
    """One environment.json can't be that of two machines' files."""
    folder = run(tmp_path / "run", environment(), env_id="aaaa")
    new = folder / "new.csv"
    table(row(case("sdpa"), [0.0], env_id="bbbb")).to_csv(new, index=False)
    with pytest.raises(NotComparable, match="env_id aaaa against bbbb"):
        check_comparable(folder / store.RESULTS, new)


def test_a_row_that_was_measured_elsewhere_is_found_among_others(tmp_path: Path) -> None:
    """A file put together from two machines is comparable with itself, and not with either machine's."""
    mixed, pure = tmp_path / "mixed.csv", tmp_path / "pure.csv"
    rows = {name: row(case("sdpa", threads=threads), [0.0], env_id=name) for threads, name in enumerate("ab", start=1)}
    table(*rows.values()).to_csv(mixed, index=False)
    table(rows["a"], {**rows["b"], "env_id": "a"}).to_csv(pure, index=False)
    check_comparable(mixed, mixed)
    with pytest.raises(NotComparable, match=r"env_id b against a$"):
        check_comparable(mixed, pure)


def test_what_holds_no_results_is_a_wrong_request(tmp_path: Path) -> None:
    """A path that doesn't exist is not a question of machines."""
    with pytest.raises(WrongRequest, match="does not exist") as refusal:
        check_comparable(run(tmp_path / "base", environment()), tmp_path / "nowhere")
    assert not isinstance(refusal.value, NotComparable)


def run(folder: Path, where: Environment | None, **changes: Any) -> Path:
    """Return a run folder of one row, with its environment where one is given."""
    folder.mkdir()
    if where:
        environments.save(where, folder)
    store.save(table(row(case("sdpa"), [0.0, 0.1], **changes)), folder)
    return folder
