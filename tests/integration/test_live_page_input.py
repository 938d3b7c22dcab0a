"""Actions of a visitor on the live page in a real browser, by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from moot import DebateConfig
from moot.models.offline import recording_config
from moot.state.errors import WaitingForPerson
from tests.support.browser import chromium, click, first, log, shows, width
from tests.support.live_page import PausedModel, open_page, serve_in_thread
from tests.support.patience import until

pytestmark = pytest.mark.slow

MOST_TABS = 40


@dataclass
class Page:
    """The page, and the debates there."""

    url: str
    dialogue: str
    """With a crux room, over."""
    asking: str
    """Waits for what Ben says."""
    model: PausedModel


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    database = tmp_path_factory.mktemp("hands") / "d.sqlite"
    with open_page(database) as debates:
        dialogue = debates.start(None, DebateConfig.model_validate(recording_config("free-transport")))
        dialogue.run()
        line = [{"name": "Ada"}, {"name": "Ben", "model": "human"}]
        asking = debates.start("Tabs or spaces?", DebateConfig.model_validate({"debaters": line, "turns": 2}))
        with pytest.raises(WaitingForPerson):
            asking.run()
    model = PausedModel(script=lambda _: "We should measure the cost of it first, and then decide.")
    judged: dict[str, Any] = {"judge": {"model": "offline"}, "blackboard": {"model": "offline"}}
    with serve_in_thread(database, DebateConfig(rounds=1, **judged), mine=model) as url:
        yield Page(url, dialogue.id, asking.id, model)
        model.go.set()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, page: Page) -> Iterator[webdriver.Chrome]:
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


def test_a_room_unfolds_a_note_is_corrected_a_message_pinned_and_a_fork_goes_its_own_way(
    browser: webdriver.Chrome, page: Page
) -> None:
    width(browser, 1280)
    browser.get(f"{page.url}/d/{page.dialogue}")
    click(browser, "#tab-ledger")
    room = first(browser, ".room")
    assert not room.find_elements(By.CSS_SELECTOR, ".entry")
    click(browser, ".room summary")
    assert shows(browser, ".room .entry .who", "Nora Feld")
    ids = "return [...document.querySelectorAll('[id]')].map((each) => each.id)"
    assert len(found := browser.execute_script(ids)) == len(set(found))

    click(browser, ".claim button.quiet")
    Select(first(browser, ".claim select[name=kind]")).select_by_visible_text("unsure")
    first(browser, ".claim input[name=why]").send_keys("She only asked.")
    click(browser, ".claim form button")
    assert shows(browser, ".claim .reason b", "unsure")
    assert until(lambda: not browser.find_elements(By.CSS_SELECTOR, ".claim form"))

    browser.get(f"{page.url}/d/{page.dialogue}#m000002")
    assert until(lambda: browser.execute_script("return document.activeElement.id") == "m000002", 20)
    tools = "[data-seq='2'] .tools button"
    click(browser, f"{tools}:nth-of-type(1)")
    assert until(lambda: browser.find_elements(By.CSS_SELECTOR, "[data-seq='2'].pinned"))
    assert until(lambda: browser.find_elements(By.CSS_SELECTOR, f"{tools}[aria-pressed=true]"))
    click(browser, f"{tools}:nth-of-type(2)")
    assert shows(browser, ".top .about p", "forked from")
    assert page.dialogue not in browser.current_url
    assert shows(browser, ".find [role=status]", "2 messages")
    click(browser, ".controls a.button")
    assert shows(browser, ".compared", "free of charge")
    assert [row["message"] for row in log(browser, "browser")] == []


def focused(browser: webdriver.Chrome, selector: str) -> None:
    """Go on with the tabulator until something has the focus."""
    script = "return document.activeElement.matches(arguments[0])"
    for _ in range(MOST_TABS):
        if browser.execute_script(script, selector):
            return
        ActionChains(browser).send_keys(Keys.TAB).perform()
    raise AssertionError(f"{selector} is not reached")


def test_by_keyboard_alone_a_debate_is_found_answered_read_and_left(
    browser: webdriver.Chrome, page: Page
) -> None:
    def press(*keys: str) -> None:
        ActionChains(browser).send_keys(*keys).perform()

    width(browser, 1280)
    browser.get(page.url)
    assert shows(browser, ".rows a", "Tabs or spaces?")
    press("/", "spaces")
    assert until(lambda: len(browser.find_elements(By.CSS_SELECTOR, ".rows li")) == 1)
    press(Keys.ESCAPE, "j", Keys.ENTER)
    assert shows(browser, ".questions b", "Ben")
    focused(browser, ".questions textarea")
    press("Tabs, I say.")
    focused(browser, ".questions button")
    press(Keys.ENTER)
    assert shows(browser, ".top .pill", "done")
    assert shows(browser, ".item .entry", "Tabs, I say.")
    focused(browser, "#tab-verdict")
    press(Keys.ARROW_RIGHT)
    assert shows(browser, "#panel h2", "Positions of the debaters")
    press(Keys.ESCAPE)
    assert shows(browser, ".list h1", "Debates")
    focused(browser, ".heading button")
    press(Keys.ENTER)
    assert until(lambda: browser.execute_script("return document.querySelector('dialog').open"))
    press(Keys.ESCAPE)
    assert until(lambda: not browser.execute_script("return document.querySelector('dialog').open"))
    outlined = "const s = getComputedStyle(document.activeElement); return s.outlineStyle + s.outlineWidth"
    assert "none" not in browser.execute_script(outlined)


@pytest.mark.slow
def test_a_council_is_begun_by_its_form_and_all_three_are_heard_at_once(
    browser: webdriver.Chrome, page: Page, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.html"
    notes.write_text("<p>Queues lose messages.</p>")
    width(browser, 1280)
    browser.get(page.url)
    click(browser, ".heading button")
    first(browser, "textarea[name=question]").send_keys("Which queue?")
    Select(first(browser, "select[name=protocol]")).select_by_visible_text("council")
    first(browser, "input[name=model]").send_keys("mine")
    first(browser, "input[type=file]").send_keys(str(notes))
    assert shows(browser, ".documents", "notes.html: 3 words")
    click(browser, "dialog button.main")
    begun = "return [...document.querySelectorAll('.now .words')].map((each) => each.textContent.slice(0, 9))"
    assert until(lambda: browser.execute_script(begun) == ["We should"] * 3, 20)
    names = "return [...document.querySelectorAll('.now .who bdi')].map((each) => each.textContent)"
    assert len(set(browser.execute_script(names))) == 3
    click(browser, ".controls button", "Pause")
    assert shows(browser, ".told", "The debate pauses at the end of this step.")
    page.model.go.set()
    assert shows(browser, ".top .pill", "paused")
    click(browser, ".controls button", "Continue")
    assert shows(browser, ".top .pill", "done")


def test_a_sample_is_played_asked_about_renamed_and_its_deletion_undone(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    width(browser, 1280)
    with serve_in_thread(tmp_path / "d.sqlite", DebateConfig()) as url:
        browser.get(url)
        click(browser, "button[aria-label='Play the sample monolith']")
        assert shows(browser, ".top h1", "Should we split the monolith into services over the next year?")
        assert shows(browser, ".top .pill", "done")
        assert shows(browser, "#panel .headline", "Do not split this year")
        click(browser, ".choices label", "Partly")
        first(browser, ".feedback textarea").send_keys("Two teams left.")
        click(browser, ".feedback button", "Save feedback")
        assert shows(browser, ".told", "Your feedback is saved.")
        assert first(browser, ".feedback button", "Change feedback").is_displayed()

        click(browser, ".controls button", "Ask")
        first(browser, "dialog.ask input").send_keys("What about checkout?", Keys.ENTER)
        assert shows(browser, "dialog.ask .prose", "checkout")
        ActionChains(browser).send_keys(Keys.ESCAPE).perform()
        click(browser, ".menu summary")
        field = first(browser, ".rename input")
        field.clear()
        field.send_keys("ours", Keys.ENTER)
        click(browser, ".menu button", "Delete")
        click(browser, ".menu button", "Undo")
        assert first(browser, ".menu button", "Delete").is_displayed()
        browser.get(url)
        assert shows(browser, ".rows", "ours")
        assert shows(browser, ".rows", "confidence 80 of 100")
        assert [row["message"] for row in log(browser, "browser")] == []
