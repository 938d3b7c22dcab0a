"""Prompt of the judge: token budget, equal shares for the debaters, and hidden names."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, settings, strategies as st

from moot.calls.model_calls import ModelCall
from moot.config import DebateConfig
from moot.config.config_files import make_config
from moot.judging.judge_floor import names_label
from moot.judging.transcript_selection import MIN_MESSAGE_TOKENS, TranscriptSelector, fair_shares
from moot.memory.summarizers.rule_based import fold, render
from moot.prompts.request import schema_tokens
from moot.runtime.context import node_context
from moot.runtime.environment import Environment
from moot.state.claim_events import MAIN_QUESTION, ClaimEvent, StanceEvent
from moot.state.entries import Entry, ids_in, make_entry
from moot.text.tokens import counter, message_tokens, prompt_tokens, truncate_middle

COUNT = counter()
DEBATERS = [{"name": "Alice Johnson", "id": "alice"}, {"name": "Bob Smith", "id": "bob"}]


def entries_of(said: Sequence[tuple[str, str]], kind: Any = "speech") -> list[Entry]:
    topic = make_entry(0, "user", "topic", "Should we tax carbon?")
    speeches = [make_entry(seq, who, kind, words) for seq, (who, words) in enumerate(said, 1)]
    return [{**entry, "tokens": COUNT(entry["content"])} for entry in (topic, *speeches)]


def stance_of(who: str, seq: int, quote: str) -> StanceEvent:
    """Return the claim event of a debater's position on the main question."""
    return {
        "type": "event",
        "id": f"e{seq:03d}",
        "kind": "asserts",
        "claim": MAIN_QUESTION,
        "debater": who,
        "message_id": f"m{seq:06d}",
        "quote": quote,
        "condition": "",
        "ground": False,
        "by": "model",
        "confidence": 0.9,
    }


def calls_for(
    entries: list[Entry], config: DebateConfig, more: Mapping[str, Any] | None = None
) -> Sequence[ModelCall]:
    state: Any = {"topic": entries[0]["content"], "full_transcript": entries, "config": config.to_json()}
    state |= more or {}
    context = replace(node_context(Environment(), state), config=config, count=COUNT)
    return [request.call for request in context.judging.requests]


def tokens_by_label(call: ModelCall) -> dict[str, int]:
    tokens: dict[str, int] = {}
    for message in call.messages:
        label = message["content"].partition(" [m")[0]
        if message["role"] == "user" and len(label) < 20:
            tokens[label] = tokens.get(label, 0) + message_tokens(message, COUNT)
    return tokens


def long_debate(turns: int, names: Sequence[str] = ("alice", "bob")) -> list[Entry]:
    dice = random.Random(7)
    words = [
        "carbon",
        "tax",
        "price",
        "leakage",
        "rebate",
        "border",
        "industry",
        "court",
        "evidence",
        "figure",
    ]
    return entries_of(
        [
            (names[turn % len(names)], " ".join(dice.choices(words, k=dice.randrange(20, 200))))
            for turn in range(turns)
        ]
    )


TEXTS = st.one_of(
    st.text(max_size=400),
    st.sampled_from(
        [
            "Alice Johnson",
            "Bob said so. ",
            "漢字かな交じり文。",
            "🙂",
            "<|endoftext|>",
            "a " * 4000,
            "\n" * 900,
        ]
    ),
)


@settings(max_examples=12)
@given(
    said=st.lists(st.tuples(st.sampled_from(["alice", "bob", "chair"]), TEXTS), min_size=1, max_size=30),
    budget=st.sampled_from([400, 600, 1500, 8000]),
    summary=st.sampled_from(["", "Bob Smith held that. " * 300]),
    blind=st.booleans(),
)
def test_no_judge_prompt_exceeds_its_budget(
    said: list[tuple[str, str]], budget: int, summary: str, blind: bool
) -> None:
    config = make_config(
        {"debaters": DEBATERS, "memory": {"budget": {"total": budget}}, "judge": {"blind": blind}}
    )
    for call in calls_for(entries_of(said), config, {"rolling_summary": {"text": summary}}):
        assert call.prompt_tokens == prompt_tokens(call.messages, COUNT) <= budget


