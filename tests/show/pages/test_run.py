"""The page of a run as a file: what it holds, without a browser."""

import dataclasses
import json
import re
import shlex
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.summary import summarise
from bench.plan.case import Case
from bench.show.pages import run_data, shell
from bench.show.pages.run import page, write
from bench.store import environment, journal, saved_run, table, units
from tests.make import runs
from tests.make.points import of_layer
from tests.make.records import ORIGIN, case, record
from tests.make.records import environment as environment_of
from tests.make.results import modelled, of_wide
from tests.make.runs import data_of, saved, unpacked
from tests.refusals import refusal

pytestmark = pytest.mark.usefixtures("without_vega")

HOSTILE = "</script><script>alert('x')</script>"
PAIR = [case("eager"), case("sdpa")]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> AnalysedRun:
    """Return a run of `quick`."""
    return AnalysedRun(runs.quick(tmp_path_factory.mktemp("quick") / "run"))


@pytest.fixture(scope="module")
def text(quick: AnalysedRun, without_vega: None) -> str:
    """Return the page of that run."""
    return page(quick)


@pytest.fixture(scope="module")
def data(text: str) -> dict[str, Any]:
    """Return what the script of that page reads."""
    return data_of(text)


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


def test_every_case_is_in_the_table_and_in_the_data(text: str, data: dict[str, Any], quick: AnalysedRun) -> None:
    """Rows of both are in the same order, with what failed in full."""
    names = data["rows"]["implementation"]
    assert len(names) == 84
    body = text[text.index('id="table"') :]
    assert re.findall(r"<tr><td>[^<]*</td><td>([^<]*)</td>", body) == names
    assert body.count("mha needs token_len = channels") == 2


def test_every_case_has_the_command_that_measures_it_again(data: dict[str, Any], quick: AnalysedRun) -> None:
    """In the order of the table, with the point and the implementation of its row."""
    commands = json.loads(unpacked(data["packed"]))["commands"]
    rows = data["rows"]
    assert [shlex.split(each)[-1 - each.endswith("--no-control")] for each in commands] == rows["implementation"]
    points = dict(zip(rows["point"], (each.split(" --impl ")[0] for each in commands), strict=True))
    assert len({*points.values()}) == len(points) == 12
    words = [shlex.split(each.partition(" --layer ")[2]) for each in commands]
    assert all(quick.again.words(each)[1:] in words for each in table.cases(quick.whole))


def test_series_have_their_points_and_samples_are_those_of_the_journal(data: dict[str, Any]) -> None:
    """The longest series of tokens is shown first; samples are ratios to the latency of the case, to a thousandth."""
    assert {one["axis"] for one in data["series"]} == {"tokens", "heads", "channels"}
    first = data["series"][data["first"]]
    assert (first["axis"], first["xs"]) == ("tokens", [50, 197, 577, 1024])
    assert {"growth-latency", "growth-memory"} < {*data["figures"]}
    assert len(data["figures"]["winners"]["parts"]) == 2
    assert len(data["figures"]["latency"]["ticks"]) == len(data["series"]) + 1
    (samples,) = json.loads(unpacked(data["packed"]))["samples"]
    rows = data["rows"]
    number = rows["implementation"].index("sdpa")
    of = next(each.case for each in of_wide() if each.case.implementation == "sdpa")
    records = [each for each in of_wide() if each.case == of]
    assert [process for process, *_ in samples[str(number)]] == [0, 1, 2]
    for (_, _, ratios, disturbed, _, median), each in zip(samples[str(number)], records, strict=True):
        values = [ratio / data["steps"] * rows["latency_s"][number] for ratio in ratios]
        assert values == pytest.approx(each.samples.values_s, rel=2e-3)
        assert disturbed == []
        assert median == units.seconds(statistics.median(values))


def test_a_cell_of_a_map_says_what_the_point_says(text: str, data: dict[str, Any], tmp_path: Path) -> None:
    """In the words of the table of points; one without any time has no colour of an implementation."""
    cells = [each for part in data["figures"]["winners"]["parts"] for each in part["rows"]]
    assert len(cells) == 14
    for each in cells:
        assert f">{each['words']}</td>" in text
        assert each["first"][0] == each["names"][0] == each["name"]
    cases = [case(name, num_tokens=n, num_heads=h) for n in (50, 197) for h in (3, 6) for name in ("eager", "sdpa")]
    lost = [modelled(each, 0, ("oom", "") if each.point == cases[0].point else None) for each in cases]
    (part,) = data_of(page(AnalysedRun(saved(tmp_path / "lost", lost))))["figures"]["winners"]["parts"]
    names = {each["first"][0]: each["name"] for each in part["rows"]}
    assert names.pop("nothing was measured") == ""
    assert all(first == name for first, name in names.items())


def test_one_query_has_a_map_over_keys_on_its_page(tmp_path: Path) -> None:
    """Its cells are those of its points."""
    sizes = {"num_tokens": 1, "num_heads": 2}
    points = [of_layer("core", **sizes, num_kv_tokens=m, channels=c, token_len=c) for m in (64, 128) for c in (16, 32)]
    records = [modelled(Case(at, name), 0) for at in points for name in ("eager", "sdpa")]
    of = data_of(page(AnalysedRun(saved(tmp_path / "keys", records))))
    (part,) = of["figures"]["winners"]["parts"]
    assert {(cell["x"], cell["y"]): cell["point"] for cell in part["rows"]} == {
        (64, 16): 0, (64, 32): 1, (128, 16): 2, (128, 32): 3,
    }  # fmt: skip


