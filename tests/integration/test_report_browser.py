"""The report in a real browser: scripts, requests, console, layout and load time."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from tenacity import retry, retry_if_exception_message, stop_after_attempt

from moot.api import DebateConfig, open_debates
from moot.config.config_files import make_config
from moot.models.offline import recording_config, recordings
from moot.plugins.evals.arms import Arm
from moot.plugins.evals.items import ItemSet, QuestionItem
from moot.plugins.evals.report import evaluation_report
from moot.plugins.evals.report_pages import report_html
from moot.plugins.evals.results import EvaluationRecord, ItemOutcome
from moot.reports import render_brief_html, render_html
from tests.support.browser import chromium, click, find_element, set_viewport, take_log
from tests.support.report_documents import debate_document, hostile_document
from tests.support.waiting import wait_until

TURNS = 10_000
MAX_SLOWDOWN = 25
"""How many times longer ten times as many turns may take to render and to open. Quadratic growth is 100."""
LOAD_SECONDS_SCRIPT = """
    const [t] = performance.getEntriesByType('navigation');
    return (t.loadEventEnd - t.startTime) / 1000;
"""


class Site:
    """Loopback server of pages that records each request."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.requests: list[str] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.requests.append(self.path)
                body = site.pages.get(self.path)
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, format: str, *args: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def publish(self, html: str) -> str:
        self.requests.clear()
        path = f"/{len(self.pages)}"
        self.pages[path] = html.encode("utf-8")
        return self.url + path

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


def open_report(browser: webdriver.Chrome, site: Site, document: Mapping[str, Any], anchor: str = "") -> None:
    take_log(browser, "browser")
    take_log(browser, "performance")
    url = site.publish(render_html(document)) + anchor
    browser.get(url)
    script = "return [location.href, document.readyState]"  # on a busy machine, `get` has returned too early
    assert wait_until(lambda: browser.execute_script(script) == [url, "complete"])


def in_view(browser: webdriver.Chrome, anchor: str) -> bool:
    script = """
        const element = document.getElementById(arguments[0]);
        if (!element) return false;
        const box = element.getBoundingClientRect();
        return box.height > 0 && box.top >= -2 && box.top < innerHeight / 2;
    """
    return bool(browser.execute_script(script, anchor))


def requested_urls(browser: webdriver.Chrome) -> list[str]:
    messages = [json.loads(row["message"])["message"] for row in take_log(browser, "performance")]
    sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    # A browser that just started also loads its own pages.
    return [url for url in sent if not url.startswith(("data:", "chrome:"))]


@pytest.fixture(autouse=True)
def _desktop(browser: webdriver.Chrome) -> None:
    set_viewport(browser, 1280)


@pytest.mark.parametrize(
    "make",
    [debate_document, hostile_document, lambda: debate_document(400)],
    ids=["ordinary", "hostile", "long"],
)
def test_report_causes_no_console_error_policy_violation_or_request(
    browser: webdriver.Chrome, site: Site, make: Callable[[], dict[str, Any]]
) -> None:
    open_report(browser, site, make())
    for details in browser.find_elements(By.CSS_SELECTOR, "details"):
        browser.execute_script("arguments[0].open = true", details)
    assert take_log(browser, "browser") == []
    assert browser.execute_script("return violations") == []
    assert requested_urls(browser) == [browser.current_url]
    assert site.requests == [browser.current_url.removeprefix(site.url)]


def test_debate_text_runs_no_script_even_if_links_are_clicked(browser: webdriver.Chrome, site: Site) -> None:
    open_report(browser, site, hostile_document())
    start = browser.current_url
    browser.execute_script(
        """
        for (const details of document.querySelectorAll("details")) details.open = true;
        addEventListener("click", (event) => {
          const link = event.target.closest("a");
          if (link && /^(https?|mailto):/.test(link.protocol) && !link.hash) event.preventDefault();
        });
        for (const link of document.querySelectorAll("main a")) link.click();
        for (const element of document.querySelectorAll("main *")) {
          for (const kind of ["mouseover", "focus", "error", "load"]) element.dispatchEvent(new Event(kind));
        }
        """
    )
    assert browser.execute_script("return window.ran") is None
    assert browser.current_url.partition("#")[0] == start
    scripts = browser.execute_script("return document.querySelectorAll('script, iframe, img, base').length")
    assert scripts == 1