def test_a_prompt_for_5000_turns_is_fast_within_budget_and_fair() -> None:
    entries = long_debate(5000)
    began = time.process_time()
    calls = calls_for(entries, make_config({"debaters": DEBATERS}))
    assert time.process_time() - began < 15
    for call in calls:
        shares = tokens_by_label(call)
        assert call.schema
        schema = schema_tokens(call.schema, COUNT)
        assert call.prompt_tokens + schema <= 8000
        assert shares["Debater A"] == pytest.approx(shares["Debater B"], rel=0.1)
        assert call.prompt_tokens + schema > 7000


@pytest.mark.parametrize("sides", [2, 3, 5])
def test_each_debater_gets_the_same_share_of_tokens(sides: int) -> None:
    names = [f"speaker-{number}" for number in range(sides)]
    config = make_config({"debaters": [{"name": name} for name in names]})
    shares = tokens_by_label(calls_for(long_debate(600, names), config)[0])
    assert len(shares) == sides
    assert max(shares.values()) <= 1.1 * min(shares.values())


def test_a_more_verbose_debater_gets_no_larger_share() -> None:
    said = [("alice", "We hold that a carbon price works. " * 5)] * 90 + [
        ("bob", "It does not, see leakage. " * 90)
    ] * 60
    config = make_config({"debaters": DEBATERS, "memory": {"budget": {"total": 11_000}}})
    shares = tokens_by_label(calls_for(entries_of(said), config)[0])
    assert shares["Debater A"] == pytest.approx(shares["Debater B"], rel=0.1)


def test_a_giant_message_is_truncated_and_displaces_no_other_message() -> None:
    said = [
        ("alice", "carbon " * 30_000),
        ("bob", "A price works."),
        ("alice", "I rest."),
        ("bob", "So do I."),
    ]
    (call, _) = calls_for(entries_of(said), make_config({"debaters": DEBATERS}))
    shown = "\n".join(message["content"] for message in call.messages)
    assert "[…cut…]" in shown
    assert all(words in shown for words in ("A price works.", "I rest.", "So do I."))


def test_first_and_last_messages_of_each_debater_are_always_shown() -> None:
    entries = long_debate(400)
    call = calls_for(entries, make_config({"debaters": DEBATERS}))[0]
    assert {"m000001", "m000002", "m000399", "m000400"} <= set(call.hints["message_ids"])


def test_messages_about_the_question_have_priority() -> None:
    said = [
        (("alice", "bob")[turn % 2], "The weather was fine and lunch was long. " * 8) for turn in range(300)
    ]
    said[150] = ("alice", "We should tax carbon at 50 a tonne. " * 8)
    said[151] = ("bob", "To tax carbon hits the poor. " * 8)
    call = calls_for(entries_of(said), make_config({"debaters": DEBATERS}))[0]
    assert {"m000151", "m000152"} <= set(call.hints["message_ids"])


def test_every_message_is_shown_if_all_fit() -> None:
    call = calls_for(long_debate(6), make_config({"debaters": DEBATERS}))[0]
    assert call.hints["message_ids"] == [f"m00000{seq}" for seq in range(1, 7)]


def test_a_moderator_gets_a_small_share_of_the_tokens() -> None:
    entries = long_debate(300, ("alice", "chair", "bob", "chair"))
    shares = tokens_by_label(calls_for(entries, make_config({"debaters": DEBATERS}))[0])
    assert 0 < shares["chair"] < 0.15 * sum(shares.values())


def test_no_name_reaches_a_blind_judge() -> None:
    said = [("alice", "Bob Smith is wrong, and Bob knows it."), ("bob", "Alice, as Ms Johnson says herself.")]
    more = {
        "rolling_summary": {"text": "Alice Johnson opened; Bob Smith doubted."},
        "claim_events": [stance_of("alice", 1, "Alice Johnson is for it")],
    }
    for call in calls_for(entries_of(said), make_config({"debaters": DEBATERS}), more):
        shown = str([{**message} for message in call.messages])
        assert not any(name in shown for name in ("Alice", "Bob", "Johnson", "Smith", "alice", "bob"))


