"""Audit of memory: cost of summaries, how often they were shown, and the exact prompt of every call."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moot.api import Debate, open_debates
from moot.calls.effects import ModelCall, Reply
from moot.cli import main
from moot.debates.prompt_reconstruction import audit, reconstruct_prompt, replay_without
from moot.models.offline import smallest_instance
from moot.protocols.registry import PROTOCOLS
from moot.state.config.config_files import make_config
from moot.state.errors import InputError
from tests.support.fakes import FakeModel

MEMORY = {
    "summarizer": "llm",
    "keep_recent": 3,
    "summarize_every": 2,
    "perspectives": {"threshold_chars": 600},
    "budget": {"total": 2900},
}
SMALL = {"memory": {"budget": {"total": 2800}}}


def wordy(call: ModelCall) -> Reply:
    """Answer at some length: trams, and who is for them."""
    usage: Any = {"prompt_tokens": call.prompt_tokens, "completion_tokens": 20, "cost_usd": 0.01}
    if call.schema is not None:
        data: Any = smallest_instance(call.schema.model_json_schema(), "Trams?")
        return Reply(data=data, model=call.model, usage=usage)
    said = f"Trams should run at night, for {call.digest[:6]} shows that 40 % of riders work late."
    return Reply(text=" ".join([said] * 3), model=call.model, usage=usage)


@pytest.fixture(params=sorted(PROTOCOLS))
def debate(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Debate, FakeModel]]:
    """A debate of each protocol that has come to its end."""
    model = FakeModel(wordy)
    config = make_config(
        {
            "protocol": request.param,
            "memory": MEMORY,
            **({"rounds": 3} if request.param == "council" else {"turns": 14}),
            "blackboard": {"extraction": "llm", "model": "wordy"},
        }
    )
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        made = debates.start("Should trams run at night?", config)
        made.run()
        yield made, model


def test_every_call_has_a_receipt_and_every_memory_that_was_made_was_shown(
    debate: tuple[Debate, FakeModel],
) -> None:
    made, model = debate
    document: Any = made.document()
    calls, receipts = document["calls"], document["receipts"]
    assert len(calls) + len(receipts) == len(model.calls) == document["usage"]["calls"]
    assert {call["purpose"] for call in calls} == {call.purpose for call in model.calls} - {"turn"}
    assert all(0 < call["total_tokens"] <= call["budget"] for call in calls)
    seen = [reconstruct_prompt(made.session, call["id"]) for call in calls]
    assert [each.receipt["id"] for each in seen if not each.exact] == []  # type: ignore[typeddict-item]
    assert all(sum(part.tokens for part in each.parts) + 3 == each.receipt["total_tokens"] for each in seen)
    rows = audit(document)
    assert [row.kind for row in rows if row.made and not row.prompts] == []
    brought = [receipt for receipt in receipts if any(key.startswith("m") for key in receipt["retrieved"])]
    assert len(brought) <= next(row.prompts for row in rows if row.kind == "retrieved")
    spent = sum(row.tokens for row in rows) + sum(
        call["usage"]["prompt_tokens"] + 20 for call in calls if not call["memory_kind"]
    )
    assert spent == sum(call["usage"]["prompt_tokens"] + 20 for call in calls)


@pytest.mark.parametrize(
    ("data", "kinds"),
    [
        ({**SMALL, "protocol": "dialogue"}, {"judge"}),
        ({**SMALL, "protocol": "dialogue", "judge": {"enabled": False}}, set()),
        ({"turns": 7, "memory": MEMORY, "judge": {"enabled": False}}, {"turn"}),
    ],
    ids=["judged beyond its prompt", "judged by nobody", "nobody speaks after the last"],
)
def test_a_summary_is_made_where_somebody_is_to_read_it(
    data: dict[str, Any], kinds: set[str], tmp_path: Path
) -> None:
    def wordier(call: ModelCall) -> Reply:
        reply = wordy(call)
        return reply if call.schema else replace(reply, text=" ".join([reply.text] * 5))

    model = FakeModel(wordier)
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        made = debates.start("Should trams run at night?", make_config(data))
        document: Any = made.run()
    rolled = [each for each in document["summaries"] if each["kind"] == "rolling"]
    shown = {"turn" for each in document["receipts"] if "rolling summary" in each.get("memory", {})}
    shown |= {each["purpose"] for each in document["calls"] if "rolling summary" in each.get("memory", {})}
    assert (bool(rolled), shown) == (bool(kinds), kinds)
    paid = [each["digest"] for each in document["calls"] if each["memory_kind"] == "rolling summary"]
    last = max((each["covers_through_seq"] for each in rolled), default=0)
    assert not paid or any(receipt["seq"] > last for receipt in document["receipts"])


def test_the_prompt_of_a_judge_asked_again_with_other_options_is_exact(tmp_path: Path) -> None:
    model = FakeModel(wordy)
    models = {key: {"base_url": "http://127.0.0.1:9/v1", "encoding": "cl100k_base"} for key in "mn"}
    configured = {"judge": {"instruction": "Mind the riders."}, "models": models}
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.start("Trams?", make_config({"turns": 2}))
        known = len(debate.run()["calls"])
        debate.judge(panel=["m", "n"], rubric="design", blind=False, configured=configured)
        debate.judge(model="m", swap=False, configured={"models": models})
        calls = debate.document()["calls"][known:]
        seen = [reconstruct_prompt(debate.session, call["id"]) for call in calls]
    assert [call["digest"] for call in calls] == [call.digest for call in model.calls[-len(calls) :]]
    assert len(calls) == 5
    assert all(each.exact for each in seen)
    assert ["Mind the riders." in str(each.parts) for each in seen] == [True] * 4 + [False]


def test_turns_are_asked_again_without_a_memory_and_nothing_is_stored(tmp_path: Path) -> None:
    model = FakeModel(wordy)
    models = {"m": {"base_url": "http://127.0.0.1:9/v1"}}
    data = {"turns": 9, "model": "m", "models": models, "judge": {"enabled": False}, "memory": MEMORY}
    config = make_config(data)
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.start("Should trams run at night?", config)
        document = debate.run()
        asked = len(model.calls)
        again = replay_without(debate.session, "rolling summary", 8, 9)
        assert debate.document() == document
        shown = [each["memory"]["rolling summary"] for each in document["receipts"][7:]]
        assert [each.entry_id for each in again] == [each["entry_id"] for each in document["receipts"][7:]]
        assert [each.shown_tokens for each in again] == shown
        assert len(model.calls) == asked + 2
        assert not any("# Summary of the debate" in str(call.messages) for call in model.calls[asked:])
        assert all(each.without != each.said and not each.error for each in again)
        with pytest.raises(InputError, match="1 to 9"):
            replay_without(debate.session, "ledger", 19, 20)
        with pytest.raises(InputError, match="rolling summary"):
            replay_without(debate.session, "dreams", 1, 1)


def test_the_offline_model_is_asked_again_only_by_its_name(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        debate = debates.start("Trams?", make_config({"turns": 2}))
        debate.run()
        with pytest.raises(InputError, match="--model"):
            replay_without(debate.session, "ledger", 1, 1)
        assert replay_without(debate.session, "ledger", 1, 1, model="offline")[0].without


def test_the_command_line_tells_receipts_prompts_and_costs(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = str(tmp_path / "d.sqlite")
    with open_debates(database, environment=FakeModel(wordy).environment()) as debates:
        debate = debates.start("Trams?", make_config({"turns": 6, "memory": MEMORY}), name="d")
        calls = debate.run()["calls"]
    for asked, told in (
        (["show", "d", "--calls"], [call["id"] for call in calls]),
        (["show", "d", "--prompt", calls[0]["id"]], ["exact: its digest is the recorded one", "── system"]),
        (["audit", "d"], ["rolling summary", "tokens shown"]),
    ):
        monkeypatch.setattr(sys, "argv", ["moot", *asked, "--db", database])
        with suppress(SystemExit):
            main()
        out = capsys.readouterr().out
        assert [word for word in told if word not in out] == []
