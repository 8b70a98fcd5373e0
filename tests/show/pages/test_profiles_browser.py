"""The page of a run's profiles in a browser: no network, no mouse, two schemes of colours, a phone and paper."""

import re
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from bench.show.pages.profiles import write
from tests.make.profiles import profile, stepwise
from tests.show.pages.browser import Browser, missing

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing())]

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
    """Return the page of a few cases of two points, one of them in stages and training."""
    kernel = "void kernel<" + "float, " * 99 + ">"
    profiles = [
        stepwise(mode="train"),
        profile("eager"),
        profile(num_tokens=577),
        profile(kernel, num_tokens=577),
    ]
    return write(profiles, tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_everything_is_there_and_can_be_read(chromium: Browser, page: Path, dark: bool) -> None:
    """Tables have rows, bars have their segments in several colours, and the console is silent.

    All words have a contrast of 4.5 with what lies under them; dark is dark.
    """
    chromium.open(page, dark=dark)
    chromium.one("#open-all").click()
    for table in chromium.all("table"):
        assert len(table.find_elements("css selector", "tbody tr")) > 0
    bars = chromium.all(".bar")
    assert len(bars) == 4
    for bar in bars:
        segments = bar.find_elements("css selector", "i")
        assert abs(sum(segment.size["width"] for segment in segments) - bar.size["width"]) < 2 * len(segments)
        assert len({segment.value_of_css_property("background-color") for segment in segments}) > 2
    contrasts = chromium.run(CONTRASTS)
    assert len(contrasts) > 200
    assert [each for each in contrasts if each[1] < READABLE] == []
    channels = re.findall(r"\d+", chromium.run("return getComputedStyle(document.body).backgroundColor"))
    assert (sum(map(int, channels[:3])) < 100) if dark else (sum(map(int, channels[:3])) > 700)
    assert chromium.complaints() == []


def test_cases_open_and_close_with_the_keyboard(chromium: Browser, page: Path) -> None:
    """The first is open; a link of the list opens its case, Enter on a heading opens and closes it."""
    chromium.open(page)
    assert [case.get_attribute("open") is not None for case in chromium.all("details.case")] == [True, *[False] * 3]
    assert chromium.press(Keys.TAB).text == "Skip to the cases"
    link = chromium.tab_to("nav section:last-of-type a")
    target = chromium.one(link.get_attribute("hash") or "")
    assert target.get_attribute("open") is None
    chromium.press(Keys.ENTER)
    assert target.get_attribute("open") is not None
    summary = chromium.tab_to("details.case:not([open]) > summary")
    case = summary.find_element("xpath", "..")
    for is_open in (True, False):
        summary.send_keys(Keys.ENTER)
        assert (case.get_attribute("open") is not None) is is_open


def test_words_leave_only_the_cases_that_have_them(chromium: Browser, page: Path) -> None:
    """The field hides what doesn't have all its words, in the list and beside it, and says how many are left."""
    chromium.open(page)
    field = chromium.one("#filter")
    field.send_keys("SDPA n=577")
    assert [item.text.split()[0] for item in chromium.all("nav li") if item.is_displayed()] == ["sdpa"]
    assert len([case for case in chromium.all("details.case") if case.is_displayed()]) == 1
    assert len([point for point in chromium.all(".point") if point.is_displayed()]) == 1
    assert chromium.one("#found").text == "1 of 4 cases"


@pytest.mark.parametrize("width", [400, 1040])
def test_only_tables_scroll_sideways(chromium: Browser, page: Path, width: int) -> None:
    """On a phone and a screen the page fits, and what is wider stands in a box that scrolls."""
    chromium.open(page, width=width)
    chromium.one("#open-all").click()
    assert chromium.run("return document.documentElement.scrollWidth <= innerWidth")
    boxes = (
        "[...document.querySelectorAll('.scroll, .bar')].map((box) => box.getBoundingClientRect().right <= innerWidth)"
    )
    assert all(chromium.run(f"return {boxes}"))


def test_paper_has_every_case_and_the_screen_keeps_its_state(chromium: Browser, page: Path) -> None:
    """A PDF comes out that has as many pages whether or not the cases are open, and closed ones are closed again."""
    chromium.open(page)
    printed = chromium.pages_on_paper()
    assert len([case for case in chromium.all("details.case") if case.get_attribute("open") is not None]) == 1

    chromium.one("#open-all").click()
    assert printed == chromium.pages_on_paper() > 2