def test_a_judge_that_is_not_blind_sees_names() -> None:
    config = make_config({"debaters": DEBATERS, "judge": {"blind": False}})
    shown = str(calls_for(entries_of([("alice", "Yes."), ("bob", "No.")]), config)[0].messages)
    assert "Alice Johnson [m000001]" in shown


def test_a_judge_that_is_not_blind_gets_a_list_of_ids_and_names() -> None:
    config = make_config({"debaters": DEBATERS, "judge": {"blind": False}})
    call = calls_for(entries_of([("alice", "Yes."), ("bob", "No.")]), config)[0]
    system = call.messages[0]["content"]
    assert "- alice: Alice Johnson\n" in system
    assert "In texts, refer to the debaters by their names." in system


def test_the_ledger_follows_the_order_of_presentation() -> None:
    claim_events = [stance_of(who, seq, f"position of {who}") for seq, who in ((1, "alice"), (2, "bob"))]
    config = make_config({"debaters": DEBATERS, "judge": {"blind": False}})
    first, second = (
        next(m["content"] for m in call.messages if m["content"].startswith("# Where the debate stands"))
        for call in calls_for(long_debate(300), config, {"claim_events": claim_events})
    )
    assert first.index("position of alice") < first.index("position of bob")
    assert second.index("position of bob") < second.index("position of alice")


def claims_about(entries: Sequence[Entry]) -> list[ClaimEvent]:
    """Return one claim per message, asserted by the author of the message."""
    claims = list[ClaimEvent]()
    for number, entry in enumerate(entries[1:], 1):
        text = f"Reason {number} weighs more than every other reason in this debate about carbon"
        claims.append(
            {"type": "claim", "id": f"p{number:03d}", "text": text, "aspect": "overall", "seq": entry["seq"]}
        )
        claims.append(
            {**stance_of(entry["speaker"], entry["seq"], entry["content"][:60]), "claim": f"p{number:03d}"}
        )
    return claims


def debate_shown(call: ModelCall) -> list[str]:
    """Return the debate's messages and summaries as the prompt shows them."""
    assert call.prompt
    sections = zip(call.messages, call.prompt.layout, strict=True)
    return [message["content"] for message, section in sections if section in ("messages", "summary")]


@settings(max_examples=12, deadline=None)
@given(
    said=st.lists(
        st.tuples(st.sampled_from(["alice", "bob"]), st.integers(5, 400).map("carbon ".__mul__)),
        min_size=2,
        max_size=20,
    ),
    free=st.integers(-1500, 1500),
    blind=st.booleans(),
)
def test_the_ledger_displaces_no_message_that_fits(
    said: list[tuple[str, str]], free: int, blind: bool
) -> None:
    entries = entries_of(said)
    shared = {"debaters": DEBATERS, "judge": {"blind": blind, "swap": False}}
    roomy = make_config({**shared, "memory": {"budget": {"total": 20_000}}})
    (call,) = calls_for(entries, roomy)
    assert call.schema
    total = max(4000, call.prompt_tokens + schema_tokens(call.schema, COUNT) + free)
    config = make_config({**shared, "memory": {"budget": {"total": total}}})
    summary, claims = {"text": "They spoke about carbon. " * 90}, claims_about(entries)
    (without,) = calls_for(entries, config, {"rolling_summary": summary})
    (beside,) = calls_for(entries, config, {"rolling_summary": summary, "claim_events": claims})
    assert without.prompt
    assert beside.prompt
    if without.hints["message_ids"] == [entry["id"] for entry in entries[1:]]:
        assert debate_shown(beside) == debate_shown(without)
    else:
        assert beside.prompt.sections.get("ledger", 0) <= 0.1 * total


@pytest.mark.parametrize("turns", [60, 300])
@pytest.mark.parametrize("total", [4000, 8000])
def test_the_ledger_takes_at_most_a_tenth_if_messages_are_left_out(turns: int, total: int) -> None:
    entries = long_debate(turns)
    config = make_config({"debaters": DEBATERS, "memory": {"budget": {"total": total}}})
    (without, _), (beside, _) = (
        calls_for(entries, config, {"claim_events": claims}) for claims in ([], claims_about(entries))
    )
    assert without.prompt
    assert beside.prompt
    assert 0 < beside.prompt.sections["ledger"] <= 0.1 * total
    tokens_without, tokens_beside = (
        call.prompt.sections["messages"] for call in (without, beside) if call.prompt
    )
    assert (
        tokens_beside >= tokens_without - 0.15 * total
    )  # whole messages fill their share only approximately


