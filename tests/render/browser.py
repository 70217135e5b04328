"""A real browser for the tests of the page: Debian's chromium, driven by selenium."""

import json
import re
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

    def find(self, row: int | str) -> None:
        """One of the rows that the page holds, by its number in the table or by its label."""
        self.click("#tab-sample")
        box = self.one("#find-row")
        box.clear()
        box.send_keys(str(row))

    def row(self) -> int:
        """The number of the row that is shown."""
        return int(self.text("#outcome h2").removeprefix("Row "))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def resize(self, width: int, height: int, *, mobile: bool = False) -> None:
        """A window of this size inside; a real one cannot be as narrow as a phone."""
        options = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", options)

    def collect(self, selector: str, what: str) -> list[str]:
        """A property of all these elements, in one call."""
        found: list[str] = self.run(
            f"return [...document.querySelectorAll(arguments[0])].map((element) => element.{what})", selector
        )
        return found

    def amounts(self, where: str) -> list[float]:
        """The numbers of a sum with all digits: what it begins with, what is added, what it comes to."""
        return [float(amount) for amount in self.collect(f"{where} .ladder .number", "dataset.amount")]

    def names(self, where: str) -> list[str]:
        """The names beside these numbers."""
        return self.collect(f"{where} .ladder .name", "textContent")

    def show_all(self, where: str) -> None:
        for button in self.all(f"{where} .ladder button.name"):
            button.click()

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


def record(path: Path) -> dict[str, Any]:
    """The data of a page."""
    found = re.search(r'<script type="application/json" id="record">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found is not None
    read: dict[str, Any] = json.loads(found[1])
    return read
