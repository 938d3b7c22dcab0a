"""Audit of memory: cost of summaries, prompts that show them, and the exact prompt of every call."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moot.api import Debate, open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.cli import main
from moot.config.config_files import make_config
from moot.debates.prompt_reconstruction import audit, reconstruct_prompt, replay_without
from moot.models.offline import smallest_instance
from moot.protocols.registry import PROTOCOLS
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


def long_reply(call: ModelCall) -> Reply:
    """Reply at some length, so that memory fills up."""
    usage: Any = {"prompt_tokens": call.prompt_tokens, "completion_tokens": 20, "cost_usd": 0.01}
    if call.schema is not None:
        data: Any = smallest_instance(call.schema.model_json_schema(), "Trams?")
        return Reply(data=data, model=call.model, usage=usage)
    sentence = f"Trams should run at night, for {call.digest[:6]} shows that 40 % of riders work late."
    return Reply(text=" ".join([sentence] * 3), model=call.model, usage=usage)


@pytest.fixture(params=sorted(PROTOCOLS))
def debate(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Debate, FakeModel]]:
    """Finished debate of each protocol, with its model."""
    model = FakeModel(long_reply)
    config = make_config(
        {
            "protocol": request.param,
            "memory": MEMORY,
            **({"rounds": 3} if request.param == "council" else {"turns": 14}),
            "blackboard": {"extraction": "llm", "model": "wordy"},
        }
    )
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        finished = debates.start("Should trams run at night?", config)
        finished.run()
        yield finished, model


def test_every_call_has_a_receipt_and_prompts_show_every_memory(
    debate: tuple[Debate, FakeModel],
) -> None:
    finished, model = debate
    document: Any = finished.document()
    calls, receipts = document["calls"], document["receipts"]
    assert len(calls) + len(receipts) == len(model.calls) == document["usage"]["calls"]
    assert {call["purpose"] for call in calls} == {call.purpose for call in model.calls} - {"turn"}
    assert all(0 < call["total_tokens"] <= call["budget"] for call in calls)
    prompts = [reconstruct_prompt(finished.session, call["id"]) for call in calls]
    assert [each.receipt["id"] for each in prompts if not each.exact] == []  # type: ignore[typeddict-item]
    assert all(
        sum(part.tokens for part in each.parts) + 3 == each.receipt["total_tokens"] for each in prompts
    )
    rows = audit(document)
    assert [row.kind for row in rows if row.made and not row.prompts] == []
    with_retrieved = [
        receipt for receipt in receipts if any(key.startswith("m") for key in receipt["retrieved"])
    ]
    assert len(with_retrieved) <= next(row.prompts for row in rows if row.kind == "retrieved")
    audited_tokens = sum(row.tokens for row in rows) + sum(
        call["usage"]["prompt_tokens"] + 20 for call in calls if not call["memory_kind"]
    )
    assert audited_tokens == sum(call["usage"]["prompt_tokens"] + 20 for call in calls)


@pytest.mark.parametrize(
    ("data", "kinds"),
    [
        ({**SMALL, "protocol": "dialogue"}, {"judge"}),
        ({**SMALL, "protocol": "dialogue", "judge": {"enabled": False}}, set()),
        ({"turns": 7, "memory": MEMORY, "judge": {"enabled": False}}, {"turn"}),
    ],
    ids=["transcript too long for the judge", "no judge", "turns without a judge"],
)
def test_summary_is_made_only_if_a_later_prompt_shows_it(
    data: dict[str, Any], kinds: set[str], tmp_path: Path
) -> None:
    def longer_reply(call: ModelCall) -> Reply:
        reply = long_reply(call)
        return reply if call.schema else replace(reply, text=" ".join([reply.text] * 5))

    model = FakeModel(longer_reply)
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        started = debates.start("Should trams run at night?", make_config(data))
        document: Any = started.run()
    summaries = [each for each in document["summaries"] if each["kind"] == "rolling"]
    shown = {"turn" for each in document["receipts"] if "rolling summary" in each.get("memory", {})}
    shown |= {each["purpose"] for each in document["calls"] if "rolling summary" in each.get("memory", {})}
    assert (bool(summaries), shown) == (bool(kinds), kinds)
    summary_calls = [each["digest"] for each in document["calls"] if each["memory_kind"] == "rolling summary"]
    last = max((each["covers_through_seq"] for each in summaries), default=0)
    assert not summary_calls or any(receipt["seq"] > last for receipt in document["receipts"])


def test_prompts_of_later_judgings_are_reconstructed_exactly(tmp_path: Path) -> None:
    model = FakeModel(long_reply)
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


def test_replay_without_a_memory_calls_the_model_and_stores_nothing(tmp_path: Path) -> None:
    model = FakeModel(long_reply)
    models = {"m": {"base_url": "http://127.0.0.1:9/v1"}}
    data = {"turns": 9, "model": "m", "models": models, "judge": {"enabled": False}, "memory": MEMORY}
    config = make_config(data)
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.start("Should trams run at night?", config)
        document = debate.run()
        calls_before = len(model.calls)
        again = replay_without(debate.session, "rolling summary", 8, 9)
        assert debate.document() == document
        shown = [each["memory"]["rolling summary"] for each in document["receipts"][7:]]
        assert [each.entry_id for each in again] == [each["entry_id"] for each in document["receipts"][7:]]
        assert [each.shown_tokens for each in again] == shown
        assert len(model.calls) == calls_before + 2
        assert not any("# Summary of the debate" in str(call.messages) for call in model.calls[calls_before:])
        assert all(each.without != each.said and not each.error for each in again)
        with pytest.raises(InputError, match="1 to 9"):
            replay_without(debate.session, "ledger", 19, 20)
        with pytest.raises(InputError, match="rolling summary"):
            replay_without(debate.session, "dreams", 1, 1)


def test_replay_uses_the_offline_model_only_by_name(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        debate = debates.start("Trams?", make_config({"turns": 2}))
        debate.run()
        with pytest.raises(InputError, match="--model"):
            replay_without(debate.session, "ledger", 1, 1)
        assert replay_without(debate.session, "ledger", 1, 1, model="offline")[0].without


def test_cli_shows_calls_prompts_and_memory_costs(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = str(tmp_path / "d.sqlite")
    with open_debates(database, environment=FakeModel(long_reply).environment()) as debates:
        debate = debates.start("Trams?", make_config({"turns": 6, "memory": MEMORY}), name="d")
        calls = debate.run()["calls"]
    for command, expected in (
        (["show", "d", "--calls"], [call["id"] for call in calls]),
        (["show", "d", "--prompt", calls[0]["id"]], ["exact: its digest is the recorded one", "── system"]),
        (["audit", "d"], ["rolling summary", "tokens shown"]),
    ):
        monkeypatch.setattr(sys, "argv", ["moot", *command, "--db", database])
        with suppress(SystemExit):
            main()
        out = capsys.readouterr().out
        assert [word for word in expected if word not in out] == []