@settings(max_examples=15, deadline=None)
@given(free=st.integers(60, 1200), summary=st.sampled_from(["", "They spoke about carbon. " * 90]))
def test_the_ledger_displaces_no_message_that_is_to_be_judged(free: int, summary: str) -> None:
    kinds = ["proposal", "proposal", "critique", "critique", "refinement", "refinement"]
    entries = entries_of(
        [
            (("alice", "bob")[n % 2], " ".join(f"w{n}x{i}" for i in range(350 if n < 2 else 80)))
            for n in range(6)
        ]
    )
    for entry, kind in zip(entries[1:], kinds, strict=True):
        entry.update({"kind": kind, "phase": kind, "round": int(kind != "proposal")})  # type: ignore[typeddict-item]
    earlier, judged = entries[1:3], entries[3:]
    shared: Any = {"protocol": "council", "debaters": DEBATERS, "judge": {"blind": False, "swap": False}}
    (call,) = calls_for(entries, make_config({**shared, "memory": {"budget": {"total": 20_000}}}))
    assert call.schema
    total = call.prompt_tokens + schema_tokens(call.schema, COUNT) + free
    total -= sum(entry["tokens"] for entry in earlier)
    claims = claims_about([entries[0], *judged * 12])
    more = {"rolling_summary": {"text": summary}, "claim_events": claims}
    (beside,) = calls_for(entries, make_config({**shared, "memory": {"budget": {"total": total}}}), more)
    assert beside.prompt
    shown = str([message["content"] for message in beside.messages])
    assert all(entry["content"] in shown for entry in judged)
    assert not all(entry["content"] in shown for entry in earlier)
    assert beside.prompt.sections.get("ledger", 0) <= 0.1 * total


def test_a_second_order_that_shows_every_message_leaves_out_the_ledger() -> None:
    claim_events = [stance_of(who, seq, f"position of {who}") for seq, who in ((1, "alice"), (2, "bob"))]
    config, entries = make_config({"debaters": DEBATERS}), entries_of([("alice", "Yes."), ("bob", "No.")])
    shown = [str(call.messages) for call in calls_for(entries, config, {"claim_events": claim_events})]
    assert ["# Where the debate stands" in text for text in shown] == [True, False]


def test_the_ledger_hides_a_name_that_is_a_common_word() -> None:
    debaters = [{"name": "Mark"}, {"name": "Irene"}]
    said = entries_of([("mark", "Stop the fees."), ("irene", "Keep them. Mark the items.")])
    claim_events = [stance_of("mark", 1, "Stop the fees."), stance_of("irene", 2, "Keep them.")]
    call = calls_for(said, make_config({"debaters": debaters}), {"claim_events": claim_events})[0]
    ledger = next(m["content"] for m in call.messages if "# Where the debate stands" in m["content"])
    assert "Mark" not in ledger
    assert "Debater" in ledger
    assert "Mark the items." in str(call.messages)


def test_summaries_appear_only_if_messages_are_left_out() -> None:
    more = {
        "rolling_summary": {"text": "rolling text"},
        "judge_summary": {"text": "own text"},
    }
    config = make_config({"debaters": DEBATERS})
    texts = ("own text", "rolling text")
    for entries, expected in (
        (entries_of([("alice", "Yes."), ("bob", "No.")]), False),
        (long_debate(300), True),
    ):
        shown = str(calls_for(entries, config, more)[0].messages)
        assert [text in shown for text in texts] == [expected] * 2


def summary_of(entries: Sequence[Entry], names: Mapping[str, str], max_tokens: int = 900) -> dict[str, Any]:
    """Return a rule-based summary of some messages, as the state stores it."""
    points = fold(None, entries, max_tokens=max_tokens, count=COUNT, names=names)
    return {"text": render(points, names), "points": points}


