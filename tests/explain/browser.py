"""A real browser for the tests of the page: Debian's chromium, driven by selenium."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))


class Page:
    """An open page, by what a person does with it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path) -> None:
        self.driver.get(path.resolve().as_uri())

    def errors(self) -> list[str]:
        """What the console says since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def all(self, selector: str) -> list[Any]:
        found: list[Any] = self.driver.find_elements("css selector", selector)
        return found

    def one(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def text(self, selector: str) -> str:
        return str(self.one(selector).text)

    def click(self, selector: str) -> None:
        self.one(selector).click()

    def click_node(self, t: int) -> None:
        self.click(f'[data-node="{t}"] rect.box')

    def nodes(self, state: str = "node") -> list[int]:
        return sorted(int(node.get_attribute("data-node")) for node in self.all(f".{state}[data-node]"))

    def pick(self, row: int) -> None:
        """One of the rows that the page holds."""
        self.click("#tab-sample")
        self.click(f'#pick option[value="{row}"]')

    def enter(self, field: int, text: str) -> None:
        if not self.one("#sample").is_displayed():
            self.click("#tab-sample")
        if not self.one("#fields").is_displayed():
            self.click("#entry summary")
        box = self.one(f"#field-{field}")
        box.clear()
        box.send_keys(text)

    def press(self, keys: str) -> None:
        self.one("body").send_keys(keys)

    def outputs(self) -> list[float]:
        """What is predicted, with all digits."""
        found: list[float] = json.loads(self.one("#prediction").get_attribute("data-outputs"))
        return found


@contextmanager
def browser() -> Iterator[Page]:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    try:
        yield Page(driver)
    finally:
        driver.quit()
