"""The page of a comparison as a file."""

import json
import re

import pytest

from bench.cli import main
from tests.make.runs import data_of, unpacked, weekly


@pytest.fixture(scope="module")
def text(without_vega: None, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page of a comparison in which sdpa became slower at both points."""
    folder = tmp_path_factory.mktemp("compared")
    base, new = weekly(folder / "runs", (0.4, 0.5))
    assert main(["compare", str(base), str(new), "--report", str(folder / "page.html"), "--force"]) == 1
    return (folder / "page.html").read_text()


def test_the_verdicts_come_first_and_are_explained(text: str) -> None:
    """In the words of the terminal; below stands what a verdict means."""
    assert text.index("2 rows are slower") < text.index("What changed")
    assert "slower, faster: by more than 1%" in text
    assert "BASE is commit" in text


def test_each_implementation_has_a_row_of_its_judged_rows(text: str) -> None:
    """Before the rows: sdpa at both points, whose times rose from 0.4 to 0.5."""
    table = text[text.index("By implementation") : text.index("What changed")]
    assert re.findall(r'<th scope="row">(.*?)</th>', table) == ["sdpa"]
    rows, middle, excluded, verdicts = re.findall(r"<td[^>]*>(.*?)</td>", table)
    assert (rows, verdicts) == ("2", "2 slower")
    assert float(middle.removesuffix("%")) == pytest.approx(-20, abs=1)
    assert 25 <= int(excluded.removesuffix("%")) <= 30


def test_rows_have_their_change_and_both_runs_samples(text: str) -> None:
    """Worst first; the baseline is in the table, and not in the chart."""
    data = data_of(text)
    assert data["rows"]["verdict"] == ["slower", "slower", "baseline", "baseline"]
    assert data["rows"]["change"][:2] == pytest.approx([0.8, 0.8], rel=0.01)
    assert data["rows"]["change"][2:] == [None, None]
    packs = json.loads(unpacked(data["packed"]))["samples"]
    assert [len(pack["0"]) for pack in packs] == [6, 6]
    assert [side["latency_s"] for side in data["rows"]["sides"][0]] == pytest.approx([0.4, 0.5], rel=0.01)
