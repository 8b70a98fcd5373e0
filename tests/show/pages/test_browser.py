"""Pages of runs in a browser: legend, marking, samples, table, keyboard, a phone, the dark and paper."""

import shlex
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from bench.analyse.analysed_run import AnalysedRun
from bench.cli import main
from bench.plan.case import Case
from bench.show.pages.run import write
from bench.store import saved_run
from tests.make import runs
from tests.make.points import vit_s
from tests.show.pages.browser import Browser, missing

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing())]

MARKS = "#figure-{} path[aria-roledescription=point]"
"""The marks of a chart."""

SCROLLED = """
    const table = document.getElementById("table");
    table.parentElement.scrollLeft = arguments[0];
    const edges = [...table.rows[1].cells].slice(0, 3).map((cell) => cell.getBoundingClientRect());
    return edges.map((edge) => [edge.left, edge.right]);
"""
"""The left and right edges of the first cells of a row of the table, scrolled by some pixels."""

KINDS = {"speedup", "latency", "memory", "winners", "compile", "growth-latency", "growth-memory"}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a run of `quick`."""
    return write(AnalysedRun(runs.quick(tmp_path_factory.mktemp("quick") / "run")))


def rows(chromium: Browser) -> list[str]:
    """Return the implementations in the rows of the table that are shown, from top to bottom."""
    shown = "[...document.querySelectorAll('#table tbody tr:not([hidden])')]"
    return list(chromium.run(f"return {shown}.map((row) => row.children[1].textContent)"))


def drag(chromium: Browser, start: tuple[float, float], *steps: tuple[float, float]) -> None:
    """Drag over the chart of speed-ups, from a place beside its middle by steps; all are shares of its size."""
    chart = chromium.one("#figure-speedup svg")
    chromium.run("arguments[0].scrollIntoView({block: 'center'})", chart)
    wide, high = chart.size["width"], chart.size["height"]
    moves = ActionChains(chromium.driver)
    moves.move_to_element_with_offset(chart, int(wide * start[0]), int(high * start[1])).click_and_hold()
    for x, y in steps:
        moves.move_by_offset(int(wide * x), int(high * y))
    moves.release().perform()
    chromium.until("document.getElementById('shown').textContent.includes('points:')")


@pytest.mark.parametrize(("dark", "width"), [(False, 1400), (True, 400)], ids=["light", "dark phone"])
def test_everything_is_drawn_and_nothing_complains(chromium: Browser, page: Path, dark: bool, width: int) -> None:
    """Each chart has marks and a table beside it, nothing reaches beyond the window, and the console is silent.

    On paper it has some pages. If the table is scrolled, the point and the implementation stay; on a phone the
    implementation alone, so that there is room for numbers.
    """
    chromium.open(page, dark=dark, width=width)
    kinds = chromium.run("return [...document.querySelectorAll('.figure:not([hidden])')].map((f) => f.id.slice(7))")
    assert {*kinds} == KINDS
    for kind in kinds:
        assert chromium.count(f"#figure-{kind} svg path") > 5
        assert chromium.count(f'[data-table="{kind}"] tbody tr') > 3
    assert chromium.run("return document.documentElement.scrollWidth <= innerWidth")
    before, after = (chromium.run(SCROLLED, by) for by in (0, 150))
    assert after[2][0] == pytest.approx(before[2][0] - 150)
    if width > 1000:
        assert after[:2] == [[pytest.approx(edge, abs=0.5) for edge in edges] for edges in before[:2]]
        assert after[1][0] == pytest.approx(after[0][1], abs=0.5)
    else:
        assert after[0][1] < 0 <= after[1][0] < before[1][0]
    assert chromium.complaints() == []
    assert chromium.pages_on_paper() > 2


def test_the_cost_of_compiling_is_drawn_at_every_point(chromium: Browser, page: Path) -> None:
    """At points where an implementation has no time too: no logarithm is taken of nothing."""
    chromium.open(page)
    Select(chromium.one("#view")).select_by_visible_text("every point")
    chromium.until("document.querySelectorAll('#at option').length === 12")
    labels = [each.text for each in Select(chromium.one("#at")).options]
    for label in (labels[0], next(label for label in labels if "49→64" in label)):
        Select(chromium.one("#at")).select_by_visible_text(label)
        lines = 6 if "49→64" in label else 7  # mha can't do the article's points
        chromium.until(f"document.querySelectorAll('#figure-compile .mark-line path').length === {lines}")
    assert chromium.complaints() == []


def test_marking_points_of_one_machine_leaves_those_of_the_others(chromium: Browser, tmp_path: Path) -> None:
    """On the chart with a row for each point, which a sweep of two points has, a drag marks rows of its own machine."""
    cases = [Case(vit_s(num_tokens=n), name) for n in (50, 197) for name in ("eager", "sdpa")]
    saved_run.save_machines(tmp_path, {"here": "0", "there": "1"})
    for name in ("here", "there"):
        runs.of(tmp_path / name, cases)
    chromium.open(write(AnalysedRun(tmp_path)))
    drag(chromium, (0, -0.15), (0, 0.1), (0, 0.4))
    assert "(here)" in chromium.one("#shown").text
    assert "there" not in chromium.one("#shown").text


def test_the_legend_and_marked_points_filter_charts_and_table(chromium: Browser, page: Path) -> None:
    """Without an implementation; with two of four places that a drag marks, or `from` and `to`. The page says so."""
    chromium.open(page)
    marks = MARKS.format("memory")
    before = chromium.count(marks)
    chromium.one(".legend input[data-name=sdpa]").click()
    chromium.until(f"document.querySelectorAll(`{marks}`).length < {before}")
    assert "sdpa" not in rows(chromium)
    assert "eager" in rows(chromium)
    assert "6 of 7 implementations" in chromium.one("#shown").text
    chromium.one("#reset").click()
    chromium.until(f"document.querySelectorAll(`{marks}`).length === {before}")
    assert len(rows(chromium)) == 84
    drag(chromium, (-0.2, 0), (0.1, 0), (0.2, 0))
    chromium.until(f"document.querySelectorAll(`{marks}`).length < {before}")
    assert 0 < len(rows(chromium)) < 28
    chromium.one("#reset").click()
    chromium.until(f"document.querySelectorAll(`{marks}`).length === {before}")
    Select(chromium.one("#from")).select_by_value("577")
    chromium.until("document.getElementById('shown').textContent.startsWith('Shown: 2 of 12 points')")
    assert len(rows(chromium)) == 14


def test_a_click_on_a_mark_shows_its_samples_and_its_command(chromium: Browser, page: Path) -> None:
    """Every sample of every process is drawn, with the interval beside them, and listed by process.

    The button chooses all of the command, and nothing else.
    """
    chromium.open(page)
    mark = chromium.all(MARKS.format("latency"))[3]
    chromium.run("arguments[0].scrollIntoView({block: 'center'})", mark)
    ActionChains(chromium.driver).move_to_element(mark).click().perform()
    chromium.until("document.querySelectorAll('#case-charts svg path').length > 36")
    name, point = chromium.one("#case-title").text.split(" · ")
    assert point
    assert chromium.count("#case-table tbody tr") == 3
    chromium.one("#case-command button").click()
    words = shlex.split(chromium.run("return getSelection().toString()"))
    assert words[words.index("--impl") + 1] == name
    assert "-m" in words[:3]
    assert chromium.complaints() == []


def test_the_table_sorts_and_filters(chromium: Browser, page: Path) -> None:
    """By a number, the largest first and rows without one below; by words, all of which a row must have."""
    chromium.open(page)
    heading = chromium.one("#table th[data-key=speedup]")
    chromium.run("arguments[0].querySelector('button').click()", heading)
    assert heading.get_attribute("aria-sort") == "descending"
    cells = "[...document.querySelectorAll('#table tbody tr')].map((row) => row.children[arguments[0].cellIndex])"
    values = chromium.run(f"return {cells}.map((cell) => cell.dataset.v ?? null)", heading)
    numbers = [float(value) for value in values if value is not None]
    assert numbers == sorted(numbers, reverse=True)
    assert values[-2:] == [None, None]
    chromium.one("#words").send_keys("SDPA n=577")
    assert {*rows(chromium)} == {"sdpa", "compiled_sdpa"}
    assert chromium.one("#found").text == "2 of 84 rows"


def test_all_can_be_done_with_the_keyboard_alone(chromium: Browser, page: Path) -> None:
    """The legend, another view, the samples of a case, and the way back."""
    chromium.open(page)
    assert chromium.press(Keys.TAB).text == "Skip to the charts"
    chromium.press(Keys.ENTER)
    chromium.tab_to("#view")
    label = "document.querySelector('#figure-speedup svg')?.getAttribute('aria-label')"
    before = chromium.run(f"return {label}")
    chromium.press(Keys.END)
    chromium.until(f"{label} !== '{before}'")
    chromium.tab_to(".legend input")
    chromium.press(Keys.SPACE)
    assert "eager" not in rows(chromium)
    chromium.run("document.getElementById('words').focus()")
    chromium.press("mha n=1024")
    chromium.tab_to("#table tbody button", 30)
    chromium.press(Keys.ENTER)
    chromium.until("document.querySelectorAll('#case-charts svg path').length > 36")
    chromium.press(Keys.ESCAPE)
    assert chromium.one("#case").get_attribute("open") is None


def test_the_rows_of_a_comparison_are_those_of_its_chart(chromium: Browser, tmp_path: Path) -> None:
    """Words leave the rows that have them in both; a case has the samples of both runs."""
    file = tmp_path / "page.html"
    assert (
        main(["compare", *map(str, runs.weekly(tmp_path / "runs", (0.4, 0.5))), "--report", str(file), "--force"]) == 1
    )
    chromium.open(file)
    marks = MARKS.format("changes")
    assert chromium.count(marks) == 2
    chromium.one("#words").send_keys("N=50")
    chromium.until(f"document.querySelectorAll(`{marks}`).length === 1")
    chromium.one("#table tbody tr:not([hidden]) button").click()
    chromium.until("document.querySelectorAll('#case-charts svg').length === 2")
    assert chromium.complaints() == []