def council(words: int, names: Sequence[str] = ("alice", "bob")) -> list[Entry]:
    """Return the transcript of a council in which each message mentions its own number."""
    dice, parts = random.Random(3), [("proposal", 0), ("refinement", 1), ("critique", 2), ("refinement", 2)]
    said = [(who, kind, round_no) for kind, round_no in parts for who in names]
    entries = [make_entry(0, "user", "topic", "Should we tax carbon?")]
    for seq, (who, kind, round_no) in enumerate(said, 1):
        text = f"The figure of message {seq} decides about it. " + " ".join(
            dice.choices(["carbon", "price", "court", "border"], k=words)
        )
        targets = [each for each in names if each != who] if kind == "critique" else []
        phase = "critique" if targets else "refine"
        entry = make_entry(seq, who, cast(Any, kind), text, phase=phase, round=round_no, targets=targets)
        entries.append({**entry, "tokens": COUNT(text)})
    return entries


def test_replaced_proposals_take_priority_over_their_summary() -> None:
    """The summary covers only messages that the prompt leaves out. The judge can cite these messages."""
    names = ("alice", "bob", "carol", "dan")
    debaters = [*DEBATERS, {"name": "Carol Ray", "id": "carol"}, {"name": "Dan Lee", "id": "dan"}]
    config = make_config({"protocol": "council", "debaters": debaters, "memory": {"budget": {"total": 8750}}})
    entries = council(420, names)
    (call,) = calls_for(entries, config, {"rolling_summary": summary_of(entries[1:9], config.names())})
    assert call.prompt
    assert call.schema
    ids = [entry["id"] for entry in entries]
    assert {*call.prompt.shown_ids} == {*ids[5:]}
    shown = str([message["content"] for message in call.messages])
    assert all(entry["content"] in shown for entry in entries[5:])
    text = next(m["content"] for m in call.messages if "# Summary of earlier messages" in m["content"])
    assert {*ids_in(text)} == {*ids[1:5]}
    assert {*ids[1:5]} <= {*call.hints["message_ids"]}
    assert ids[1] in str(call.schema.model_json_schema())


@pytest.mark.parametrize("total", [4900, 5100])
def test_a_truncated_message_leaves_the_floor_in_the_prompt(total: int) -> None:
    config = make_config(
        {"protocol": "council", "debaters": DEBATERS, "memory": {"budget": {"total": total}}}
    )
    entries = council(420)
    (call,) = calls_for(entries, config)
    assert call.prompt
    assert call.prompt.sections["floor"] > 0
    shown = str([message["content"] for message in call.messages])
    assert not all(entry["content"] in shown for entry in entries[1:])
    (roomy,) = calls_for(entries, config.model_copy(update={"memory": make_config({}).memory}))
    assert roomy.prompt
    assert "floor" not in roomy.prompt.sections


@pytest.mark.parametrize(
    ("targets", "heading"),
    [([], "Debater A:"), (["bob"], "Debater A on Debater B:"), (["bob", "carol"], "on Debater B, Debater C")],
    ids=["no target", "one target", "all proposals"],
)
def test_the_floor_names_every_target_of_a_criticism(targets: list[str], heading: str) -> None:
    debaters = [*DEBATERS, {"name": "Carol Ray", "id": "carol"}]
    config = make_config({"protocol": "council", "debaters": debaters, "memory": {"budget": {"total": 4200}}})
    entries = council(420, ("alice", "bob", "carol"))
    critique = next(entry for entry in entries if entry["kind"] == "critique")
    critique["targets"] = targets
    (call,) = calls_for(entries, config)
    floor = next(m["content"] for m in call.messages if "# What was said, in quotations" in m["content"])
    assert heading.removesuffix(":") in next(line for line in floor.splitlines() if line.startswith("- 2A"))


