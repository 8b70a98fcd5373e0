"""The page of a run as a file: its contents, without a browser."""

import dataclasses
import re
import shutil
from pathlib import Path

import pytest

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.rows import measured, unmeasured
from bench.analyse.standing import by_rank
from bench.show import answer
from bench.show.pages import run as pages_run
from bench.show.pages.run import page
from bench.store import environment
from bench.store import profile as store
from tests.make import runs
from tests.make.records import ORIGIN, record
from tests.make.records import environment as environment_of


def with_context(folder: Path, **context: object) -> str:
    """Return the page of a run that was started under these circumstances."""
    here = environment_of(variables={"TORCHINDUCTOR_FREEZING": "1"})
    environment.save(dataclasses.replace(here, context={**here.context, **context}), folder)
    return page(AnalysedRun(folder))


def test_the_page_says_where_when_and_under_which_variables_it_was_measured(tmp_path: Path) -> None:
    """A run ends with its last replicate; its folder's name is the title if no sweep is known."""
    starts = ["2025-01-31T12:00:30Z", "2025-01-31T12:03:55Z"]
    origins = [dataclasses.replace(ORIGIN, started_at=start) for start in starts]
    run = runs.saved(
        tmp_path / "monday", [record(process=number, origin=origin) for number, origin in enumerate(origins)]
    )
    assert "<h1>monday</h1>" in page(AnalysedRun(run))
    text = with_context(run, sweep="quick", half_precision="no amx_bf16")
    assert f"<h1>Sweep quick on {ORIGIN.device_name}</h1>" in text
    facts = re.findall(r'<th scope="row">(.*?)</th><td[^>]*>(.*?)</td>', text)
    told = {("TORCHINDUCTOR_FREEZING", "1"), ("bfloat16 and float16", "no amx_bf16")}
    assert {("measured", "2025-01-31 12:00 to 12:04 UTC"), *told} <= {*facts}


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["__main__.py", "bench", "--run", "here", "--batch", "4"], "python -m pytest bench --batch 4"),
        (["__main__.py", "run", "--run=here"], "python -m bench run"),
        (["__main__.py", "duel", "eager", "sdpa", "--report"], "python -m bench duel eager sdpa --report"),
    ],
)
def test_a_page_has_the_command_that_measures_its_run_again(tmp_path: Path, words: list[str], command: str) -> None:
    """As the documents write it, without the folder."""
    run = runs.saved(tmp_path / "run", [record()])
    assert f"<code>{command}</code>" in with_context(run, command=words)


def test_the_answer_comes_first_and_nothing_is_loaded_from_elsewhere(wide: AnalysedRun) -> None:
    """Then points, pictures, profiles, and a row for each case; the policy allows the page's own script alone.

    Profiles have a picture for each point, and below it the tables of each case, folded.
    """
    text, points = wide.page.read_text(encoding="utf-8"), answer.points_of(wide.whole, wide.planned)
    headings = [f"<h2>{name}</h2>" for name in ("Points", "Pictures", "Profiles", "All rows")]
    parts = [*answer.answer(points, "eager"), *headings]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    body = text[text.index('id="rows"') : text.index("<h2>How")]
    assert re.findall(r'data-h="implementation">([^<]*)', body) == [
        str(row["implementation"]) for at in points for row in (*by_rank(measured(at.rows)), *unmeasured(at.rows))
    ]
    assert text.count("<svg") == text.count("<figure") > 5
    assert re.findall(r"""(?:src|href)=["'](?!data:|#)[^"']*""", text) == []
    assert "default-src 'none'" in text
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids)) > 50
    assert len(text.encode()) < 300_000
    section = text[text.index("<h2>Profiles</h2>") : text.index("<h2>All rows</h2>")]
    assert section.count("<svg") == 2
    assert sorted(re.findall(r"<summary>([^<]*)", section)) == ["eager", "graph", "mine:" + "kernel" * 30]
    assert section.partition("<details")[2].count("aten::addmm") == 3
    assert 'data-h="kernels"' not in section


def test_a_large_run_says_what_is_left_out_and_how_to_get_it(
    tmp_path: Path, wide: AnalysedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds for rows and pictures; without profiles there is no section for them."""
    shutil.copytree(wide.folder, tmp_path / "large run", ignore=shutil.ignore_patterns(store.TRACES))
    run = AnalysedRun(tmp_path / "large run")
    monkeypatch.setattr(pages_run, "MOST_ROWS", 30)
    monkeypatch.setattr(pages_run, "MOST_PICTURES", 2)
    text = page(run)
    assert f"These are 30 of {len(run.table)} rows." in text
    assert "python -m bench show &#39;large run&#39; prints all rows" in text
    assert "python -m bench plot &#39;large run&#39; draws all others" in text
    assert text.count("<svg") == 2
    assert "Profiles" not in text


@pytest.mark.parametrize("detail", ["</script><script>alert('x')</script>", "\x1b[31m<b>red</b>", "=1+1<img src=x>"])
def test_a_hostile_detail_is_text(tmp_path: Path, detail: str) -> None:
    """Whatever a kernel writes, nothing of it becomes an element, and control characters are seen."""
    records = [record("eager"), dataclasses.replace(record("sdpa"), status="error", detail=detail)]
    text = page(AnalysedRun(runs.saved(tmp_path / "run", records)))
    assert text.count("<script>") == 1
    assert not any(each in text for each in ("\x1b", "<b>", "<img"))
    assert any(each in text for each in ("alert(&#39;x&#39;)", "&lt;b&gt;red", "=1+1&lt;img"))
