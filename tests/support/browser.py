"""Chromium for tests. Without it tests are skipped; with `MOOT_REQUIRE_BROWSER=1` they fail instead."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.support.patience import LONG_TIMEOUT_S, until

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --window-size=1280,900"
)
WATCH = """
window.violations = [];
addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
"""


@contextmanager
def chromium(folder: Path) -> Iterator[webdriver.Chrome]:
    """Run a browser that keeps its files in a folder."""
    if CHROMIUM is None or DRIVER is None:
        if os.environ.get("MOOT_REQUIRE_BROWSER") == "1":
            pytest.fail("MOOT_REQUIRE_BROWSER=1, but chromium or chromedriver is not on the path")
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS.split(), f"--user-data-dir={folder}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    try:
        yield driver
    finally:
        driver.quit()


def log(browser: Any, kind: str) -> list[dict[str, Any]]:
    """Take what the browser has logged since the last call."""
    return list(browser.get_log(kind))


def width(browser: webdriver.Chrome, pixels: int, *, scheme: str = "light") -> None:
    metrics = {"width": pixels, "height": 800, "deviceScaleFactor": 1, "mobile": pixels < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def first(browser: webdriver.Chrome, selector: str) -> WebElement:
    assert until(lambda: bool(browser.find_elements(By.CSS_SELECTOR, selector))), selector
    return browser.find_element(By.CSS_SELECTOR, selector)


def shows(browser: webdriver.Chrome, selector: str, words: str, seconds: float = LONG_TIMEOUT_S) -> bool:
    script = "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent).join(' ')"
    return until(lambda: words in browser.execute_script(script, selector), seconds)


def button(browser: webdriver.Chrome, selector: str, text: str) -> WebElement:
    """Return the button with this text, once it is there."""
    found: list[WebElement] = []

    def appears() -> bool:
        found[:] = [each for each in browser.find_elements(By.CSS_SELECTOR, selector) if each.text == text]
        return bool(found)

    assert until(appears), text
    return found[0]