def test_summary_headings_hide_names_that_are_common_words() -> None:
    debaters = [{"name": "Finance", "id": "finance"}, {"name": "Support", "id": "support"}]
    config = make_config({"protocol": "council", "debaters": debaters, "memory": {"budget": {"total": 3700}}})
    entries = council(420, ("finance", "support"))
    (call,) = calls_for(entries, config, {"rolling_summary": summary_of(entries[1:5], config.names())})
    text = next(m["content"] for m in call.messages if "# Summary of earlier messages" in m["content"])
    assert "Debater A:" in text
    assert "Finance" not in text


@given(
    costs=st.dictionaries(st.text("abcdef", min_size=1), st.integers(1, 900), max_size=12),
    share=st.integers(0, 3000),
)
def test_fair_shares_stay_within_the_limit_and_truncate_only_if_needed(
    costs: dict[str, int], share: int
) -> None:
    shares = fair_shares(costs, share)
    assert sum(shares.values()) <= share or not shares
    assert all(shares[key] >= MIN_MESSAGE_TOKENS or shares[key] == costs[key] for key in shares)
    if sum(costs.values()) <= share:
        assert shares == costs


def test_a_selection_from_no_entries_is_empty() -> None:
    assert TranscriptSelector([], ["alice"], {}).select("tax", 500).messages == ()


def test_truncate_middle_keeps_the_start_and_the_end() -> None:
    cut = truncate_middle("start " + "middle " * 500 + "end", 40, COUNT)
    assert cut.startswith("start")
    assert cut.endswith("end")


def test_blinding_keeps_names_in_documents_and_quotations_of_them() -> None:
    said = [("alice", "“Alice Johnson pays”, says the contract. Bob Smith pays."), ("bob", "No.")]
    topic, *speeches = entries_of([("user", ""), *said])
    document = make_entry(1, "user", "context", "Alice Johnson pays.", tokens=9)
    entries = [topic, document, *speeches[1:]]
    call = calls_for(entries, DebateConfig.model_validate({"debaters": DEBATERS}))[0]
    shown = [message["content"] for message in call.messages]
    labels = call.hints["debaters"]
    assert any("\nAlice Johnson pays.\n" in text for text in shown)
    assert any(f"“Alice Johnson pays”, says the contract. {labels[1]} pays." in text for text in shown)


def _token_limits(remaining: int, words: int) -> dict[str, int]:
    """Return the token limit of each message that a judge is shown of four arguments and an interjection."""
    said = entries_of(
        [("alice", "old. " * 100), ("bob", "old. " * 100), ("alice", "new. "), ("bob", "new. ")]
    )
    interjection = make_entry(5, "user", "interjection", "news " * words)
    entries: list[Entry] = [*said, {**interjection, "tokens": COUNT(interjection["content"])}]
    names = {"alice": "Alice", "bob": "Bob"}
    chosen = TranscriptSelector(entries, ["alice", "bob"], names, said[3:]).select("news", remaining)
    return {one.entry["id"]: one.remaining for one in chosen.messages}


def test_a_long_interjection_displaces_no_argument() -> None:
    shown = _token_limits(1000, words=900)
    assert {"m000001", "m000002", "m000003", "m000004", "m000005"} == {*shown}
    assert shown["m000005"] < 900  # truncated to the tokens that the arguments leave


def test_a_long_interjection_leaves_the_reserve_for_arguments_intact() -> None:
    said = entries_of([("alice", "new. " * 300), ("bob", "new. " * 300)])
    interjection = make_entry(3, "user", "interjection", "news " * 900)
    entries: list[Entry] = [*said, {**interjection, "tokens": COUNT(interjection["content"])}]
    selector = TranscriptSelector(entries, ["alice", "bob"], {"alice": "Alice", "bob": "Bob"})
    judged = 2 * 600
    assert selector.reserved(4000) > judged + 900
    assert judged < selector.reserved(1500) < 1500
    assert selector.reserved(1000) == 0


def test_arguments_that_fit_are_shown_whole_despite_other_messages() -> None:
    said = entries_of([("alice", "new. " * 300), ("bob", "new. " * 300)])
    interjection = make_entry(3, "user", "interjection", "news " * 900)
    entries: list[Entry] = [*said, {**interjection, "tokens": COUNT(interjection["content"])}]
    selector = TranscriptSelector(entries, ["alice", "bob"], {"alice": "Alice", "bob": "Bob"})
    arguments = sum(entry["tokens"] for entry in said)
    for spare in range(60, 160, 20):  # less than the tenth that is for other messages
        selection = selector.select("news", arguments + spare)
        assert selector.is_whole(one.entry["id"] for one in selection.messages)
        assert selection.share is None


