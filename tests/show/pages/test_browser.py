"""The page of a run in a browser: legend, marking, samples, table, keyboard, a phone, the dark and paper."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from bench.plan.case import Case
from bench.show.pages.run import write
from bench.store import saved_run
from bench.store.saved_run import SavedRun
from tests.examples import point
from tests.show.pages import saved
from tests.show.pages.browser import Browser, browser, missing

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing())]

PATIENCE_S = 60
"""The longest wait for something that the page does by itself; machines that run tests are busy."""

MARKS = "#figure-{} path[aria-roledescription=point]"
"""The marks of a chart."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a run of `quick`."""
    return write(SavedRun(saved.quick(tmp_path_factory.mktemp("quick") / "run")))


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return a browser for all tests of this file."""
    with browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


def opened(chromium: Browser, page: Path, *, dark: bool = False, width: int = 1400) -> None:
    """Open the page, and wait until its charts are drawn."""
    chromium.complaints()
    chromium.open(page, dark=dark, width=width)
    until(chromium, "return document.documentElement.dataset.drawn === 'yes'")


def until(chromium: Browser, script: str) -> None:
    """Wait until a script in the page returns true."""
    WebDriverWait(chromium.driver, PATIENCE_S).until(lambda _: chromium.run(script))


def rows(chromium: Browser) -> list[str]:
    """Return the implementations in the rows of the table that are shown, from top to bottom."""
    rows = "[...document.querySelectorAll('#table tbody tr:not([hidden])')]"
    return list(chromium.run(f"return {rows}.map((row) => row.children[1].textContent)"))


@pytest.mark.parametrize(("dark", "width"), [(False, 1400), (True, 400)], ids=["light", "dark phone"])
def test_everything_is_drawn_and_nothing_complains(chromium: Browser, page: Path, dark: bool, width: int) -> None:
    """Each chart has marks and a table beside it, nothing reaches beyond the window, and the console is silent."""
    opened(chromium, page, dark=dark, width=width)
    kinds = chromium.run("return [...document.querySelectorAll('.figure:not([hidden])')].map((f) => f.id.slice(7))")
    assert {*kinds} == {
        "speedup",
        "latency",
        "memory",
        "winners",
        "compile",
        "course",
        "growth-latency",
        "growth-memory",
    }
    for kind in kinds:
        assert chromium.run(f"return document.querySelectorAll('#figure-{kind} svg path').length") > 5
        assert chromium.run(f"return document.querySelectorAll('[data-table=\"{kind}\"] tbody tr').length") > 3
    assert chromium.run("return document.documentElement.scrollWidth <= innerWidth")
    assert chromium.complaints() == []


def test_the_cost_of_compiling_is_drawn_at_every_point(chromium: Browser, page: Path) -> None:
    """At points where an implementation has no time too: no logarithm is taken of nothing."""
    opened(chromium, page)
    views = Select(chromium.one("#view"))
    views.select_by_visible_text("every point")
    until(chromium, "return document.querySelectorAll('#at option').length === 12")
    for label in [each.text for each in Select(chromium.one("#at")).options]:
        Select(chromium.one("#at")).select_by_visible_text(label)
        lines = 6 if "49→64" in label else 7  # mha can't do the article's points
        until(chromium, f"return document.querySelectorAll('#figure-compile .mark-line path').length === {lines}")
    assert chromium.complaints() == []


def test_marking_points_of_one_machine_leaves_those_of_the_others(chromium: Browser, tmp_path: Path) -> None:
    """On the chart with a row for each point, which a sweep of two points has, a drag marks rows of its own machine."""
    cases = [Case(point(num_tokens=n), name) for n in (50, 197) for name in ("eager", "sdpa")]
    saved_run.save_machines(tmp_path, {"here": "0", "there": "1"})
    for name in ("here", "there"):
        saved.of(tmp_path / name, cases)
    opened(chromium, write(SavedRun(tmp_path)))
    chart = chromium.one("#figure-speedup svg")
    chromium.run("arguments[0].scrollIntoView({block: 'center'})", chart)
    high = chart.size["height"]
    drag = ActionChains(chromium.driver).move_to_element_with_offset(chart, 0, -int(high * 0.15))
    drag.click_and_hold().move_by_offset(0, int(high * 0.1)).move_by_offset(0, int(high * 0.4)).release().perform()
    until(chromium, "return document.getElementById('shown').textContent.includes('points:')")
    shown = chromium.one("#shown").text
    assert shown.count("(here)") > 0, shown
    assert "there" not in shown


def test_the_legend_hides_an_implementation_everywhere(chromium: Browser, page: Path) -> None:
    """In all charts and in the table; the page says how many are left."""
    opened(chromium, page)
    before = len(chromium.all(MARKS.format("latency")))
    chromium.one(".legend input[data-name=sdpa]").click()
    until(chromium, f"return document.querySelectorAll(`{MARKS.format('latency')}`).length < {before}")
    assert "sdpa" not in rows(chromium)
    assert "eager" in rows(chromium)
    assert "6 of 7 implementations" in chromium.one("#shown").text
    chromium.one("#reset").click()
    until(chromium, f"return document.querySelectorAll(`{MARKS.format('latency')}`).length === {before}")
    assert len(rows(chromium)) == 84


def test_marking_points_filters_map_memory_and_table(chromium: Browser, page: Path) -> None:
    """Drag over two of the four places; without a mouse, choose from and to."""
    opened(chromium, page)
    before = len(chromium.all(MARKS.format("memory")))
    chart = chromium.one("#figure-speedup svg")
    chromium.run("arguments[0].scrollIntoView({block: 'center'})", chart)
    wide = chart.size["width"]
    drag = ActionChains(chromium.driver).move_to_element_with_offset(chart, -int(wide * 0.2), 0)
    drag.click_and_hold().move_by_offset(int(wide * 0.1), 0).move_by_offset(int(wide * 0.2), 0).release().perform()
    until(chromium, "return document.getElementById('shown').textContent.includes('points')")
    until(chromium, f"return document.querySelectorAll(`{MARKS.format('memory')}`).length < {before}")
    marked = len(rows(chromium))
    assert 0 < marked < 28

    opened(chromium, page)
    Select(chromium.one("#from")).select_by_value("577")
    until(chromium, "return document.getElementById('shown').textContent.startsWith('Shown: 2 of 12 points')")
    assert len(rows(chromium)) == 14


def test_a_click_on_a_mark_shows_its_samples(chromium: Browser, page: Path) -> None:
    """Every sample of every process is drawn, with the interval beside them, and listed by process."""
    opened(chromium, page)
    mark = chromium.all(MARKS.format("latency"))[3]
    chromium.run("arguments[0].scrollIntoView({block: 'center'})", mark)
    ActionChains(chromium.driver).move_to_element(mark).click().perform()
    until(chromium, "return document.querySelectorAll('#case-charts svg path').length > 36")
    assert chromium.one("#case").get_attribute("open") is not None
    assert " · " in chromium.one("#case-title").text
    assert len(chromium.all("#case-table tbody tr")) == 3
    assert chromium.complaints() == []


def test_the_table_sorts_and_filters(chromium: Browser, page: Path) -> None:
    """By a number, the largest first and rows without one below; by words, all of which a row must have."""
    opened(chromium, page)
    heading = chromium.one("#table th[data-key=speedup]")
    chromium.run("arguments[0].querySelector('button').click()", heading)
    assert heading.get_attribute("aria-sort") == "descending"
    cells = "[...document.querySelectorAll('#table tbody tr')].map((row) => row.children[arguments[0].cellIndex])"
    values = chromium.run(f"return {cells}.map((cell) => cell.dataset.v ?? null)", heading)
    known = [float(value) for value in values if value is not None]
    assert known == sorted(known, reverse=True)
    assert values[-2:] == [None, None]
    chromium.one("#words").send_keys("SDPA n=577")
    assert {*rows(chromium)} == {"sdpa", "compiled_sdpa"}
    assert chromium.one("#found").text == "2 of 84 rows"


def test_all_can_be_done_with_the_keyboard_alone(chromium: Browser, page: Path) -> None:
    """The legend, another view, the samples of a case, and the way back."""
    opened(chromium, page)
    assert chromium.press(Keys.TAB).text == "Skip to the charts"
    chromium.press(Keys.ENTER)
    chromium.tab_to("#view")
    before = chromium.run("return document.querySelector('#figure-speedup svg').getAttribute('aria-label')")
    chromium.press(Keys.END)
    until(chromium, f"return document.querySelector('#figure-speedup svg')?.getAttribute('aria-label') !== '{before}'")
    chromium.tab_to(".legend input")
    chromium.press(Keys.SPACE)
    assert "eager" not in rows(chromium)
    chromium.tab_to("#words")
    chromium.press("mha n=1024")
    chromium.tab_to("#table tbody button", 30)
    chromium.press(Keys.ENTER)
    until(chromium, "return document.querySelectorAll('#case-charts svg path').length > 36")
    chromium.press(Keys.ESCAPE)
    assert chromium.one("#case").get_attribute("open") is None


def test_paper_has_the_answer_and_the_table(chromium: Browser, page: Path) -> None:
    """A PDF of some pages comes out."""
    opened(chromium, page)
    printed = chromium.printed()
    assert printed.startswith(b"%PDF")
    assert printed.count(b"/Type /Page\n") > 2
