"""The live page in a real browser: a held debate, hostile text, and a long debate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from moot import DebateConfig
from tests.support.browser import chromium, click, first, log, shows, texts, width
from tests.support.live_page import PausedModel, open_page, serve_in_thread
from tests.support.patience import until
from tests.support.report_documents import ATTACKS

pytestmark = pytest.mark.slow

SPEECH = "We should measure the **cost** first. " + "\n\n".join(ATTACKS)
NAME = '"><img src=x onerror=window.ran=1>'
LONG = 1000
PAINTS_IN_MS = 1500
"""A tenth of it on an idle machine; the rest is for a busy one."""


@dataclass
class Page:
    """The page, and what the test knows of its debates."""

    url: str
    model: PausedModel
    hostile: str
    long: str


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    database, model = tmp_path_factory.mktemp("live") / "d.sqlite", PausedModel(script=lambda _: SPEECH)
    judged: dict[str, Any] = {"judge": {"model": "offline"}, "blackboard": {"model": "offline"}}
    line = ({"id": "ada", "name": NAME, "role": NAME, "stance": NAME}, {"name": "Ben"})
    with open_page(database) as debates:
        config = DebateConfig(debaters=line)
        attacks = [{"speaker": ("ada", "ben")[n % 2], "content": text} for n, text in enumerate(ATTACKS)]
        hostile = debates.start("\n".join(ATTACKS), config, name=NAME, transcript=attacks)
        words = "We should measure the cost of each deployment before we split. "
        said = [
            {"speaker": ("ada", "ben")[n % 2], "content": f"Turn {n}. {words * (n % 7)}"} for n in range(LONG)
        ]
        long = debates.start("A long one", config, transcript=said)
        hostile.run(turns=2)
    with serve_in_thread(database, DebateConfig(model="mine", turns=3, **judged), mine=model) as url:
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
    assert [row["message"] for row in log(browser, "browser")] == []


def test_a_debate_is_begun_heard_joined_and_judged(browser: webdriver.Chrome, page: Page) -> None:
    width(browser, 1280)
    browser.get(page.url)
    click(browser, ".heading button.main")
    first(browser, "textarea[name=question]").send_keys("Tabs or spaces? <img src=x onerror=window.ran=1>")
    assert shows(browser, "dialog [role=status]", "calls: ")
    click(browser, "dialog button.main")
    assert shows(browser, ".now .words", "We should measure")
    assert first(browser, "#tab-positions").get_attribute("aria-selected") == "true"
    click(browser, "#tab-record")
    assert shows(browser, ".node.lit", "turn")
    click(browser, "#tab-verdict")
    assert shows(browser, ".controls", "Pause")
    field = first(browser, ".message-form input")
    field.send_keys("Mind the costs of moving.", Keys.ENTER)
    assert shows(browser, ".told", "at the start of its next step")
    page.model.go.set()
    assert shows(browser, ".top .pill", "done")
    assert shows(browser, "#panel .headline", "no model judged this")
    assert shows(browser, "#announced", "We should measure the **cost** first.")
    first(browser, ".find input").send_keys("costs of moving", Keys.ENTER)
    assert shows(browser, ".item.current .entry", "Mind the costs of moving.")
    click(browser, "#tab-prompts")
    click(browser, ".budget")
    assert shows(browser, "dialog.prompt .pill", "exact")
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    assert shows(browser, ".rows .winner", "placeholder: no model judged this")
    assert_nothing_ran(browser)


def test_hostile_words_and_names_stay_words_wherever_they_are_shown(
    browser: webdriver.Chrome, page: Page
) -> None:
    width(browser, 390)
    browser.get(page.url)
    assert shows(browser, ".rows", "window.ran=1")
    browser.get(f"{page.url}/d/{page.hostile}")
    start = browser.current_url
    assert shows(browser, ".item .entry", "window.ran=1")
    for tab in ("verdict", "ledger", "prompts", "positions", "board", "record"):
        click(browser, f"#tab-{tab}")
        assert until(lambda: "Loading" not in " ".join(texts(browser, "#panel")))
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
    assert shows(browser, ".compared", "A long one")
    assert_nothing_ran(browser)


def test_a_thousand_messages_are_read_a_screen_at_a_time(browser: webdriver.Chrome, page: Page) -> None:
    width(browser, 1280)
    paint = "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
    for _ in range(4):  # whatever else the machine does adds to it
        browser.get("about:blank")
        browser.get(f"{page.url}/d/{page.long}#m000777")
        if (painted := browser.execute_script(paint)) < PAINTS_IN_MS:
            break
    assert 0 < painted < PAINTS_IN_MS
    assert until(lambda: browser.execute_script("return document.activeElement.id") == "m000777", 20)
    ActionChains(browser).send_keys("jjk").perform()
    assert until(lambda: browser.execute_script("return document.activeElement.id") == "m000778")
    place = "return document.getElementById(arguments[0])?.getBoundingClientRect().top ?? -1"
    assert until(lambda: 0 < browser.execute_script(place, "m000778") < 400)
    first(browser, ".scroller").send_keys(Keys.END)
    assert shows(browser, ".item .entry", f"Turn {LONG - 1}.")
    assert browser.execute_script("return document.querySelectorAll('.item').length") < 60
    assert browser.execute_script("return document.documentElement.scrollHeight <= innerHeight")