def test_a_citation_scrolls_to_its_message(browser: webdriver.Chrome, site: Site) -> None:
    open_report(browser, site, debate_document(20))
    click(browser, '#verdict a[href="#m000003"]')
    assert wait_until(lambda: in_view(browser, "m000003"))


def test_a_citation_opens_the_folded_block_of_a_long_debate(browser: webdriver.Chrome, site: Site) -> None:
    open_report(browser, site, debate_document(900, solution="As m000655 says."))
    assert browser.find_elements(By.ID, "m000655") == []
    click(browser, '#solution a[href="#m000655"]')
    assert wait_until(lambda: in_view(browser, "m000655"))
    click(browser, '#verdict a[href="#m000003"]')
    assert wait_until(lambda: in_view(browser, "m000003"))
    browser.back()
    assert wait_until(lambda: in_view(browser, "m000655"))


@pytest.mark.slow
def test_render_and_load_time_scale_to_10_000_turns(browser: webdriver.Chrome, site: Site) -> None:
    def measure(turns: int, last: str) -> tuple[float, float]:
        """Return the CPU seconds of rendering, and the shortest of two load times in the browser."""
        document = debate_document(
            turns, words="We should measure the cost of each deployment before we split. " * 12
        )
        began = time.process_time()
        html = render_html(document)
        rendered, openings = time.process_time() - began, []
        for _ in range(2):
            browser.get(site.publish(html) + f"#{last}")
            assert wait_until(lambda: in_view(browser, last))
            openings.append(browser.execute_script(LOAD_SECONDS_SCRIPT))
        return rendered, min(openings)

    fewer, many = measure(TURNS // 10, "m000912"), measure(TURNS, "m009123")
    assert 0 < fewer[1] < many[1] < MAX_SLOWDOWN * fewer[1]
    assert many[0] < MAX_SLOWDOWN * fewer[0]
    assert browser.execute_script("return document.querySelectorAll('.entry').length") <= 100


@pytest.mark.parametrize("make", [debate_document, hostile_document], ids=["ordinary", "hostile"])
def test_report_fits_a_phone_without_horizontal_scrolling(
    browser: webdriver.Chrome, site: Site, make: Callable[[], dict[str, Any]]
) -> None:
    set_viewport(browser, 360)
    open_report(browser, site, make())
    browser.execute_script("for (const details of document.querySelectorAll('details')) details.open = true")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360


def _evaluation() -> str:
    """Return the report page of an evaluation of two arms with long names."""
    arms = tuple(Arm(f"{name}-of-the-whole-team.yaml", "debate", make_config({})) for name in ("a", "b"))
    items = [
        QuestionItem(id=str(n), question=f"Question {n}?", choices=("x", "y"), answer="A") for n in range(8)
    ]
    outcomes = {
        outcome.key: outcome
        for at, arm in enumerate(arms)
        for n, item in enumerate(items)
        for outcome in [
            ItemOutcome(item.id, arm.name, 1, texts=(f"Answer: {'AB'[n % 2 * at]}",), tokens=50 + at)
        ]
    }
    questions = ItemSet("set.jsonl", "question", tuple(items))
    record = EvaluationRecord("e", questions, arms, 1, "2026-11-01T00:00:00+00:00")
    return report_html(evaluation_report(record, outcomes))


@pytest.mark.parametrize("pixels", [360, 390, 1280])
def test_evaluation_plot_fits_the_screen_with_readable_text(
    browser: webdriver.Chrome, site: Site, pixels: int
) -> None:
    set_viewport(browser, pixels)
    browser.get(site.publish(_evaluation()))
    overflow = "return Math.max(...[...document.querySelectorAll('html, figure.scatter')]"
    assert browser.execute_script(f"{overflow}.map((each) => each.scrollWidth - each.clientWidth))") == 0
    (plot,) = [each for each in browser.find_elements(By.CSS_SELECTOR, ".scatter svg") if each.is_displayed()]
    text, box = "document.querySelectorAll('.scatter text')", "getBoundingClientRect()"
    text_boxes = browser.execute_script(f"return [...{text}].map((e) => e.{box}).filter((b) => b.width)")
    assert plot.rect["width"] <= pixels
    assert min(each["height"] for each in text_boxes) > 12
    assert all(each["left"] >= 0 and each["right"] <= pixels for each in text_boxes)


def test_brief_uses_the_width_of_a_desktop_screen(browser: webdriver.Chrome, site: Site) -> None:
    set_viewport(browser, 1280)
    browser.get(site.publish(render_brief_html(debate_document())))
    assert find_element(browser, ".prose").rect["width"] > 600


def test_dark_colour_scheme_changes_the_page_and_its_charts(browser: webdriver.Chrome, site: Site) -> None:
    script = """
        const colour = (selector, property) => getComputedStyle(document.querySelector(selector))[property];
        return [colour("body", "backgroundColor"), colour(".by-section .series rect", "fill")];
    """
    open_report(browser, site, debate_document())
    light = browser.execute_script(script)
    set_viewport(browser, 1280, scheme="dark")
    dark = browser.execute_script(script)
    assert all(one != other for one, other in zip(light, dark, strict=True))


def test_printing_unfolds_everything_and_folds_it_again_afterwards(
    browser: webdriver.Chrome, site: Site, tmp_path: Path
) -> None:
    open_report(browser, site, debate_document(400))
    folded = "return document.querySelectorAll('main details:not([open])').length"
    before = browser.execute_script(folded)
    browser.execute_script(
        "addEventListener('beforeprint', () => window.inPrint = document.querySelectorAll('.entry').length)"
    )
    _print_page(browser)
    assert browser.execute_script("return window.inPrint") == 401
    assert browser.execute_script(folded) == before


@retry(
    retry=retry_if_exception_message(match="(?s).*Printing failed"),  # a fault of Chromium on a busy machine
    stop=stop_after_attempt(3),
    reraise=True,
)
def _print_page(browser: webdriver.Chrome, **paper: float) -> Mapping[str, str]:
    printed: Mapping[str, str] = browser.execute_cdp_cmd("Page.printToPDF", paper)
    return printed


def _printed_pages(browser: webdriver.Chrome) -> int:
    printed = _print_page(browser, paperWidth=8.27, paperHeight=11.69)
    return len(re.findall(rb"/Type\s*/Page[^s]", base64.b64decode(printed["data"])))


def test_report_of_a_recording_prints_on_three_pages_with_an_appendix(
    browser: webdriver.Chrome, site: Site, tmp_path: Path
) -> None:
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        config = DebateConfig(**recording_config("monolith"))
        document = debates.start(None, config).run()
    open_report(browser, site, document)
    assert _printed_pages(browser) <= 3
    assert "facts not checked" in browser.page_source
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    label = "return getComputedStyle(document.querySelector('#h-transcript'), '::before').content"
    assert browser.execute_script(label) == '"Appendix: "'
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("name", recordings())
def test_a_brief_prints_on_one_page(name: str, browser: webdriver.Chrome, site: Site, tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        document = debates.start(None, DebateConfig(**recording_config(name))).run()
    browser.get(site.publish(render_brief_html(document)))
    assert _printed_pages(browser) == 1


def test_short_report_is_complete_without_javascript(browser: webdriver.Chrome, site: Site) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        open_report(browser, site, debate_document(20), "#m000003")
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        assert len(browser.find_elements(By.CSS_SELECTOR, ".entry")) == 21
        assert wait_until(lambda: in_view(browser, "m000003"))
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
