"""Evaluations on the live page, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from moot import DebateConfig, open_debates
from moot.plugins.evals.arms import read_arms
from moot.plugins.evals.items import read_items
from moot.plugins.evals.results import EvaluationRecord, Evaluations
from tests.support.browser import (
    chromium,
    click,
    element_texts,
    find_element,
    set_viewport,
    take_log,
    wait_for_text,
)
from tests.support.live_page import serve_in_thread
from tests.support.scripted_answers import jsonl, question_rows
from tests.support.waiting import wait_until

HOSTILE = "<img src=x onerror=window.ran=1>"
NAME = 'set "A" & <b>'
ANSWERS = {"good": "ABCDABCD", "weak": "ABCDDDD?"}


def store_evaluation(folder: Path) -> Path:
    """Store an evaluation of two recorded arms, and return the database."""
    rows = question_rows(8)
    rows[5] |= {"question": f"Item 5: {HOSTILE}"}
    (folder / "set.jsonl").write_text(jsonl(rows))
    for name, answers in ANSWERS.items():
        given = [{"id": f"q{n}", "answer": each, "tokens": n + 10} for n, each in enumerate(answers)]
        (folder / f"{name}.jsonl").write_text(jsonl(given))
    items = read_items(folder / "set.jsonl")
    arms = read_arms([f"recorded:{folder}/{name}.jsonl" for name in ANSWERS], items, {})
    with open_debates(str(folder / "d.sqlite")) as debates:
        record = EvaluationRecord(NAME, items, tuple(arms), 1, "2026-11-01T00:00:00+00:00")
        Evaluations(debates.records.sql).save(record)
    return folder / "d.sqlite"


def items_shown(browser: Any) -> list[str]:
    return element_texts(browser, ".items tbody th")


@pytest.mark.slow
def test_evaluation_page_sorts_filters_and_shows_answers(tmp_path: Path) -> None:
    database = store_evaluation(tmp_path)
    with serve_in_thread(database, DebateConfig()) as url, chromium(tmp_path / "chromium") as browser:
        browser.get(f"{url}/evals")
        click(browser, ".rows a")
        assert wait_for_text(browser, "h1", NAME)
        assert wait_for_text(browser, ".conclusion", "below")
        assert browser.find_elements(By.CSS_SELECTOR, ".scatter circle")
        good, weak = (f"recorded:{tmp_path}/{name}.jsonl" for name in ANSWERS)
        click(browser, ".items thead button", weak)
        assert wait_until(lambda: items_shown(browser)[:4] == ["q0", "q1", "q2", "q3"])
        click(browser, ".items thead button", f"{weak} ▾")
        assert wait_until(lambda: items_shown(browser)[0] == "q4")
        Select(find_element(browser, "select[aria-label=Arm]")).select_by_visible_text(weak)
        Select(find_element(browser, "select[aria-label='Items to show']")).select_by_visible_text(
            "Wrong in this arm"
        )
        assert wait_until(lambda: sorted(items_shown(browser)) == ["q4", "q5", "q6", "q7"])
        Select(find_element(browser, "select[aria-label=Group]")).select_by_visible_text("odd")
        assert wait_until(lambda: sorted(items_shown(browser)) == ["q5", "q7"])
        click(browser, ".items tbody button", "q5")
        assert wait_for_text(browser, ".answers", HOSTILE)
        assert wait_for_text(browser, ".answers", "Expected: B")
        Select(find_element(browser, ".heading select")).select_by_visible_text(weak)
        assert wait_for_text(browser, ".conclusion", f"{good} beat {weak} by 50.0 points")
        assert browser.execute_script("return window.ran") is None
        assert browser.execute_script("return violations") == []
        assert [row["message"] for row in take_log(browser, "browser")] == []
        set_viewport(browser, 390)
        overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert wait_until(lambda: browser.execute_script(overflow) == 0)


def test_page_api_returns_the_report_and_all_answers(tmp_path: Path) -> None:
    from starlette.testclient import TestClient

    from moot.plugins.web.page_routes import page_app

    database = store_evaluation(tmp_path)
    app = page_app(lambda: open_debates(str(database)), DebateConfig())
    with TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 1)) as client:
        (row,) = client.get("/moot/api/evals").json()["evaluations"]
        evaluation = client.get(f"/moot/api/evals/{row['name']}").json()
        missing = client.get("/moot/api/evals/other")
        baseline = client.get(f"/moot/api/evals/{row['name']}", params={"baseline": "other"})
    assert (row["name"], row["items"]) == (NAME, 8)
    assert [arm["correct"] for arm in evaluation["report"]["arms"]] == [8, 4]
    last = evaluation["items"][-1]
    assert (last["id"], last["gold"]) == ("q7", "D")
    assert [(each["answer"], each["score"]) for each in last["answers"]] == [("D", 1.0), (None, 0.0)]
    assert HOSTILE not in evaluation["tables"] + evaluation["chart"]
    assert missing.status_code == 404
    assert baseline.status_code == 400
