"""What tests of pages share: one browser."""

from collections.abc import Iterator

import pytest

from tests.show.pages.browser import Browser, browser


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return a browser for all tests."""
    with browser(tmp_path_factory.mktemp("profile")) as started:
        yield started
