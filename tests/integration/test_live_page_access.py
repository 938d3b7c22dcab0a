"""The live page with the keyboard alone, and as a screen reader gets it, in each of its states."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from moot import DebateConfig
from tests.support.browser import chromium, click, find_element, set_viewport, wait_for_text
from tests.support.live_page import DebatePage, serve_debates, serve_in_thread
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

MAX_TABS = 160
NAMED = {
    *("button", "link", "textbox", "searchbox", "combobox", "tab", "checkbox", "spinbutton", "radio"),
    *("image", "img", "graphics-document", "dialog", "tabpanel", "feed", "region", "navigation"),
}
"""Roles of which each element needs a name, if a screen reader is to say more than the role."""
FOCUSABLE_JS = """
const open = document.querySelector("dialog[open]") ?? document;
return [...open.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].filter(
  (each) => !each.disabled && each.tabIndex >= 0 && each.checkVisibility({ visibilityProperty: true })
  && !(each.type === "radio" && !each.checked && each !== document.querySelector(`[name="${each.name}"]`)));
"""
FOCUSED_JS = """
const each = document.activeElement;
if (each === document.body) return null;
const style = getComputedStyle(each), box = each.getBoundingClientRect();
return [each, style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0,
  box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
  each.outerHTML.slice(0, 160)];
"""
HEADINGS_JS = """
return [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].filter((each) =>
  each.checkVisibility() && !each.closest("dialog"))
  .map((each) => [Number(each.tagName[1]), each.textContent]);
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DebatePage]:
    folder = tmp_path_factory.mktemp("access")
    with serve_debates(folder / "d.sqlite", model="mine", blackboard={"model": "offline"}) as page:
        yield page


@pytest.fixture(scope="module")
def places(page: DebatePage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with ExitStack() as stack:
        empty = tmp_path_factory.mktemp("empty") / "d.sqlite"
        yield {
            "empty": stack.enter_context(serve_in_thread(empty, DebateConfig())),
            "list": page.url,
            "form": page.url,
            "waiting": f"{page.url}/d/{page.asking}",
            "done": f"{page.url}/d/{page.dialogue}",
            "phone": f"{page.url}/d/{page.dialogue}",
        }


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, page: DebatePage) -> Iterator[webdriver.Chrome]:
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


def press(browser: webdriver.Chrome, *keys: str) -> None:
    ActionChains(browser).send_keys(*keys).perform()


def start_debate(browser: webdriver.Chrome, page: DebatePage) -> None:
    """Start a debate by keyboard, whose model pauses in the middle of its first message."""
    page.model.go.clear()
    browser.get(page.url)
    click(browser, ".heading button.main")
    find_element(browser, "textarea[name=question]").send_keys("Which queue?")
    find_element(browser, "input[name=turns]").send_keys("2")
    click(browser, "dialog button.main")
    assert wait_for_text(browser, ".now .words", "We should")


def open_state(browser: webdriver.Chrome, page: DebatePage, places: dict[str, str], state: str) -> None:
    set_viewport(browser, 390 if state == "phone" else 1280)
    if state == "running":
        return start_debate(browser, page)
    browser.get(places[state])
    ready = {"empty": ".samples h3", "list": ".rows a", "form": ".rows a", "waiting": ".questions textarea"}
    find_element(browser, ready.get(state, "#panel .headline"))
    if state == "form":
        click(browser, ".heading button.main")
    return None


STATES = ("empty", "list", "form", "running", "waiting", "done", "phone")


@pytest.mark.parametrize("state", STATES)
def test_tab_reaches_every_control_in_order_with_visible_focus(
    browser: webdriver.Chrome, page: DebatePage, places: dict[str, str], state: str
) -> None:
    open_state(browser, page, places, state)
    assert wait_until(lambda: "Loading" not in find_element(browser, "body").text)
    reached: list[Any] = []
    if state == "running":
        browser.refresh()  # the walk starts at the top, not at the closed form
        find_element(browser, ".now .words")
    elif state == "form":
        reached = [browser.execute_script("return document.activeElement")]
    expected = browser.execute_script(FOCUSABLE_JS)
    assert len(expected) >= 4
    for _ in range(MAX_TABS):
        press(browser, Keys.TAB)
        focused = browser.execute_script(FOCUSED_JS)
        if focused is None or focused[0] in reached:
            break
        element, outlined, on_screen, markup = focused
        assert outlined, f"no visible focus: {markup}"
        assert on_screen, f"focus outside the screen: {markup}"
        reached.append(element)
    else:
        raise AssertionError("the walk does not end")
    missing = [each.get_attribute("outerHTML")[:160] for each in expected if each not in reached]
    assert missing == []
    if state != "form":  # the walk through a dialog starts at its first field, after *Close*
        assert [each for each in reached if each in expected] == expected
    page.model.go.set()


@pytest.mark.parametrize("state", STATES)
def test_screen_reader_gets_names_headings_in_order_and_live_regions(
    browser: webdriver.Chrome, page: DebatePage, places: dict[str, str], state: str
) -> None:
    open_state(browser, page, places, state)
    assert wait_until(lambda: "Loading" not in find_element(browser, "body").text)
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles = [node["role"]["value"] for node in tree if not node["ignored"]]
    nameless = [
        node["role"]["value"]
        for node in tree
        if not node["ignored"] and node["role"]["value"] in NAMED and not node.get("name", {}).get("value")
    ]
    assert nameless == []
    assert "main" in roles or state == "form"
    live = {
        prop["value"]["value"]
        for node in tree
        for prop in node.get("properties", ())
        if prop["name"] == "live"
    }
    assert "polite" in live
    if state != "form":
        levels = browser.execute_script(HEADINGS_JS)
        assert [level for level, _ in levels].count(1) == 1, levels
        assert levels[0][0] == 1
        jumps = [pair for pair in pairwise(levels) if pair[1][0] > pair[0][0] + 1]
        assert jumps == []
    page.model.go.set()


def test_new_messages_and_the_end_are_announced(browser: webdriver.Chrome, page: DebatePage) -> None:
    set_viewport(browser, 1280)
    start_debate(browser, page)
    page.model.go.set()
    assert wait_for_text(browser, "#announced", "We should measure the cost of it first, and then decide.")
    assert wait_for_text(browser, "main [role=status]", "The debate has ended.")


@pytest.mark.parametrize(
    ("state", "opener", "label"),
    [
        ("list", ".heading button.main", ""),
        ("done", ".controls button", "Ask"),
        ("done", ".controls .menu button", "Fork"),
        ("done", ".controls .menu button", "Judge again"),
        ("done", "#panel .budget", ""),
    ],
    ids=("form", "ask", "fork", "judge", "prompt"),
)
def test_focus_returns_to_what_opened_a_dialog(
    browser: webdriver.Chrome, page: DebatePage, places: dict[str, str], state: str, opener: str, label: str
) -> None:
    open_state(browser, page, places, state)
    if ".menu" in opener:
        click(browser, ".controls .menu summary")
    if "budget" in opener:
        click(browser, "#tab-prompts")
    button = find_element(browser, opener, label)
    browser.execute_script("arguments[0].focus()", button)
    press(browser, Keys.ENTER)
    inside = "return Boolean(document.activeElement.closest('dialog[open]'))"
    assert wait_until(lambda: browser.execute_script(inside))
    press(browser, Keys.ESCAPE)
    closed = "return document.querySelector('dialog[open]') === null"
    assert wait_until(lambda: browser.execute_script(closed))
    assert wait_until(lambda: browser.execute_script("return document.activeElement") == button)