def council_entries() -> list[Entry]:
    """Return a council round whose messages are too long for a small judge's prompt."""
    filler = " The load grows by a quarter each year." * 120
    rows = [
        (1, "alice", "proposal", "propose", "Take the bus." + filler),
        (2, "bob", "proposal", "propose", "Take the tram." + filler),
        (3, "bob", "critique", "critique", "1. Buses are slow.\n2. Nobody priced them." + filler),
        (4, "alice", "refinement", "refine", "Take the tram now. 1A.1 adopted." + filler),
        (5, "bob", "refinement", "refine", "Take the tram in May." + filler),
    ]
    entries = entries_of([])
    for seq, who, kind, phase, words in rows:
        entry = make_entry(seq, who, cast(Any, kind), words, phase=phase, round=1)
        targets = ["alice"] if kind == "critique" else []
        entries.append({**entry, "targets": targets, "tokens": COUNT(words)})
    return entries


def small_council_prompt() -> str:
    config = make_config(
        {"debaters": DEBATERS, "judge": {"blind": False}, "memory": {"budget": {"total": 3000}}}
    )
    return "\n".join(message["content"] for message in calls_for(council_entries(), config)[0].messages)


def test_a_judge_always_reads_each_opening_and_last_position() -> None:
    prompt = small_council_prompt()
    for line in (
        "- Opening [m000001]: “Take the bus.”",
        "- Last position [m000004]: “Take the tram now.”",
        "- Opening [m000002]: “Take the tram.”",
    ):
        assert line in prompt


def test_a_judge_always_reads_each_criticism_with_its_answer() -> None:
    prompt = small_council_prompt()
    assert "- 1A.1, Bob Smith on Alice Johnson [m000003]: “Buses are slow.”" in prompt
    assert "  Answer [m000004]: “1A.1 adopted.”" in prompt
    assert "  No later proposal names this point." in prompt


def test_messages_come_before_a_document_that_does_not_fit_beside_them() -> None:
    entries = entries_of([])
    words = " ".join(f"Depot {number} has {number * 7} readers." for number in range(130))
    rows = [("user", "context", f"book.md\n\n{words}")]
    rows += [
        (who, "speech", f"{who} {place} " + "argues. " * 150)
        for place in range(4)
        for who in ("alice", "bob")
    ]
    for seq, (who, kind, text) in enumerate(rows, 1):
        entries.append({**make_entry(seq, who, cast(Any, kind), text), "tokens": COUNT(text)})
    config = make_config(
        {"debaters": DEBATERS, "judge": {"blind": False}, "memory": {"budget": {"total": 4850}}}
    )
    (call, *_) = calls_for(entries, config)
    prompt = "\n".join(message["content"] for message in call.messages)
    shown = sum(entry["content"].strip() in prompt for entry in entries[2:])
    assert shown == 8
    assert "Depot 0 has 0 readers." in prompt
    assert words not in prompt


def test_a_range_of_labels_names_each_of_its_points() -> None:
    named = [names_label("1B.2–1B.4 and 2A.1-3 are adopted.", f"1B.{number}") for number in range(1, 6)]
    assert named == [False, True, True, True, False]
    assert names_label("2A.1-3 are adopted.", "2A.2")


@pytest.mark.parametrize(
    ("context_size", "total"), [(None, 8000), (16_000, 8000), (64_000, 16_000), (1_000_000, 32_000)]
)
def test_a_judge_prompt_grows_with_the_models_context(context_size: int | None, total: int) -> None:
    models = {"m": {"context_size": context_size}} if context_size else {}
    config = make_config({"debaters": DEBATERS, "model": "m", "models": models})
    prompt = calls_for(long_debate(20), config)[0].prompt
    assert prompt
    schema = calls_for(long_debate(20), config)[0].schema
    assert schema
    assert total - 1_000 < prompt.budget + schema_tokens(schema, COUNT) <= total
