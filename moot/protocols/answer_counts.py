"""Agreement before and after a debate: how many different answers the debaters gave to the main question."""

from collections.abc import Mapping, Sequence

from moot.claims.claim_status import ANSWERS, Ledger
from moot.claims.ledger_from_events import ledger_of
from moot.config import DebateConfig
from moot.protocols.voting import entry_answer, states_answer
from moot.state.conversation import ConversationState
from moot.state.entries import Entry
from moot.state.verdict import AnswerCounts, Stage


def answer_counts(
    state: ConversationState, config: DebateConfig, stages: Sequence[Stage] = ()
) -> AnswerCounts | None:
    """Count the different answers of the debaters' openings and of the end of the debate.

    They come from the stages of the debate, from the claim ledger, or from answer lines. The result is `None`
    if no source has both answers of all debaters.
    """
    votes = [stage["votes"] for stage in stages[-2:]]  # answers given alone, and after the debate
    if len(votes) == 2 and sum(votes[0].values()) == sum(votes[1].values()) > 1:
        debaters = round(sum(votes[0].values()))
        return AnswerCounts(debaters=debaters, openings=len(votes[0]), end=len(votes[1]))
    openings, last = dict[str, Entry](), dict[str, Entry]()
    for entry in state["full_transcript"]:
        if entry["speaker"] in config.names() and states_answer(entry):
            openings.setdefault(entry["speaker"], entry)
            last[entry["speaker"]] = entry
    ledger = ledger_of(state)
    opening_ids = {entry["id"] for entry in openings.values()}
    lines = [
        {key: entry_answer(entry, config) for key, entry in entries.items()} for entries in (openings, last)
    ]
    for before, after in ((_answers_in(ledger, opening_ids), _answers_now(ledger)), lines):
        if len(openings) > 1 and all(before.get(key) and after.get(key) for key in openings):
            first_count, last_count = (len({each[key] for key in openings}) for each in (before, after))
            return AnswerCounts(debaters=len(openings), openings=first_count, end=last_count)
    return None


def _answers_in(ledger: Ledger, message_ids: set[str]) -> Mapping[str, str]:
    """Return the answer that each debater gives in one of the messages, conditions aside."""
    return {
        change.event["debater"]: f"{key} {change.side}"
        for key in ledger.proposals
        for change in ledger.timeline(key)
        if change.side and change.event["message_id"] in message_ids
    }


def _answers_now(ledger: Ledger) -> Mapping[str, str]:
    """Return the debaters' current answers, conditions aside. Who concedes gives the other side's answer."""
    answers = {}
    for debater in {debater for key in ledger.proposals for debater in ledger.timeline(key).last}:
        change = ledger.timeline(key := ledger.main_claim(debater)).last.get(debater)
        if change and (change.side or (change.event["kind"] == "concedes" and change.sign)):
            answers[debater] = f"{key} {change.side or ('', *ANSWERS)[change.sign]}"
    return answers
