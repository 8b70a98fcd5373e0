"""Pages of runs, comparisons and profiles in a browser: legend, marking, samples, keyboard, a phone, dark, paper."""

import re
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from bench.analyse.analysed_run import AnalysedRun
from bench.plan.case import Case
from bench.show.pages import profiles as profiles_page
from bench.show.pages.run import write
from tests.make import runs
from tests.make.points import vit_s
from tests.make.profiles import profile, stepwise
from tests.make.results import results
from tests.show.pages.browser import Browser, missing

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing())]

SCROLLED = """
    const table = document.getElementById("table");
    table.parentElement.scrollLeft = arguments[0];
    const edges = [...table.rows[1].cells].slice(0, 3).map((cell) => cell.getBoundingClientRect());
    return edges.map((edge) => [edge.left, edge.right]);
"""
"""The left and right edges of the first cells of a row of the table, scrolled by some pixels."""

READABLE = 4.5
"""The contrast that WCAG asks of small text."""

CONTRASTS = """
const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
const light = (colour) => {
  const [r, g, b] = channels(colour).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
};
const ground = (element) => {
  const own = getComputedStyle(element).backgroundColor;
  return (channels(own)[3] ?? 1) ? own : element.parentElement ? ground(element.parentElement) : "rgb(255, 255, 255)";
};
return [...document.querySelectorAll("body *")]
  .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) && e.checkVisibility())
  .filter((e) => !e.closest(".hidden, script, style"))
  .map((e) => {
    const [a, b] = [getComputedStyle(e).color, ground(e)].map(light);
    return [e.tagName + " " + e.textContent.trim().slice(0, 30), Math.max(a, b) / Math.min(a, b)];
  });
"""
"""What can be read, and its contrast with what lies under it."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a run of `quick`."""
    return write(AnalysedRun(runs.quick(tmp_path_factory.mktemp("quick") / "run")))


def rows(chromium: Browser) -> list[str]:
    """Return the implementations in the rows of the table that are shown, from top to bottom."""
    shown = "[...document.querySelectorAll('#table tbody tr:not([hidden])')]"
    return list(chromium.run(f"return {shown}.map((row) => row.children[1].textContent)"))


@pytest.mark.parametrize(("dark", "width"), [(False, 1050), (True, 400)], ids=["light", "dark phone"])
def test_everything_is_drawn_and_nothing_complains(chromium: Browser, page: Path, dark: bool, width: int) -> None:
    """Each picture is drawn, nothing reaches beyond the window, and the console is silent.

    On paper it has some pages. If the table is scrolled, the point and the implementation stay; on a phone the
    implementation alone, so that there is room for numbers.
    """
    chromium.open(page, dark=dark, width=width)
    assert chromium.run("return [...document.images].every((image) => image.naturalWidth > 100)")
    assert chromium.run("return document.documentElement.scrollWidth <= innerWidth")
    by = 150 if width < 1000 else 50
    before, after = (chromium.run(SCROLLED, to) for to in (0, by))
    assert after[2][0] == pytest.approx(before[2][0] - by)
    if width > 1000:
        assert after[:2] == [[pytest.approx(edge, abs=0.5) for edge in edges] for edges in before[:2]]
        assert after[1][0] == pytest.approx(after[0][1], abs=0.5)
    else:
        assert after[0][1] < 0 <= after[1][0] < before[1][0]
    assert chromium.complaints() == []
    assert chromium.pages_on_paper() > 2


def test_words_filter_the_table(chromium: Browser, page: Path) -> None:
    """Lines that have all of them stay, by keyboard alone too."""
    chromium.open(page)
    chromium.run("document.getElementById('words').focus()")
    chromium.press("SDPA n=577")
    assert {*rows(chromium)} == {"sdpa", "compiled_sdpa"}


def test_the_table_sorts(chromium: Browser, page: Path) -> None:
    """By a number, the largest first and rows without one below."""
    chromium.open(page)
    heading = chromium.one("#table th[data-key=speedup]")
    chromium.run("arguments[0].querySelector('button').click()", heading)
    assert heading.get_attribute("aria-sort") == "descending"
    cells = "[...document.querySelectorAll('#table tbody tr')].map((row) => row.children[arguments[0].cellIndex])"
    values = chromium.run(f"return {cells}.map((cell) => cell.dataset.v ?? null)", heading)
    numbers = [float(value) for value in values if value is not None]
    assert numbers == sorted(numbers, reverse=True)
    assert values[-2:] == [None, None]


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of the profiles of a few cases of two points, one of them in stages and training."""
    kernel = "void kernel<" + "float, " * 99 + ">"
    cases = [stepwise(mode="train"), profile("eager"), profile(num_tokens=577), profile(kernel, num_tokens=577)]
    return profiles_page.write(cases, tmp_path_factory.mktemp("run"), results([Case(vit_s(), "sdpa")]))


@pytest.mark.parametrize(("dark", "width"), [(False, 400), (True, 1040)], ids=["light phone", "dark"])
def test_profiles_can_be_read(chromium: Browser, profiles: Path, dark: bool, width: int) -> None:
    """Bars have their segments in several colours, only tables scroll sideways, and the console is silent.

    All words have a contrast of 4.5 with what lies under them; dark is dark. The keyboard opens a case, and paper has
    all of them.
    """
    chromium.open(profiles, dark=dark, width=width)
    assert chromium.press(Keys.TAB).text == "Skip to the cases"
    printed = chromium.pages_on_paper()
    while closed := chromium.all("details.case:not([open]) > summary"):
        closed[0].send_keys(Keys.ENTER)
    assert printed == chromium.pages_on_paper() > 2
    bars = chromium.all(".bar")
    assert len(bars) == 4
    for bar in bars:
        segments = bar.find_elements("css selector", "i")
        assert abs(sum(segment.size["width"] for segment in segments) - bar.size["width"]) < 2 * len(segments)
        assert len({segment.value_of_css_property("background-color") for segment in segments}) > 2
    assert chromium.run("return document.documentElement.scrollWidth <= innerWidth")
    contrasts = chromium.run(CONTRASTS)
    assert len(contrasts) > 200
    assert [each for each in contrasts if each[1] < READABLE] == []
    channels = re.findall(r"\d+", chromium.run("return getComputedStyle(document.body).backgroundColor"))
    assert (sum(map(int, channels[:3])) < 100) if dark else (sum(map(int, channels[:3])) > 700)
    assert chromium.complaints() == []
