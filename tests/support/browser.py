"""Chromium for tests. Without it tests are skipped; with `MOOT_REQUIRE_BROWSER=1` they fail instead."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    StaleElementReferenceException,
)
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.support.patience import LONG_TIMEOUT_S, until

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --window-size=1280,900"
)
EVERY_S = 0.02
FIND = """
const [selector, text] = arguments;
return [...document.querySelectorAll(selector)].find((each) => !text || each.innerText.trim() === text);
"""
REPLACED = (StaleElementReferenceException, ElementNotInteractableException, ElementClickInterceptedException)
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


def first(browser: webdriver.Chrome, selector: str, text: str = "") -> WebElement:
    """Return the first element that a selector finds, or the first with this text, once it is there."""
    wait = WebDriverWait(browser, LONG_TIMEOUT_S, EVERY_S)
    script = functools.partial(browser.execute_script, FIND, selector, text)
    found: WebElement = wait.until(lambda _: script(), f"{selector} {text}")
    return found


def click(browser: webdriver.Chrome, selector: str, text: str = "") -> None:
    """Click such an element, once it can be clicked. Find it again where the page has just replaced it."""

    def clicked(_: webdriver.Chrome) -> bool:
        first(browser, selector, text).click()
        return True

    wait = WebDriverWait(browser, LONG_TIMEOUT_S, EVERY_S, ignored_exceptions=REPLACED)
    wait.until(clicked, f"{selector} {text}")


def texts(browser: webdriver.Chrome, selector: str) -> list[str]:
    """Return the texts of all elements that a selector finds at one moment."""
    script = "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent.trim())"
    return list(browser.execute_script(script, selector))


def shows(browser: webdriver.Chrome, selector: str, words: str, seconds: float = LONG_TIMEOUT_S) -> bool:
    return until(lambda: words in " ".join(texts(browser, selector)), seconds)
