"""The live page in a real browser: the result first, small controls, pictures, and who may do what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from moot.models.offline import ScriptedCall
from tests.support.browser import chromium, click, element_texts, find_element, set_viewport, wait_for_text
from tests.support.live_page import OPERATORS_TOKEN, DebatePage, serve_debates
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

WIDTHS = (390, 768, 1280)
STANCE = "Use one queue for each team, because a shared queue hides which team has fallen behind. " * 3
PROPOSED = [{"name": name, "role": "engineer", "stance": STANCE.strip()} for name in ("Mia", "Max")]


def reply_to(call: ScriptedCall) -> str | dict[str, Any]:
    if "Propose two debaters" in str(call.messages[0].content):
        return {"debaters": PROPOSED}
    return "We should measure the cost of it first, and then decide."


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DebatePage]:
    with serve_debates(tmp_path_factory.mktemp("result") / "d.sqlite") as page:
        page.model.script = reply_to
        yield page


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, page: DebatePage) -> Iterator[webdriver.Chrome]:
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.mark.parametrize("pixels", WIDTHS)
def test_finished_debate_opens_on_its_decision(
    browser: webdriver.Chrome, page: DebatePage, pixels: int
) -> None:
    set_viewport(browser, pixels)
    browser.get(f"{page.url}/d/{page.dialogue}")
    headline = find_element(browser, "#panel .headline")
    assert wait_until(headline.is_displayed)
    assert 0 <= headline.rect["y"] < 800
    assert browser.execute_script("return document.documentElement.scrollWidth") <= pixels


def test_page_shows_the_result_when_a_debate_ends(browser: webdriver.Chrome, page: DebatePage) -> None:
    set_viewport(browser, 390)
    page.model.go.clear()
    browser.get(page.url)
    click(browser, ".heading button.main")
    find_element(browser, "textarea[name=question]").send_keys("Which queue?")
    find_element(browser, "input[name=model]").send_keys("mine")
    find_element(browser, "input[name=turns]").send_keys("2")
    click(browser, "dialog button.main")
    assert wait_for_text(browser, ".progress", "round 1 of 1")
    assert wait_for_text(browser, ".now .words", "We should")
    assert find_element(browser, "#tab-transcript").get_attribute("aria-selected") == "true"
    page.model.go.set()
    assert wait_for_text(browser, ".told", "The debate has ended.")
    assert find_element(browser, "#tab-verdict").get_attribute("aria-selected") == "true"
    assert wait_until(find_element(browser, "#panel .headline").is_displayed)
    click(browser, "#tab-transcript")
    click(browser, ".progress", "Show the result")
    assert wait_until(find_element(browser, "#panel .headline").is_displayed)


def test_start_without_debaters_proposes_two_as_the_command_does(
    browser: webdriver.Chrome, page: DebatePage
) -> None:
    set_viewport(browser, 768)
    page.model.go.set()
    browser.get(f"{page.url}?token={OPERATORS_TOKEN}")
    click(browser, ".heading button.main")
    find_element(browser, "textarea[name=question]").send_keys("Which queue?")
    find_element(browser, "input[name=model]").send_keys("mine")
    click(browser, "dialog button.main")
    assert wait_for_text(browser, "dialog fieldset [role=status]", "mine proposed these two debaters")
    stance = find_element(browser, ".debater textarea")
    assert stance.get_property("value") == STANCE.strip()
    assert browser.execute_script("return arguments[0].scrollHeight <= arguments[0].offsetHeight", stance)
    click(browser, "dialog button", "Propose two others")
    others = "than these: Mia, engineer"
    assert wait_until(lambda: others in str(page.model.calls[-1].messages[0].content))
    click(browser, "dialog button.main", "Start")
    assert wait_for_text(browser, ".item .who", "Mia")
    browser.delete_all_cookies()


def test_header_and_composer_take_at_most_a_fifth_of_a_phone(
    browser: webdriver.Chrome, page: DebatePage
) -> None:
    set_viewport(browser, 390)
    browser.get(f"{page.url}/d/{page.dialogue}#m000002")
    assert wait_until(lambda: browser.execute_script("return document.activeElement.id") == "m000002", 20)
    parts = "[...document.querySelectorAll('.debate .top, .message-form')]"
    heights = f"return {parts}.map((each) => each.offsetHeight)"
    assert sum(browser.execute_script(heights)) <= 800 / 5
    shown = "return getComputedStyle(document.querySelector(arguments[0])).display"
    assert browser.execute_script(shown, ".item:not(.current) .meta") == "none"
    click(browser, "[data-seq='2'] .tools summary")
    assert browser.execute_script(shown, "[data-seq='2'] .meta") != "none"
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    assert not find_element(browser, "[data-seq='2'] .tools").get_attribute("open")
    assert page.dialogue in browser.current_url


def test_menu_is_aligned_with_the_other_actions(browser: webdriver.Chrome, page: DebatePage) -> None:
    set_viewport(browser, 1280)
    browser.get(f"{page.url}/d/{page.dialogue}")
    ask, more = find_element(browser, ".controls button", "Ask"), find_element(browser, ".controls summary")
    assert ask.rect["y"] == more.rect["y"]
    assert ask.rect["height"] == more.rect["height"]


def test_question_has_the_focus_and_the_answers_ids_are_links(
    browser: webdriver.Chrome, page: DebatePage
) -> None:
    set_viewport(browser, 390)
    browser.get(f"{page.url}/d/{page.dialogue}")
    click(browser, ".controls button", "Ask")
    assert wait_until(lambda: browser.execute_script("return document.activeElement.name") == "question")
    ActionChains(browser).send_keys("What about Dunkirk?", Keys.ENTER).perform()
    link = find_element(browser, "dialog.ask .prose a.cite")
    target = str(link.get_attribute("href")).rpartition("#")[2]
    link.click()
    assert wait_until(lambda: browser.execute_script("return document.activeElement.id") == target, 20)
    assert find_element(browser, f"#{target}").is_displayed()


def test_another_verdict_has_its_price_beside_it(browser: webdriver.Chrome, page: DebatePage) -> None:
    set_viewport(browser, 1280)
    browser.get(f"{page.url}/d/{page.asking}")
    assert wait_for_text(browser, ".progress", "waiting for Ben")
    browser.get(f"{page.url}/d/{page.dialogue}")
    click(browser, ".controls summary")
    click(browser, ".controls button", "Judge again")
    assert wait_for_text(browser, "dialog.judge", "tokens")
    assert wait_for_text(browser, "dialog.judge", "The earlier verdict is kept")
    click(browser, "dialog.judge button", "Cancel")
    assert wait_until(lambda: not browser.execute_script("return document.querySelector('dialog.judge')"))


def test_person_reads_the_instruction_and_whose_turn_it_is(
    browser: webdriver.Chrome, page: DebatePage
) -> None:
    set_viewport(browser, 390)
    browser.get(f"{page.url}/d/{page.asking}")
    assert wait_for_text(browser, ".questions .turn", "Your turn: you speak as Ben")
    visible = """
        const box = document.querySelector(".asked");
        const text = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
        const words = arguments[0], outer = box.getBoundingClientRect();
        while (text.nextNode()) {
          const at = text.currentNode.data.indexOf(words);
          if (at < 0) continue;
          const range = document.createRange();
          range.setStart(text.currentNode, at);
          range.setEnd(text.currentNode, at + words.length);
          const place = range.getBoundingClientRect();
          return place.top >= outer.top - 1 && place.bottom <= outer.bottom + 1;
        }
        return null;
    """
    assert wait_until(lambda: browser.execute_script(visible, "It is your turn.") is True)
    assert element_texts(browser, ".top h1 code") == ["spaces"]


def test_unknown_debate_has_a_way_back(browser: webdriver.Chrome, page: DebatePage) -> None:
    browser.get(f"{page.url}/d/nothing")
    assert wait_for_text(browser, "main [role=alert]", "No debate has this address.")
    click(browser, "main a.button", "All debates")
    assert wait_for_text(browser, ".list h1", "Debates")
    assert wait_for_text(browser, ".visitor", "the operator pays")


@pytest.mark.parametrize("pixels", WIDTHS)
def test_pictures_lead_to_the_messages_that_they_show(
    browser: webdriver.Chrome, page: DebatePage, pixels: int
) -> None:
    set_viewport(browser, pixels)
    browser.get(f"{page.url}/d/{page.dialogue}")
    assert wait_until(lambda: len(element_texts(browser, "#panel .strip")) == 2)
    click(browser, "#panel .strip a[href='#m000012']")
    assert wait_until(lambda: browser.execute_script("return document.activeElement.id") == "m000012", 20)
    click(browser, "#tab-ledger")
    assert wait_for_text(
        browser, "#panel .map .argument", "A ticket is rarely what keeps a driver in the car"
    )
    assert browser.execute_script("return document.documentElement.scrollWidth") <= pixels


def test_every_control_has_a_name_for_screen_readers(browser: webdriver.Chrome, page: DebatePage) -> None:
    set_viewport(browser, 1280)
    for place in ("", f"/d/{page.dialogue}", f"/d/{page.asking}"):
        browser.get(page.url + place)
        assert wait_until(lambda: element_texts(browser, "main h1, .top h1"))
        assert wait_until(lambda: element_texts(browser, "main :is(li, .item, .card)"))
        nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        roles = {
            "button",
            "link",
            "textbox",
            "searchbox",
            "combobox",
            "tab",
            "checkbox",
            "spinbutton",
            "radio",
        }
        nameless = [
            node["role"]["value"]
            for node in nodes
            if not node["ignored"]
            and node["role"]["value"] in roles
            and not node.get("name", {}).get("value")
        ]
        assert nameless == [], place
