"""What tests of pages share: one browser, and pages without Vega's JavaScript, in whose text nothing is to be found."""

from collections.abc import Iterator

import pytest

from bench.show.pages import shell
from tests.show.pages.browser import Browser, browser


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return a browser for all tests."""
    with browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def without_vega() -> Iterator[None]:
    """Leave out Vega's JavaScript."""
    _, own = shell.scripts()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shell, "scripts", lambda: ["", own])
        yield