def test_a_large_run_says_what_is_left_out_and_how_to_get_it(
    quick: AnalysedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole points are kept, and the answer counts all; each process keeps the same share of many samples."""
    monkeypatch.setattr(run_data, "MOST_CASES", 30)
    monkeypatch.setattr(shell, "MOST_SAMPLES", 350)
    text = page(quick)
    assert "shows the first 4 of 12 points" in text
    assert "python -m bench show run prints them" in text
    assert "Use sdpa: at all 12 points it takes at most 1.02x as long" in text
    data = data_of(text)
    assert len(data["rows"]["point"]) == 28
    (samples,) = json.loads(unpacked(data["packed"]))["samples"]
    assert data["every"] == 3
    assert {len(values) for case in samples.values() for _, _, values, *_ in case} == {4}


def test_a_hostile_detail_is_text(tmp_path: Path) -> None:
    """Whatever a kernel writes, nothing of it becomes an element."""
    records = [record("eager"), dataclasses.replace(record("sdpa"), status="error", detail=HOSTILE)]
    journal.append(tmp_path, records)
    table.save(summarise(records, "eager"), tmp_path)
    text = page(AnalysedRun(tmp_path))
    assert HOSTILE not in text
    assert "alert(&#39;x&#39;)" in text


def merged(folder: Path, **cases: Sequence[Case]) -> AnalysedRun:
    """Return a merged run of machines, with the cases that each of them measured."""
    saved_run.save_machines(folder, {name: f"{number:012d}" for number, name in enumerate(cases)})
    for name, own in cases.items():
        runs.of(folder / name, own)
        (folder / name / environment.ENVIRONMENT).unlink(missing_ok=True)
        here = dataclasses.replace(environment_of(), context={"machine_name": name, "sweep": "mine"})
        environment.save(here, folder / name)
    return AnalysedRun(folder)


def test_a_merged_run_has_a_chart_for_each_machine(tmp_path: Path) -> None:
    """The rows of a merged run say of which machine they are, and so does every sentence.

    Nothing is averaged over machines.
    """
    cases = [case(name, num_tokens=n) for n in (50, 197, 577) for name in ("eager", "sdpa")]
    text = page(merged(tmp_path, here=cases[:4], there=cases))
    data = data_of(text)
    assert data["machines"] == ["here", "there"]
    assert Counter(data["rows"]["machine"]) == {0: 4, 1: 6}
    assert data["points"] == ["N=50 (here)", "N=50 (there)", "N=197 (here)", "N=197 (there)", "N=577 (there)"]
    (series,) = data["series"]
    assert series["at"] == {"0": 50, "1": 50, "2": 197, "3": 197, "4": 577}
    assert {*data["figures"]["growth-latency"]["rows"]["machine"]} == {0, 1}
    for words in (
        "<h1>Sweep mine on here and there</h1>",
        "here: Use sdpa",
        "there: Use sdpa",
        '<p class="note">there</p>',
        '<ul class="good">\n<li>here: All 4 cases were measured.</li>',
    ):
        assert words in text


def test_items_of_different_lengths_are_shown_along_their_padding(tmp_path: Path) -> None:
    """The page begins with the series of padding, in percent, and says whether packing is faster."""
    cases = [
        case(name, batch=4, num_tokens=n, lengths=lengths)
        for n in (10, 20, 40)
        for lengths in ("list:10+10+10+9", "list:10+8+6+6", "list:10+4+3+3")
        for name in ("eager", "loop")
    ]
    text = page(AnalysedRun(runs.of(tmp_path / "run", cases)))
    data = data_of(text)
    first = data["series"][data["first"]]
    assert (first["axis"], first["label"]) == ("padding", "padding 2.5%, 25%, 50% at N=10")
    assert first["xs"] == data["rows"]["padding"][:6:2]
    chart = json.dumps(data["figures"]["latency"]["charts"]["padding"])
    assert '"scale": {"domain": [0.0, 1.0], "nice": false, "type": "linear"}' in chart
    assert '"padding"' not in json.dumps([*data["figures"]["growth-latency"]["charts"]])
    assert "<li>At N=10 neither packed nor padded is shown to be faster at 2.5%, 25% and 50% padding.</li>" in text


def test_threads_that_a_sweep_varies_are_not_taken_for_the_machines(tmp_path: Path) -> None:
    """Two machines that measured both have two points at each number of tokens, and a series for each of threads."""
    cases = [case("eager", num_tokens=n, threads=threads) for threads in (1, 4) for n in (50, 197, 577)]
    data = data_of(page(merged(tmp_path, here=cases, there=cases)))
    assert len(set(data["points"])) == len(data["points"]) == 12
    assert [len(each["at"]) for each in data["series"]] == [6, 6]


def test_a_machine_without_rows_is_left_out_in_words(tmp_path: Path) -> None:
    """The other machines have their page; a merged run without any rows is refused."""
    run = merged(tmp_path, here=PAIR, there=PAIR)
    (tmp_path / "there" / journal.JOURNAL).write_bytes(b"")
    text = page(run)
    assert data_of(text)["machines"] == ["here"]
    assert "holds no rows" in text
    (tmp_path / "here" / journal.JOURNAL).write_bytes(b"")
    assert "holds no rows" in refusal(page, run)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line names the file and the reason."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    run = AnalysedRun(runs.of(tmp_path / "run", PAIR))
    monkeypatch.setattr("bench.store.files.replace", full)
    assert refusal(write, run) == f"cannot write {run.page} (No space left on device)"
