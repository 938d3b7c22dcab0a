"""Actions of a visitor on the live page in a real browser, by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from moot import DebateConfig
from tests.support.browser import chromium, click, find_element, set_viewport, take_log, wait_for_text
from tests.support.live_page import DebatePage, serve_debates, serve_in_thread
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

MAX_TABS = 40


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DebatePage]:
    with serve_debates(
        tmp_path_factory.mktemp("hands") / "d.sqlite", rounds=1, blackboard={"model": "offline"}
    ) as page:
        yield page


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, page: DebatePage) -> Iterator[webdriver.Chrome]:
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


def test_visitor_opens_a_room_corrects_a_claim_pins_and_forks(
    browser: webdriver.Chrome, page: DebatePage
) -> None:
    set_viewport(browser, 1280)
    browser.get(f"{page.url}/d/{page.dialogue}")
    click(browser, "#tab-ledger")
    room = find_element(browser, ".room")
    assert not room.find_elements(By.CSS_SELECTOR, ".entry")
    click(browser, ".room summary")
    assert wait_for_text(browser, ".room .entry .who", "Nora Feld")
    ids = "return [...document.querySelectorAll('[id]')].map((each) => each.id)"
    assert len(found := browser.execute_script(ids)) == len(set(found))

    click(browser, ".claim button.quiet")
    Select(find_element(browser, ".claim select[name=kind]")).select_by_visible_text("unsure")
    find_element(browser, ".claim input[name=why]").send_keys("She only asked.")
    click(browser, ".claim form button")
    assert wait_for_text(browser, ".claim .reason b", "unsure")
    assert wait_until(lambda: not browser.find_elements(By.CSS_SELECTOR, ".claim form"))

    browser.get(f"{page.url}/d/{page.dialogue}#m000002")
    assert wait_until(lambda: browser.execute_script("return document.activeElement.id") == "m000002", 20)
    tools = "[data-seq='2'] .tools"
    click(browser, f"{tools} summary")
    click(browser, f"{tools} button", "Pin")
    assert wait_until(lambda: browser.find_elements(By.CSS_SELECTOR, "[data-seq='2'].pinned"))
    assert wait_until(lambda: browser.find_elements(By.CSS_SELECTOR, f"{tools} button[aria-pressed=true]"))
    click(browser, f"{tools} button", "Fork here")
    after = Select(find_element(browser, "dialog.fork select[name=after]"))
    assert after.first_selected_option.text.startswith("m000002 · ")
    find_element(browser, "dialog.fork input[name=name]").send_keys("without the reply", Keys.ENTER)
    assert wait_for_text(browser, ".top .about p", "forked from")
    assert page.dialogue not in browser.current_url
    assert wait_for_text(browser, ".find [role=status]", "2 messages")
    click(browser, "#tab-record")
    assert wait_for_text(browser, "#panel .facts", "without the reply")
    click(browser, ".controls .menu summary")
    click(browser, ".controls .menu a", "Compare with the original")
    assert wait_for_text(browser, ".compared", "free of charge")
    assert [row["message"] for row in take_log(browser, "browser")] == []


def press_tab_until_focused(browser: webdriver.Chrome, selector: str) -> None:
    """Press Tab until an element that matches the selector has the focus."""
    script = "return document.activeElement.matches(arguments[0])"
    for _ in range(MAX_TABS):
        if browser.execute_script(script, selector):
            return
        ActionChains(browser).send_keys(Keys.TAB).perform()
    raise AssertionError(f"{selector} is not reached")


def test_visitor_finds_answers_and_reads_a_debate_by_keyboard(
    browser: webdriver.Chrome, page: DebatePage
) -> None:
    def press(*keys: str) -> None:
        ActionChains(browser).send_keys(*keys).perform()

    set_viewport(browser, 1280)
    browser.get(page.url)
    assert wait_for_text(browser, ".rows a", "Tabs or spaces?")
    press("/", "spaces")
    assert wait_until(lambda: len(browser.find_elements(By.CSS_SELECTOR, ".rows li")) == 1)
    press(Keys.ESCAPE, "j", Keys.ENTER)
    assert wait_for_text(browser, ".questions b", "Ben")
    press_tab_until_focused(browser, ".questions textarea")
    press("Tabs, I say.")
    press_tab_until_focused(browser, ".questions button")
    press(Keys.ENTER)
    assert wait_for_text(browser, ".top .pill", "done")
    assert wait_for_text(browser, ".item .entry", "Tabs, I say.")
    press_tab_until_focused(browser, "#tab-verdict")
    press(Keys.ARROW_RIGHT)
    assert wait_for_text(browser, "#panel h2", "Positions of the debaters")
    press(Keys.ESCAPE)
    assert wait_for_text(browser, ".list h1", "Debates")
    press_tab_until_focused(browser, ".heading button")
    press(Keys.ENTER)
    assert wait_until(lambda: browser.execute_script("return document.querySelector('dialog').open"))
    press(Keys.ESCAPE)
    assert wait_until(lambda: not browser.execute_script("return document.querySelector('dialog').open"))
    outlined = "const s = getComputedStyle(document.activeElement); return s.outlineStyle + s.outlineWidth"
    assert "none" not in browser.execute_script(outlined)


@pytest.mark.slow
def test_form_starts_a_council_that_streams_three_debaters_at_once(
    browser: webdriver.Chrome, page: DebatePage, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.html"
    notes.write_text("<p>Queues lose messages.</p>")
    set_viewport(browser, 1280)
    browser.get(page.url)
    click(browser, ".heading button")
    find_element(browser, "textarea[name=question]").send_keys("Which queue?")
    Select(find_element(browser, "select[name=protocol]")).select_by_visible_text("council")
    find_element(browser, "input[name=model]").send_keys("mine")
    find_element(browser, "input[type=file]").send_keys(str(notes))
    assert wait_for_text(browser, ".documents", "notes.html: 3 words")
    click(browser, "dialog button.main")
    first_words = (
        "return [...document.querySelectorAll('.now .words')].map((each) => each.textContent.slice(0, 9))"
    )
    assert wait_until(lambda: browser.execute_script(first_words) == ["We should"] * 3, 20)
    names = "return [...document.querySelectorAll('.now .who bdi')].map((each) => each.textContent)"
    assert len(set(browser.execute_script(names))) == 3
    click(browser, ".controls button", "Pause")
    assert wait_for_text(browser, ".told", "The debate pauses at the end of this step.")
    page.model.go.set()
    assert wait_for_text(browser, ".top .pill", "paused")
    click(browser, ".controls button", "Continue")
    assert wait_for_text(browser, ".top .pill", "done")


def test_visitor_plays_asks_renames_and_undoes_deletion_of_a_sample(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    set_viewport(browser, 1280)
    with serve_in_thread(tmp_path / "d.sqlite", DebateConfig()) as url:
        browser.get(url)
        click(browser, "button[aria-label='Play the sample monolith']")
        assert wait_for_text(
            browser, ".top h1", "Should we split the monolith into services over the next year?"
        )
        assert wait_for_text(browser, ".top .pill", "done")
        assert wait_for_text(browser, "#panel .headline", "Do not split this year")
        click(browser, ".choices label", "Partly")
        find_element(browser, ".feedback textarea").send_keys("Two teams left.")
        click(browser, ".feedback button", "Save feedback")
        assert wait_for_text(browser, ".told", "Your feedback is saved.")
        assert find_element(browser, ".feedback button", "Change feedback").is_displayed()

        click(browser, ".controls button", "Ask")
        find_element(browser, "dialog.ask input").send_keys("What about checkout?", Keys.ENTER)
        assert wait_for_text(browser, "dialog.ask .prose", "checkout")
        ActionChains(browser).send_keys(Keys.ESCAPE).perform()
        click(browser, ".controls .menu summary")
        field = find_element(browser, ".rename input")
        field.clear()
        field.send_keys("ours", Keys.ENTER)
        click(browser, ".menu button", "Delete")
        click(browser, ".menu button", "Undo")
        assert find_element(browser, ".menu button", "Delete").is_displayed()
        browser.get(url)
        assert wait_for_text(browser, ".rows", "ours")
        assert wait_for_text(browser, ".rows", "confidence 80 of 100")
        assert [row["message"] for row in take_log(browser, "browser")] == []
