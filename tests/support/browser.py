"""Chromium for tests. Without it they are skipped, or fail if `MOOT_REQUIRE_BROWSER=1` is set."""

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

from tests.support.waiting import LONG_TIMEOUT_S, wait_until

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --window-size=1280,900"
)
POLL_INTERVAL_S = 0.02
FIND_ELEMENT_JS = """
const [selector, text] = arguments;
return [...document.querySelectorAll(selector)].find((each) => !text || each.innerText.trim() === text);
"""
RETRIED_ERRORS = (
    StaleElementReferenceException,
    ElementNotInteractableException,
    ElementClickInterceptedException,
)
RECORD_VIOLATIONS_JS = """
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
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": RECORD_VIOLATIONS_JS})
    try:
        yield driver
    finally:
        driver.quit()


def take_log(browser: Any, kind: str) -> list[dict[str, Any]]:
    """Return the log entries since the last call."""
    return list(browser.get_log(kind))


def set_viewport(browser: webdriver.Chrome, pixels: int, *, scheme: str = "light") -> None:
    metrics = {"width": pixels, "height": 800, "deviceScaleFactor": 1, "mobile": pixels < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def find_element(browser: webdriver.Chrome, selector: str, text: str = "") -> WebElement:
    """Wait for an element that matches a selector, and has the text if one is given."""
    wait = WebDriverWait(browser, LONG_TIMEOUT_S, POLL_INTERVAL_S)
    script = functools.partial(browser.execute_script, FIND_ELEMENT_JS, selector, text)
    element: WebElement = wait.until(lambda _: script(), f"{selector} {text}")
    return element


def click(browser: webdriver.Chrome, selector: str, text: str = "") -> None:
    """Click an element when it can be clicked. Find it again if the page has replaced it."""

    def try_click(_: webdriver.Chrome) -> bool:
        find_element(browser, selector, text).click()
        return True

    wait = WebDriverWait(browser, LONG_TIMEOUT_S, POLL_INTERVAL_S, ignored_exceptions=RETRIED_ERRORS)
    wait.until(try_click, f"{selector} {text}")


def element_texts(browser: webdriver.Chrome, selector: str) -> list[str]:
    """Return the texts of all elements that match a selector now."""
    script = "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent.trim())"
    return list(browser.execute_script(script, selector))


def wait_for_text(
    browser: webdriver.Chrome, selector: str, words: str, seconds: float = LONG_TIMEOUT_S
) -> bool:
    return wait_until(lambda: words in " ".join(element_texts(browser, selector)), seconds)
