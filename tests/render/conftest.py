"""One browser for all tests of pages; they are skipped where there is none."""

from collections.abc import Iterator

import pytest

from tests.render.browser import CHROMIUM, DRIVER, Page, browser


@pytest.fixture(scope="session")
def opened() -> Iterator[Page]:
    if not (CHROMIUM and DRIVER):
        pytest.skip("needs chromium and chromedriver")
    with browser() as page:
        yield page


@pytest.fixture
def page(opened: Page) -> Iterator[Page]:
    """The browser in the size of a desktop; a test fails if the console has said anything."""
    opened.resize(1280, 800)
    opened.errors()
    yield opened
    assert opened.errors() == []
