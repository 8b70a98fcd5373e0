"""Debian's Chromium without a window, driven through its own driver, for pages that lie on the disk."""

import base64
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

PATIENCE_S = 60
"""The longest wait for something that the page does by itself; machines that run tests are busy."""

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # whoever asks for a name gets none: there is no network
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


def missing() -> str:
    """Return why no browser can be driven, empty where one can."""
    if not any(map(shutil.which, BROWSERS)):
        return f"no browser is installed: none of {', '.join(BROWSERS)} is on the path"
    return "" if shutil.which("chromedriver") else "chromedriver, which drives the browser, is not on the path"


class Browser:
    """A browser with what the tests ask of it."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, page: Path, *, dark: bool = False, width: int = 1400) -> None:
        """Show a page of the disk, freshly loaded, in a scheme of colours and a width; wait until it is drawn."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.complaints()
        # the same address alone would only move in the page
        self.driver.get("about:blank")
        self.driver.get(page.as_uri())

    def run(self, script: str, *arguments: object) -> Any:
        """Return what a script in the page returns."""
        return self.driver.execute_script(script, *arguments)

    def until(self, condition: str) -> None:
        """Wait until a condition is true in the page."""
        WebDriverWait(self.driver, PATIENCE_S).until(lambda _: self.run(f"return {condition}"))

    def count(self, selector: str) -> int:
        """Return the number of elements that a selector names."""
        return int(self.run("return document.querySelectorAll(arguments[0]).length", selector))

    def all(self, selector: str) -> list[WebElement]:
        """Return the elements that a selector names."""
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str) -> WebElement:
        """Return the first element that a selector names."""
        return self.driver.find_element("css selector", selector)

    def press(self, *keys: str) -> WebElement:
        """Press keys one after another wherever the focus is, and return what has it then."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)
        return self.driver.switch_to.active_element

    def tab_to(self, selector: str, most: int = 60) -> WebElement:
        """Press Tab until the focus is on what a selector names, and return it."""
        for _ in range(most):
            focused = self.press(Keys.TAB)
            if self.run("return arguments[0].matches(arguments[1])", focused, selector):
                return focused
        raise AssertionError(f"Tab doesn't reach {selector}")

    def complaints(self) -> list[str]:
        """Return what the console said since it was last asked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def pages_on_paper(self) -> int:
        """Return the number of pages of the page as a PDF."""
        printed = base64.b64decode(self.driver.print_page())
        assert printed.startswith(b"%PDF")
        return printed.count(b"/Type /Page\n")


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start a browser with a new profile in a folder, and end it afterwards."""
    options = webdriver.ChromeOptions()
    options.binary_location = next(filter(None, map(shutil.which, BROWSERS))) or ""
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
