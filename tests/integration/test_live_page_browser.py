"""The live page in a real browser: a whole debate, hostile text, and a long debate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from moot import DebateConfig
from tests.support.browser import (
    chromium,
    click,
    element_texts,
    find_element,
    set_viewport,
    take_log,
    wait_for_text,
)
from tests.support.live_page import PausedModel, open_with_models, serve_in_thread
from tests.support.report_documents import ATTACKS
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

MESSAGE = "We should measure the **cost** first. " + "\n\n".join(ATTACKS)
NAME = '"><img src=x onerror=window.ran=1>'
LONG_TURNS = 1000
MAX_PAINT_MS = 1500
"""An idle machine needs a tenth of this time. The rest is for a busy one."""


@dataclass
class Page:
    """Address of the page, its model, and the ids of two debates."""

    url: str
    model: PausedModel
    hostile: str
    long: str


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    database, model = tmp_path_factory.mktemp("live") / "d.sqlite", PausedModel(script=lambda _: MESSAGE)
    judged: dict[str, Any] = {"judge": {"model": "offline"}, "blackboard": {"model": "offline"}}
    debaters = ({"id": "ada", "name": NAME, "role": NAME, "stance": NAME}, {"name": "Ben"})
    with open_with_models(database) as debates:
        config = DebateConfig(debaters=debaters)
        attacks = [{"speaker": ("ada", "ben")[n % 2], "content": text} for n, text in enumerate(ATTACKS)]
        hostile = debates.start("\n".join(ATTACKS), config, name=NAME, transcript=attacks)
        words = "We should measure the cost of each deployment before we split. "
        transcript = [
            {"speaker": ("ada", "ben")[n % 2], "content": f"Turn {n}. {words * (n % 7)}"}
            for n in range(LONG_TURNS)
        ]
        long = debates.start("A long one", config, transcript=transcript)
        hostile.run(turns=2)
    config = DebateConfig(model="mine", turns=3, debaters=({"name": "Ada"}, {"name": "Ben"}), **judged)
    with serve_in_thread(database, config, mine=model) as url:
        yield Page(url, model, hostile.id, long.id)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, page: Page) -> Iterator[webdriver.Chrome]:
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


def assert_nothing_ran(browser: webdriver.Chrome) -> None:
    assert browser.execute_script("return window.ran") is None
    assert browser.execute_script("return violations") == []
    assert (
        browser.execute_script(
            "return document.querySelectorAll('#app :is(script, iframe, img, base, link, style)').length"
        )
        == 0
    )
    assert [row["message"] for row in take_log(browser, "browser")] == []


def test_user_starts_follows_joins_and_inspects_a_debate(browser: webdriver.Chrome, page: Page) -> None:
    set_viewport(browser, 1280)
    browser.get(page.url)
    click(browser, ".heading button.main")
    find_element(browser, "textarea[name=question]").send_keys(
        "Tabs or spaces? <img src=x onerror=window.ran=1>"
    )
    assert wait_for_text(browser, "dialog [role=status]", "calls: ")
    click(browser, "dialog button.main")
    assert wait_for_text(browser, ".now .words strong", "cost")
    assert "*" not in " ".join(element_texts(browser, ".now .words"))
    assert find_element(browser, "#tab-positions").get_attribute("aria-selected") == "true"
    click(browser, "#tab-record")
    assert wait_for_text(browser, ".node.lit", "turn")
    click(browser, "#tab-verdict")
    assert wait_for_text(browser, ".controls", "Pause")
    field = find_element(browser, ".message-form input")
    field.send_keys("Mind the costs of moving.", Keys.ENTER)
    assert wait_for_text(browser, ".told", "at the start of its next step")
    page.model.go.set()
    assert wait_for_text(browser, ".top .pill", "done")
    assert wait_for_text(browser, "#panel .headline", "no model judged this")
    assert wait_for_text(browser, "#announced", "We should measure the cost first.")
    find_element(browser, ".find input").send_keys("costs of moving", Keys.ENTER)
    assert wait_for_text(browser, ".item.current .entry", "Mind the costs of moving.")
    click(browser, "#tab-prompts")
    click(browser, ".budget")
    assert wait_for_text(browser, "dialog.prompt .pill", "exact")
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    assert wait_for_text(browser, ".rows .winner", "placeholder: no model judged this")
    assert_nothing_ran(browser)


def test_user_imports_a_transcript_after_a_preview(
    browser: webdriver.Chrome, page: Page, tmp_path: Path
) -> None:
    file = tmp_path / "talk.txt"
    file.write_text("Ann: Trams <img src=x onerror=window.ran=1>\nBob: Buses.\nAnn: Why?\n")
    browser.get(page.url)
    click(browser, ".heading button:not(.main)")
    find_element(browser, "dialog.import input[type=file]").send_keys(str(file))
    assert wait_for_text(browser, "dialog.import section", "Ann: 2 messages, Bob: 1 message")
    click(browser, "dialog.import button.main")
    assert wait_for_text(browser, ".top .pill", "done")
    assert wait_for_text(browser, "main", "Buses.")
    assert_nothing_ran(browser)


def test_hostile_text_and_names_run_no_script_in_any_view(browser: webdriver.Chrome, page: Page) -> None:
    set_viewport(browser, 390)
    browser.get(page.url)
    assert wait_for_text(browser, ".rows", "window.ran=1")
    browser.get(f"{page.url}/d/{page.hostile}")
    start = browser.current_url
    assert wait_for_text(browser, ".item .entry", "window.ran=1")
    for tab in ("verdict", "ledger", "prompts", "positions", "record"):
        click(browser, f"#tab-{tab}")
        assert wait_until(lambda: "Loading" not in " ".join(element_texts(browser, "#panel")))
        browser.execute_script(
            """
            for (const details of document.querySelectorAll("#panel details")) details.open = true;
            for (const element of document.querySelectorAll("#app *")) {
              for (const kind of ["mouseover", "error", "load"]) element.dispatchEvent(new Event(kind));
            }
            """
        )
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390, tab
    assert browser.current_url == start
    assert_nothing_ran(browser)
    browser.get(f"{page.url}/compare?debate={page.hostile}&debate={page.long}")
    assert wait_for_text(browser, ".compared", "A long one")
    assert_nothing_ran(browser)


def test_page_renders_only_the_visible_part_of_1000_messages(browser: webdriver.Chrome, page: Page) -> None:
    set_viewport(browser, 1280)
    paint = "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
    for _ in range(4):  # other load on the machine adds to the time
        browser.get("about:blank")
        browser.get(f"{page.url}/d/{page.long}#m000777")
        if (painted := browser.execute_script(paint)) < MAX_PAINT_MS:
            break
    assert 0 < painted < MAX_PAINT_MS
    assert wait_until(lambda: browser.execute_script("return document.activeElement.id") == "m000777", 20)
    ActionChains(browser).send_keys("jjk").perform()
    assert wait_until(lambda: browser.execute_script("return document.activeElement.id") == "m000778")
    place = "return document.getElementById(arguments[0])?.getBoundingClientRect().top ?? -1"
    assert wait_until(lambda: 0 < browser.execute_script(place, "m000778") < 400)
    find_element(browser, ".scroller").send_keys(Keys.END)
    assert wait_for_text(browser, ".item .entry", f"Turn {LONG_TURNS - 1}.")
    assert browser.execute_script("return document.querySelectorAll('.item').length") < 60
    assert browser.execute_script("return document.documentElement.scrollHeight <= innerHeight")
