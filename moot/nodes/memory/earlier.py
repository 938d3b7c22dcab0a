"""What a debater argued in earlier debates under its identity: written at a close, read at an opening."""

import hashlib
import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.effects import LookUp, Remember
from moot.nodes.text.plain import clip, inert
from moot.nodes.text.terms import term_set
from moot.state.config import DebateConfig, slug
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState
from moot.state.entries import ENTRY_ID, JsonObject
from moot.state.ledger import MOTION

HEADING = "# You, in earlier debates"
LOOKED_AT, KEPT = 200, 3
"""Earlier debates that are looked at, the latest, and those that come back, the most alike."""
TOPIC_CHARS, TEXT_CHARS = 160, 240
POSITIONS, CONCESSIONS = 4, 3
_CITATION = re.compile(rf"\s*[\[(]{ENTRY_ID.pattern}(?:,\s*{ENTRY_ID.pattern})*[\])]")

Looking = Generator[LookUp, Any, JsonObject]


def recollections_of(config: DebateConfig, topic: str, debate: str) -> Looking:
    """Return, by debater, what it argued in the earlier debates that are most like this one."""
    found: JsonObject = {}
    wanted = term_set(topic[: 8 * TOPIC_CHARS])
    for debater_id, identity in identities(config).items():
        earlier = yield LookUp(namespace_of(identity), LOOKED_AT)
        alike = []
        for age, each in enumerate(each for each in earlier or [] if each.get("debate") != debate):
            about = [each.get("topic", ""), each.get("stance", ""), *each.get("positions", [])]
            if shared := len(wanted & term_set(" ".join(about))):
                alike.append((-shared, age, dict(each)))
        if alike:  # the latest first among equals
            found[debater_id] = [each for *_, each in sorted(alike, key=lambda row: row[:2])[:KEPT]]
    return found


def remember_positions(state: ConversationState, debate: str, now: str) -> Generator[Remember, Any, None]:
    """Keep where each debater with an identity stood at the end of `debate`, a thread id."""
    ledger = ledger_of(state)
    for debater, identity in identities(frozen_config(state)).items():
        own = [entry for entry in state["full_transcript"] if entry["speaker"] == debater]
        if not debate or not own:
            continue
        stance = ledger.stance(debater)
        held = (ledger.stance(debater, key) for key in reversed(ledger.by_salience) if key != MOTION)
        positions = [event["quote"] for event in held if event]
        concessions = [event["quote"] for event in ledger.concessions(debater)]
        position = {
            "topic": _line(state["topic"], TOPIC_CHARS),
            "stance": _line(stance["quote"] if stance else "", TEXT_CHARS),
            "positions": [_line(text, TEXT_CHARS) for text in positions[-POSITIONS:]],
            "concessions": [_line(text, TEXT_CHARS) for text in concessions[-CONCESSIONS:]],
            "last": _line(own[-1]["content"], TEXT_CHARS),
            "winner": state.get("verdict", {}).get("winner", "") == debater,
            "debate": debate,
            "at": now[:10],
        }
        yield Remember(namespace_of(identity), debate, position)


def recollection_text(recollections: Sequence[Mapping[str, Any]]) -> str:
    """Return what a debater is reminded of, `""` for nothing."""
    lines = [HEADING]
    for each in recollections:
        argued = "; ".join(each["positions"]) or each["stance"] or each["last"]
        conceded = f"; you conceded: {'; '.join(each['concessions'])}" if each["concessions"] else ""
        won = "; the decision was for you" if each["winner"] else ""
        when = f"Last time this came up ({each['at']}, “{each['topic']}”)"
        lines.append(f"- {when} you argued: {argued}{conceded}{won}")
    return "\n".join(lines) if recollections else ""


def identities(config: DebateConfig) -> dict[str, str]:
    """Return the identity of each debater that has one; none unless memory across debates is wanted."""
    if not config.memory.cross_debate:
        return {}
    return {debater.id: debater.identity for debater in config.debaters if debater.identity}


def namespace_of(identity: str) -> tuple[str, ...]:
    """Return where an identity's positions are kept in the store; its labels know no periods."""
    known = f"{slug(identity)}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
    return ("moot", "positions", known.strip("-"))


def _line(text: str, chars: int) -> str:
    """Return a text on one line, without its citations: elsewhere those ids are other messages'."""
    return clip(inert(_CITATION.sub("", text[: 8 * chars])), chars)
