"""The page of a run in Chromium: a telephone, dark and light, sorting and filtering."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver

from bench.analyse.analysed_run import AnalysedRun

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium or chromedriver is not on the path"),
]

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    # no name resolves, because there is no network
    "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip

READABLE = 4.5
"""The contrast that WCAG asks of small text."""

CONTRASTS = """
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const mixed = (...colours) => {
  for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
  return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
};
const light = (colour) => {
  const [r, g, b] = colour.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
};
const grounds = (e) => (e ? [...grounds(e.parentElement), getComputedStyle(e).backgroundColor] : ["white"]);
const shapes = (text) => {
  const { left, right, top, bottom } = text.getBoundingClientRect();
  const [x, y] = [(left + right) / 2, (top + bottom) / 2];
  const isUnder = (r) => r.left <= x && x <= r.right && r.top <= y && y <= r.bottom;
  const paths = [...text.ownerSVGElement.querySelectorAll("g > path")].map((e) => [e, getComputedStyle(e)]);
  return paths.filter(([e, style]) => style.fill.startsWith("rgb") && isUnder(e.getBoundingClientRect()))
    .map(([_, style]) => style.fill.replace("rgb(", "rgba(").replace(")", `, ${style.opacity})`));
};
return [...document.querySelectorAll("body *")]
  .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) && e.checkVisibility())
  .map((e) => {
    const isPicture = e.ownerSVGElement;
    const ground = light(mixed(...grounds(e), ...(isPicture ? shapes(e) : [])));
    const ink = light(mixed(isPicture ? getComputedStyle(e).fill : getComputedStyle(e).color));
    return [e.textContent.trim().slice(0, 30), Math.max(ink, ground) / Math.min(ink, ground)];
  });
"""
"""The visible text, and its contrast with its background, also in pictures."""


class Browser:
    """A browser with the functions that the tests need."""

    def __init__(self, profile: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = str(CHROMIUM)
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))

    def open(self, page: Path, *, dark: bool = False, width: int = 1280) -> None:
        """Show a page of the disk, freshly loaded, in a scheme of colours and a width."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get(page.as_uri())

    def run(self, script: str, *arguments: object) -> Any:
        """Return the result of a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def unfold(self) -> None:
        """Open all folded parts."""
        self.run("document.querySelectorAll('details').forEach((each) => (each.open = true))")


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return a browser with a new profile."""
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.driver.quit()


@pytest.fixture
def page(wide: AnalysedRun) -> Path:
    """Return the page of a run."""
    return wide.page


def rows(chromium: Browser, column: int = 1) -> list[str]:
    """Return the cells of a column in the rows that are shown, from top to bottom."""
    shown = "[...document.querySelectorAll('#rows tbody tr:not([hidden])')]"
    return list(chromium.run(f"return {shown}.map((row) => row.cells[arguments[0]].textContent)", column))


@pytest.mark.parametrize(("width", "dark"), [(420, True), (1280, False)], ids=["small and dark", "wide and light"])
def test_everything_can_be_read(chromium: Browser, page: Path, width: int, dark: bool) -> None:
    """Nothing reaches beyond the window or scrolls inside it, every text has contrast, and the console is silent."""
    chromium.open(page, dark=dark, width=width)
    chromium.unfold()
    assert chromium.run("return document.documentElement.scrollWidth <= innerWidth")
    inner = "[...document.querySelectorAll('body *')].filter((e) => /auto|scroll/.test(getComputedStyle(e).overflow))"
    assert chromium.run(f"return {inner}.length") == 0
    contrasts = chromium.run(CONTRASTS)
    assert len(contrasts) > 500
    assert [each for each in contrasts if each[1] < READABLE] == []
    assert chromium.driver.get_log("browser") == []  # type: ignore[no-untyped-call]


def test_the_table_sorts_and_filters(chromium: Browser, page: Path) -> None:
    """By a number the largest first, then the smallest, rows without one below; rows with all words stay."""
    chromium.open(page)
    (place,) = [at for at, text in enumerate(chromium.run(
        "return [...document.querySelectorAll('#rows thead th')].map((each) => each.textContent)"
    )) if text == "latency"]  # fmt: skip
    for sign, order in ((-1, "descending"), (1, "ascending")):
        chromium.run("document.querySelectorAll('#rows thead button')[arguments[0]].click()", place)
        heading = "document.querySelectorAll('#rows thead th')[arguments[0]]"
        assert chromium.run(f"return {heading}.getAttribute('aria-sort')", place) == order
        cells = (
            "[...document.querySelectorAll('#rows tbody tr')].map((row) => row.cells[arguments[0]].dataset.v ?? null)"
        )
        values = chromium.run(f"return {cells}", place)
        known = [float(value) for value in values if value is not None]
        assert known == sorted(known, key=lambda value: sign * value)
        assert values[-2:] == [None, None]
    chromium.driver.find_element("id", "words").send_keys("SDPA n=577")
    assert {*rows(chromium)} == {"sdpa", "compiled_sdpa"}
    assert all("N=577" in point for point in rows(chromium, 0))
