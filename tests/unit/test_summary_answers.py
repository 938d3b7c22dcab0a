"""Checks of summaries: refusals, errors and copies of the input are rejected."""

from __future__ import annotations

import pytest

from moot.calls.model_calls import INCOMPLETE, REPEATED, ModelCall, Reply
from moot.memory.summarizers.llm import check_summary
from moot.memory.summarizers.summarizer import SummaryFailed
from moot.text.tokens import counter

INSTRUCTIONS = (
    "You keep the summary of a debate, for debaters who will no longer see the messages behind it. What came "
    "first counts as much as what came last. Keep message ids beside what they support. Write it only."
)
CONVERSATION = (
    "Ada [m000001]:\nI maintain that free trams cost 40 million crowns a year. The budget of 2019 says so.\n"
    "Bo [m000002]:\nRidership rose by 12 % in Tallinn, so roads need less repair and help is near.\n"
    "Ada [m000003]:\nI concede that roads need less repair. Still, who pays for drivers in the evening?\n"
    "Bo [m000004]:\nEvening drivers cost 3 million crowns, which is less than one bridge a year."
)
CHINESE = (
    "小艾 [m000001]:\n我认为免费电车每年要花费四千万克朗，预算里写得很清楚，没有人能够提供反对的证据。\n"
    "小波 [m000002]:\n塔林的客流量上升了百分之十二，因此道路维修会减少，这对居民很有帮助。"
)


def _check(text: str, source: str = CONVERSATION, remaining: int = 200, *, notes: bool = False) -> str:
    call = ModelCall(
        "summary",
        "m",
        ({"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": source}),
        remaining,
    )
    return check_summary(Reply(text=text), call, remaining, counter(), notes=notes)


@pytest.mark.parametrize(
    "text",
    [
        "I’m sorry, but I can’t assist with that request.",
        "Sorry, I can't help with that.",
        "I'm unable to help with that request.",
        "Unfortunately, I am unable to summarize this conversation.",
        "Summary: I'm sorry, but I cannot do that.",
        "**Summary:**\n\nI apologize, but I can't do that.",
        "抱歉，我无法提供帮助。",
        "Es tut mir leid, dabei kann ich nicht helfen.",
        "Rate limit exceeded. Please try again later.",
        "HTTP 500 Internal Server Error",
        "503 Service Unavailable",
        "ValueError: too many tokens",
        '{"error": {"message": "rate limit", "code": 429}}',
        '```json\n{"summary": "Ada says 40 million."}\n```',
        "<html><body>502 Bad Gateway</body></html>",
        "...",
        "Understood.",
        "Okay, please send me what I am to work on.",
        "I'm sorry, but that is against what I may do. " + "Please talk to somebody you trust instead. " * 9,
        INSTRUCTIONS,
        INSTRUCTIONS[:160],
        CONVERSATION.upper().replace("\n", " "),
        "Here it is:\n" + "\n".join(f"- {line}" for line in CONVERSATION.splitlines()),
        CONVERSATION[:210],
    ],
)
def test_reply_that_is_no_summary_is_rejected(text: str) -> None:
    with pytest.raises(SummaryFailed):
        _check(text)


@pytest.mark.parametrize("reason", ["length", INCOMPLETE, REPEATED, "content_filter"])
def test_summary_that_was_cut_off_is_rejected(reason: str) -> None:
    call = ModelCall("summary", "m", ({"role": "user", "content": CONVERSATION},), 200)
    reply = Reply(text="Ada and Bo agree on the roads", finish_reason=reason)
    with pytest.raises(SummaryFailed, match="cut off"):
        check_summary(reply, call, 200, counter())


def test_refusal_in_the_language_of_the_conversation_is_rejected() -> None:
    with pytest.raises(SummaryFailed, match="excuse"):
        _check("抱歉，我无法提供帮助。", CHINESE)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("Trams cost 40 million crowns; Bo doubts it.", CONVERSATION),
        ("Sorry roads, says Ada, are what 40 million crowns buy [m000001].", CONVERSATION),
        ("I cannot accept free trams: they cost 40 million crowns a year, as the budget of 2019 says. I "
         "concede that roads need less repair, but I still ask who pays for drivers in the evening, "
         "on every line there is.", CONVERSATION),
        ("500 euros a head is what Ada and Bo argue over.", f"{CONVERSATION} It is 500 euros a head."),
        ("Ada hält Straßenbahnen für teuer, Bo nicht.", CONVERSATION),
        ("双方讨论免费电车的费用和维修问题，一方承认道路维修可以减少。", CONVERSATION),
        ("Both speakers weigh the price of free trams against better roads for everybody who lives there.",
         CHINESE),
        ("小艾认为电车很贵，小波不同意。", CHINESE),
        ("A greeting.", "Ada [m000001]:\nHello, everybody."),
        ("Ada [m000001]:\nHello, everybody.", "Ada [m000001]:\nHello, everybody."),
        ("They only greet.", "Ada [m000001]:\n👋\nBo [m000002]:\n🙂"),
        ("[m000001] Ada wants free trams.", CONVERSATION),
    ],
)  # fmt: skip
def test_summary_is_accepted_if_short_or_in_another_language(text: str, source: str) -> None:
    assert _check(text, source) == text


def test_merged_summary_may_keep_most_notes_but_not_all() -> None:
    notes = [f"Gauge number {n} reads {n * 37} at noon." for n in range(40)]
    kept = " ".join(note for n, note in enumerate(notes) if n % 6)
    assert _check(kept, "\n".join(notes), 250, notes=True)
    with pytest.raises(SummaryFailed, match="repeated its input"):
        _check(" ".join(notes), "\n".join(notes), 250, notes=True)


def test_unknown_ids_and_numbers_are_removed_from_a_summary() -> None:
    conversation = (
        "Ada [m000001]: The toll is 1,900 crowns, and 12 boats run. Storms stop them in winter for weeks."
    )
    call = ModelCall(
        "summary",
        "m",
        ({"role": "system", "content": "Sum up."}, {"role": "user", "content": conversation}),
        99,
    )
    text = "The toll is 1.900 crowns [m000001, m000077]. Storms cost 350,000 crowns. 12 boats run [m000077]."
    summary = check_summary(Reply(text=text), call, 99, counter())
    assert summary == "The toll is 1.900 crowns [m000001].  12 boats run."
    with pytest.raises(SummaryFailed, match="numbers, which appear in none of the messages"):
        check_summary(Reply(text="It costs 555 crowns. And 777 more for boats."), call, 99, counter())
