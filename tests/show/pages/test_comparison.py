"""The page of a comparison as a file."""

import re

import pytest

from bench.cli import main
from tests.make.runs import weekly


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page of a comparison in which sdpa became slower at both points."""
    folder = tmp_path_factory.mktemp("compared")
    base, new = weekly(folder / "runs", (0.4, 0.5))
    assert main(["compare", str(base), str(new), "--report", str(folder / "page.html"), "--force"]) == 1
    return (folder / "page.html").read_text()


def test_the_verdicts_come_first_and_are_explained(text: str) -> None:
    """In the words of the terminal; below stands what a verdict means."""
    assert text.index("2 rows are slower") < text.index("Pictures")
    assert "slower, faster: by more than 1%" in text
    assert "BASE is commit" in text


def test_each_implementation_has_a_row_of_its_judged_rows(text: str) -> None:
    """Before the rows: sdpa at both points, whose times rose from 0.4 to 0.5."""
    table = text[text.index("By implementation") : text.index("Pictures")]
    assert re.findall(r'<th scope="row">(.*?)</th>', table) == ["sdpa"]
    rows, middle, excluded, verdicts = re.findall(r"<td[^>]*>(.*?)</td>", table)
    assert (rows, verdicts) == ("2", "2 slower")
    assert float(middle.removesuffix("%")) == pytest.approx(-20, abs=1)
    assert 25 <= int(excluded.removesuffix("%")) <= 30


def test_rows_stand_worst_first_below_their_picture(text: str) -> None:
    """The baseline is in the table."""
    verdicts = re.findall(r'<tr><td>(slower|baseline)</td>', text[text.index('id="table"') :])
    assert verdicts == ["slower", "slower", "baseline", "baseline"]
    assert 'alt="NEW against BASE: change of speed' in text
