"""Without claim extraction, every output that shows claims says so, and no claim looks judged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from moot import DebateConfig, open_debates
from moot.claims.crux_cards import findings_text
from moot.claims.ledger_rendering import NO_EXTRACTION, why_no_claims
from moot.cli.show_parts import blackboard
from moot.debates.stored_debate import Debate
from moot.reports import render_brief, render_html, render_markdown
from moot.state.errors import InputError
from tests.support.ledger_state import NAMES, Board

HINT = "this debate extracts none"


@pytest.fixture(scope="module")
def debate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Debate]:
    """A debate of the offline model, which is asked to extract claims."""
    config = DebateConfig.model_validate(
        {"turns": 2, "judge": {"enabled": False}, "blackboard": {"extraction": "llm"}}
    )
    path: Path = tmp_path_factory.mktemp("offline") / "d.sqlite"
    with open_debates(str(path)) as debates:
        made = debates.start("Should trams run at night?", config)
        made.run()
        yield made


def test_the_offline_model_extracts_nothing(debate: Debate) -> None:
    document = debate.document()
    assert document["blackboard"]["claim_events"] == []
    assert [each["status"] for each in document["blackboard"]["standing"]["claims"]] == ["open"]
    assert document["verdict"] is None


@pytest.mark.parametrize("render", [render_markdown, render_html], ids=["Markdown", "HTML"])
def test_a_report_says_that_no_claims_are_extracted(debate: Debate, render: Any) -> None:
    assert HINT in render(debate.document())


def test_a_decision_record_says_that_no_claims_are_extracted(debate: Debate) -> None:
    assert HINT in render_brief(debate.document(), "adr")


def test_the_blackboard_on_the_screen_says_that_no_claims_are_extracted(debate: Debate) -> None:
    document: Any = debate.document()
    console = Console(width=200)
    with console.capture() as shown:
        for part in blackboard(document):
            console.print(part)
    assert HINT in shown.get()
    assert "open" not in shown.get()


def test_a_correction_fails_because_no_claims_are_extracted(debate: Debate) -> None:
    with pytest.raises(InputError, match=HINT):
        debate.correct("e001", "denies")


def test_dialogue_findings_begin_with_the_hint_about_claim_extraction() -> None:
    text = findings_text({"topic": "Trams?"}, {"ada": "Ada"}, {"ada": ["a count"]}, extracts=False)
    assert text.startswith(NO_EXTRACTION)
    assert "Ada: a count" in text


def test_the_hint_distinguishes_no_extraction_from_no_claims_found() -> None:
    board = Board()
    assert why_no_claims(board.state["claim_events"], extracts=True) == "No claims yet."
    board.apply_operations([board.add_entry("ada", "Good evening.")], "model", {})
    assert why_no_claims(board.state["claim_events"], extracts=True) == "No claims were found."
    board.add_stance("ada", "asserts", "")
    assert why_no_claims(board.state["claim_events"], extracts=False) == ""
    assert not findings_text(board.state, NAMES, {}).startswith("No claims")
