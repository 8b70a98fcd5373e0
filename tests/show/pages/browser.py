"""Debian's Chromium without a window, driven through its own driver, for pages that lie on the disk."""

import base64
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

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

    def open(self, page: Path, *, dark: bool = False, width: int = 1280) -> None:
        """Show a page of the disk, freshly loaded, in a scheme of colours and a width."""
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
