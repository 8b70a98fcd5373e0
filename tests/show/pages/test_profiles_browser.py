"""The page of a run's profiles in a browser: no network, no mouse, two schemes of colours, a phone and paper."""

import io
import re
from pathlib import Path

import pytest
from PIL import Image
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
const under = (element) => ground(element.closest("div, section, details, body"));
return [...document.querySelectorAll("body *")]
  .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) && e.checkVisibility())
  .filter((e) => !e.closest(".hidden, script, style, title, desc, .mark-text:not(.role-axis-label)"))
  .map((e) => {
    const { color, fill } = getComputedStyle(e);
    const [a, b] = (e instanceof SVGElement ? [fill, under(e)] : [color, ground(e)]).map(light);
    return [e.tagName + " " + e.textContent.trim().slice(0, 30), Math.max(a, b) / Math.min(a, b)];
  });
"""
"""What can be read, and its contrast with what lies under it; text in boxes has the colour that fits to theirs."""


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
    """Tables have rows, pictures have a size and boxes, and the console is silent.

    All words have a contrast of 4.5 with what lies under them, those in pictures too; dark is dark.
    """
    chromium.open(page, dark=dark)
    chromium.one("#open-all").click()

    for table in chromium.all("table"):
        assert len(table.find_elements("css selector", "tbody tr")) > 0
    pictures = chromium.all(".drawn svg")
    assert len(pictures) == 9
    for picture in pictures:
        assert picture.is_displayed()
        assert picture.size["width"] > 300
        assert len(picture.find_elements("css selector", "path")) > 1
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


def test_a_heading_sorts_its_table_with_the_keyboard(chromium: Browser, page: Path) -> None:
    """Enter on a heading's button sorts by that column, again the other way round, and says so.

    Bytes and shares sort as numbers, names by the alphabet.
    """
    chromium.open(page)

    def bytes_in_order() -> list[float]:
        cells = chromium.all("details[open] .sortable tbody .allocated")
        return [float(cell.get_attribute("data-v") or "") for cell in cells]

    chromium.tab_to(".sortable th:nth-of-type(1) button")
    chromium.press(Keys.ENTER)
    names = [cell.text for cell in chromium.all("details[open] .sortable tbody th")]
    assert names == sorted(names, key=str.lower)
    chromium.tab_to(".sortable th:nth-of-type(3) button")
    chromium.press(Keys.ENTER)
    shares = [float(cell.text.rstrip("%")) for cell in chromium.all("details[open] .sortable tbody .share")]
    assert shares == sorted(shares, reverse=True)
    chromium.tab_to(".sortable th:nth-of-type(5) button")
    before = bytes_in_order()
    heading = chromium.one("details[open] .sortable th:nth-of-type(5)")
    for order in ("descending", "ascending"):
        chromium.press(Keys.ENTER)
        assert heading.get_attribute("aria-sort") == order
        assert bytes_in_order() == sorted(before, reverse=order == "descending")
    assert before != sorted(before)
    sorted_by = "details[open] .sortable [aria-sort=ascending], [open] .sortable [aria-sort=descending]"
    assert len(chromium.all(sorted_by)) == 1


def test_a_timeline_is_explored_with_the_keyboard(chromium: Browser, page: Path) -> None:
    """Arrows move from span to span, each named with its time and share, and down from a stage to what it called."""
    chromium.open(page)
    chromium.one("#open-all").click()
    timeline = chromium.tab_to(".explore[aria-label]")
    readout = chromium.one(f"#{timeline.get_attribute('aria-describedby')}")
    first = readout.text
    assert all(word in first for word in ("ms", "%"))
    chromium.press(Keys.ARROW_RIGHT)
    second = readout.text
    assert second != first
    chromium.press(Keys.ARROW_LEFT)
    assert readout.text == first
    chromium.press(Keys.END)
    chromium.until("document.querySelectorAll('.explore path[stroke-width=\"2\"]').length === 1")
    assert readout.text not in (first, second)
    staged = next(area for area in chromium.all(".explore") if "stages" in (area.get_attribute("textContent") or ""))
    readout = chromium.one(f"#{staged.get_attribute('aria-describedby')}")
    chromium.run("arguments[0].focus()", staged)
    staged.send_keys(Keys.HOME, *[Keys.ARROW_RIGHT] * 3)
    for key, begin in (
        ("", "scores · 2.00 ms"), (Keys.ARROW_DOWN, "aten::bmm · 1.96 ms"), (Keys.ARROW_UP, "scores · 2.00 ms"),
    ):  # fmt: skip
        staged.send_keys(key)
        assert readout.text.startswith(begin)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_blocks_are_seen_in_the_colour_of_their_stage(chromium: Browser, page: Path, dark: bool) -> None:
    """Nothing is drawn over the bands of the largest blocks but the outline of them all."""
    chromium.open(page, dark=dark)
    chart = chromium.one("details[open] .memory svg")
    bands = chart.find_elements("css selector", ".mark-area path")
    colours = {tuple(map(int, re.findall(r"\d+", band.value_of_css_property("fill"))[:3])) for band in bands}
    assert len(colours) > 3
    picture = Image.open(io.BytesIO(chart.screenshot_as_png)).convert("RGB")
    counted = {colour: count for count, colour in picture.getcolors(1 << 24) or []}
    assert all(counted.get(colour, 0) > 50 for colour in colours)


def test_words_leave_only_the_cases_that_have_them(chromium: Browser, page: Path) -> None:
    """The field hides what doesn't have all its words, in the list and beside it, and says how many are left.

    What a link shows shortened is its title in full, and it leads to where that stands.
    """
    chromium.open(page)
    field = chromium.one("#filter")
    field.send_keys("SDPA n=577")
    assert [item.text.split()[0] for item in chromium.all("nav li") if item.is_displayed()] == ["sdpa"]
    assert len([case for case in chromium.all("details.case") if case.is_displayed()]) == 1
    assert len([point for point in chromium.all(".point") if point.is_displayed()]) == 1
    assert chromium.one("#found").text == "1 of 4 cases"
    for link in chromium.all("a.long"):
        assert link.get_attribute("title") == chromium.one(link.get_attribute("hash") or "").text


@pytest.mark.parametrize("width", [400, 700, 1040, 1120])
def test_nothing_scrolls_sideways_and_no_label_is_cut(chromium: Browser, page: Path, width: int) -> None:
    """On a phone, a tablet and a screen everything fits.

    What is written in a box ends within it; a box without room has no text.
    """
    chromium.open(page, width=width)
    chromium.one("#open-all").click()
    assert chromium.run("return document.documentElement.scrollWidth <= innerWidth")
    tables = "[...document.querySelectorAll('table')].map((t) => t.getBoundingClientRect().right <= innerWidth)"
    assert all(chromium.run(f"return {tables}"))
    inside = ".explore .mark-text.role-mark text"
    widths = "[text.textContent, text.getBoundingClientRect().width - text.__data__.limit]"
    texts = chromium.run(f"return [...document.querySelectorAll('{inside}')].map((text) => {widths})")
    shown = [text for text, _ in texts if text]
    assert 2 < len(shown) < len(texts)
    assert [text for text, beyond in texts if text and beyond > 1] == []


def test_paper_has_every_case_and_the_screen_keeps_its_state(chromium: Browser, page: Path) -> None:
    """A PDF comes out that has as many pages whether or not the cases are open, and closed ones are closed again."""
    chromium.open(page)
    printed = chromium.pages_on_paper()
    assert len([case for case in chromium.all("details.case") if case.get_attribute("open") is not None]) == 1

    chromium.one("#open-all").click()
    assert printed == chromium.pages_on_paper() > 3
