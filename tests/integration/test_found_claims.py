"""Claims that a model finds in a finished debate when a visitor of the live page asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from moot.api import Debate, DebateConfig, open_debates
from moot.debates.prompt_reconstruction import reconstruct_prompt
from moot.models.offline import ScriptedCall, ScriptedModel
from moot.state.errors import InputError, ModelError, WaitingForPerson
from tests.support.browser import chromium, click, element_texts, set_viewport, wait_for_text
from tests.support.live_page import open_with_models, serve_in_thread
from tests.support.schema_answers import fill_schema

PRICES = {"mine": {"input_usd_per_million": 1.0, "output_usd_per_million": 2.0}}
QUOTE = "Trams cost less per seat"
TEXT = "Trams are cheaper than buses"


@dataclass
class ClaimFinder:
    """A model that debates, and finds one claim in the messages. It fails if `fails` is set."""

    fails: bool = False

    def __call__(self, call: ScriptedCall) -> Any:
        schema: Any = call.parameters.get("json_schema")
        if "claims" not in str(schema):
            return f"{QUOTE}, and so I say yes."
        if self.fails:
            return RuntimeError("down")
        event = {"message_id": "m000001", "claim": "n1", "kind": "asserts", "quote": QUOTE}
        whole = {**event, "condition": "", "ground": False, "confidence": 0.9}
        return fill_schema(schema, {"claims": [{"ref": "n1", "text": TEXT}], "events": [whole]})


def settings(**changes: Any) -> DebateConfig:
    data = {"protocol": "round-robin", "turns": 2, "model": "mine", "judge": {"enabled": False}, **changes}
    return DebateConfig.model_validate({"debaters": [{"name": "Ada"}, {"name": "Ben"}], **data})


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(script=ClaimFinder())


@pytest.fixture
def debate(tmp_path: Path, model: ScriptedModel) -> Iterator[Debate]:
    with open_with_models(tmp_path / "d.sqlite", mine=model) as debates:
        debate = debates.start("Trams?", settings())
        debate.run()
        yield debate


def claim_texts(debate: Debate) -> list[str]:
    return [each["text"] for each in debate.document()["blackboard"]["standing"]["claims"] if each["stances"]]


def test_claims_are_found_once_and_everything_else_stays(debate: Debate, model: ScriptedModel) -> None:
    before, calls = debate.document(), len(model.calls)
    cost = debate.cost_of_claims()
    assert cost is not None
    assert cost["calls"] >= 1
    assert "usd" not in cost
    debate.find_claims()
    after = debate.document()
    assert claim_texts(debate) == [TEXT]
    assert [after[key] for key in ("transcript", "verdict", "status", "config")] == [
        before[key] for key in ("transcript", "verdict", "status", "config")
    ]
    made = len(model.calls) - calls
    assert after["usage"]["calls"] == before["usage"]["calls"] + made
    assert debate.row.tokens == after["usage"]["prompt_tokens"] + after["usage"]["completion_tokens"]
    assert reconstruct_prompt(debate.session, after["calls"][-1]["id"]).exact
    assert debate.cost_of_claims() is None
    with pytest.raises(InputError, match="all messages have been searched"):
        debate.find_claims()


def test_failed_search_stores_nothing_and_can_be_repeated(debate: Debate, model: ScriptedModel) -> None:
    model.script = ClaimFinder(fails=True)
    with pytest.raises(ModelError, match="no claims of m000001 to m000002"):
        debate.find_claims()
    assert claim_texts(debate) == []
    assert not debate.is_running()
    model.script = ClaimFinder()
    debate.find_claims()
    assert claim_texts(debate) == [TEXT]


def test_interrupted_search_asks_for_no_reply_again(
    debate: Debate, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("moot.debates.session.DebateSession.update", die)
        with pytest.raises(KeyboardInterrupt):
            debate.find_claims()
    paid = len(model.calls)
    debate.find_claims()
    assert len(model.calls) == paid
    assert claim_texts(debate) == [TEXT]


@pytest.mark.parametrize(
    "changes",
    [{"model": "offline"}, {"turns": 2, "debaters": [{"name": "Ada"}, {"name": "Ben", "model": "human"}]}],
)
def test_no_claims_are_found_without_a_model_or_before_the_end(tmp_path: Path, changes: Any) -> None:
    with open_debates(
        str(tmp_path / "o.sqlite"), models={"mine": ScriptedModel(script=ClaimFinder())}
    ) as debates:
        debate = debates.start("Trams?", settings(**changes))
        with suppress(WaitingForPerson):
            debate.run()
        assert debate.cost_of_claims() is None
        with pytest.raises(InputError, match=r"extracts none|is not over"):
            debate.find_claims()


@pytest.mark.slow
def test_visitor_finds_the_claims_at_the_price_on_the_button(tmp_path: Path) -> None:
    database, model = tmp_path / "d.sqlite", ScriptedModel(script=ClaimFinder())
    priced = settings(models=PRICES)
    with open_with_models(database, mine=model) as debates:
        debate = debates.start("Trams?", priced)
        debate.run()
        bare = debates.start("Buses?", settings(model="offline"))
        bare.run()
    with chromium(tmp_path / "chromium") as browser, serve_in_thread(database, priced, mine=model) as url:
        set_viewport(browser, 1280)
        browser.get(f"{url}/d/{debate.id}")
        click(browser, "#tab-ledger")
        assert wait_for_text(browser, "#panel button.main", "Find the claims: about 2 calls, US$ 0.00")
        click(browser, "#panel button.main")
        assert wait_for_text(browser, "#panel .claim h3", TEXT)
        assert element_texts(browser, "#panel button.main") == []
        browser.get(f"{url}/d/{bare.id}")
        click(browser, "#tab-ledger")
        assert wait_for_text(browser, "#panel section", "No claims: this debate extracts none.")
        assert element_texts(browser, "#panel button.main") == []
