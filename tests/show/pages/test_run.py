"""The page of a run as a file: what it holds, without a browser."""

import dataclasses
import re
from pathlib import Path

import pytest

from bench.analyse.analysed_run import AnalysedRun
from bench.show.pages import run as pages_run
from bench.show.pages.run import page, write
from bench.store import environment
from tests.make import runs
from tests.make.records import ORIGIN, case, record
from tests.make.records import environment as environment_of
from tests.make.runs import saved
from tests.refusals import refusal

HOSTILE = "</script><script>alert('x')</script>"
PAIR = [case("eager"), case("sdpa")]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> AnalysedRun:
    """Return a run of `quick`."""
    return AnalysedRun(runs.quick(tmp_path_factory.mktemp("quick") / "run"))


@pytest.fixture(scope="module")
def text(quick: AnalysedRun) -> str:
    """Return the page of that run."""
    return page(quick)


def test_the_title_names_the_sweep_and_the_device(tmp_path: Path) -> None:
    """A folder's name, which may be a date, stands among the facts; it is the title if no sweep is known."""
    run = AnalysedRun(runs.of(tmp_path / "monday", PAIR))
    assert "<h1>monday</h1>" in page(run)
    here = environment_of()
    environment.save(dataclasses.replace(here, context={**here.context, "sweep": "quick"}), run.folder)
    device = run.table["device_name"].iloc[0]
    assert f"<h1>Sweep quick on {device}</h1>" in page(AnalysedRun(run.folder))


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["__main__.py", "bench", "--run", "here", "--batch", "4"], "python -m pytest bench --batch 4"),
        (["__main__.py", "run", "--run=here"], "python -m bench run"),
        (["__main__.py", "duel", "eager", "sdpa", "--report"], "python -m bench duel eager sdpa --report"),
        (["/usr/bin/attention-bench", "duel", "eager", "sdpa"], "attention-bench duel eager sdpa"),
    ],
)
def test_a_page_has_the_command_that_measures_its_run_again(tmp_path: Path, words: list[str], command: str) -> None:
    """As the documents write it, without the folder."""
    run = runs.of(tmp_path / "run", PAIR)
    here = environment_of()
    environment.save(dataclasses.replace(here, context={**here.context, "command": words}), run)
    assert f"<code>{command}</code>" in page(AnalysedRun(run))


def test_the_answer_comes_first_and_nothing_is_loaded_from_elsewhere(text: str) -> None:
    """Before any chart stands what to use; then what failed, and whether the machine was quiet.

    The policy allows the page's own scripts alone.
    """
    assert text.index("Use sdpa: at all 12 points it takes at most 1.02x as long") < text.index("Point by point")
    assert "2 of 84 cases (12 points × 7 implementations) have no time" in text
    assert "The machine was quiet" in text
    assert re.findall(r"""(?:src|href)=["'](?!data:|#)[^"']*""", text) == []
    assert "default-src 'none'" in text


def test_the_page_says_when_and_under_which_variables_it_was_measured(tmp_path: Path) -> None:
    """A run ends with its last replicate; a row's own time is that of the first one."""
    starts = ["2025-01-31T12:00:30Z", "2025-01-31T12:03:55Z"]
    origins = [dataclasses.replace(ORIGIN, started_at=start) for start in starts]
    records = [record(process=number, origin=origin) for number, origin in enumerate(origins)]
    run = AnalysedRun(saved(tmp_path / "run", records))
    environment.save(environment_of(variables={"TORCHINDUCTOR_FREEZING": "1"}), run.folder)
    facts = re.findall(r'<th scope="row">(.*?)</th><td[^>]*>(.*?)</td>', page(AnalysedRun(run.folder)))
    assert {("measured", "2025-01-31 12:00 to 12:04 UTC"), ("TORCHINDUCTOR_FREEZING", "1")} <= {*facts}


def test_every_case_is_in_the_table_and_every_picture_above_it(text: str) -> None:
    """With what failed in full; pictures are in the file."""
    body = text[text.index('id="table"') :]
    assert len(re.findall(r"<tr><td>[^<]*</td><td>([^<]*)</td>", body)) == 84
    assert body.count("mha needs token_len = channels") == 2
    headings = re.findall(r'<img src="data:image/svg[^"]*" alt="([^·"]*) ·', text)
    assert {"Latency against tokens", "Peak memory against tokens", "What to use over tokens and heads"} <= {*headings}


def test_a_large_run_says_what_is_left_out_and_how_to_get_it(
    quick: AnalysedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer counts all cases."""
    monkeypatch.setattr(pages_run, "MOST_CASES", 30)
    text = page(quick)
    assert "has the first 30 of 84 cases" in text
    assert "python -m bench show run prints them" in text
    assert "Use sdpa: at all 12 points it takes at most 1.02x as long" in text


def test_a_hostile_detail_is_text(tmp_path: Path) -> None:
    """Whatever a kernel writes, nothing of it becomes an element."""
    records = [record("eager"), dataclasses.replace(record("sdpa"), status="error", detail=HOSTILE)]
    text = page(AnalysedRun(runs.saved(tmp_path / "run", records)))
    assert HOSTILE not in text
    assert "alert(&#39;x&#39;)" in text


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line names the file and the reason."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    run = AnalysedRun(runs.of(tmp_path / "run", PAIR))
    monkeypatch.setattr("bench.store.files.replace", full)
    assert refusal(write, run) == f"cannot write {run.page} (No space left on device)"
