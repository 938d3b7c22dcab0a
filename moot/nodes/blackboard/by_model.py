"""Notes by a model: one structured call a step, checked against what was really said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from moot.nodes.blackboard.bounds import EVIDENCE, SHORT, TEXT, noted
from moot.nodes.blackboard.by_rule import split_source
from moot.nodes.blackboard.digest import render_blackboard
from moot.nodes.blackboard.ledger import open_challenges
from moot.nodes.blackboard.notes import Accord, Notes, Opposition
from moot.nodes.calls import Hints, ModelCall, Purpose, Reply, WireMessage
from moot.nodes.prompts.fitting import fit_messages
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.rendering import render_entry
from moot.nodes.prompts.request import make_call, voice_of
from moot.nodes.text.plain import inert
from moot.nodes.text.tokens import TokenCounter, cut_middle
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState
from moot.state.entries import Entry

EXTRACT = load_prompt("extract", "topic", "aspect", "debaters", "board")

_FRAME = 700
"""Tokens of the prompt's own words and the schema's, kept free of what is shown."""


class AccordFinding(BaseModel):
    """An agreement or a concession."""

    with_debater: str = Field(description="Id of the other debater.")
    on: str = Field(description="On what, in one sentence.")


class DisagreementFinding(BaseModel):
    """A disagreement on one statement."""

    with_debater: str = Field(description="Id of the other debater.")
    claim: str = Field(description="The statement that the speaker asserts and the other denies.")
    strength: Literal["mild", "strong"]
    specific: bool = Field(description="Whether it could be settled.")
    confidence: float = Field(ge=0, le=1, description="0 to 1.")


class EntryFinding(BaseModel):
    """What one message did."""

    message_id: str
    speaker: str
    position: str = Field(description="Position on what is under discussion; empty where none is taken.")
    key_argument: str
    evidence: list[str]
    concessions: list[AccordFinding]
    agreements: list[AccordFinding]
    disagreements: list[DisagreementFinding]
    changed_mind: bool
    answered: list[str] = Field(description="Ids of the messages whose challenges it answers.")


class StepFindings(BaseModel):
    """The minutes of one step."""

    reasoning: str
    entries: list[EntryFinding]


def extraction_call(
    state: ConversationState,
    config: DebateConfig,
    entries: Sequence[Entry],
    count: TokenCounter,
    *,
    aspect: str,
) -> ModelCall:
    """Return the call that reads a step's entries, within the view's budget."""
    names, room = config.names(), max(200, config.memory.budget.total - _FRAME)
    speaker = entries[0]["speaker"]
    board = render_blackboard(state, speaker, max_tokens=room // 6, count=count, names=names)
    challenges = "\n".join(
        f"- to {names[who]}: {text}"
        for who in dict.fromkeys(entry["speaker"] for entry in entries)
        for text in open_challenges((state.get("ledger") or {}).get(who) or {})
    )
    system = EXTRACT.render(
        topic=cut_middle(state["topic"], room // 6, count),
        aspect=inert(aspect),
        debaters=debater_lines(config),
        board=f"{board}\nUnanswered challenges:\n{cut_middle(challenges, room // 6, count) or '- none'}",
    )
    said = shown_entries(entries, names, room // 2, count)
    return structured_call("extract", config, system, said, StepFindings, count)


def structured_call(
    purpose: Purpose,
    config: DebateConfig,
    system: str,
    said: Sequence[str],
    schema: type[BaseModel],
    count: TokenCounter,
    *,
    floor: int = 0,
    debaters: Sequence[str] = (),
) -> ModelCall:
    """Return a structured call on the blackboard's model."""
    shown: list[WireMessage] = [{"role": "user", "content": text} for text in said]
    view = fit_messages([{"role": "system", "content": system}, *shown], config.memory.budget.total, count)
    hints: Hints = {"debaters": list(debaters) or list(config.names())}
    voice = voice_of(config, config.blackboard)
    return make_call(voice, purpose, view, schema=schema, floor=floor, hints=hints)


def found_in(schema: type[BaseModel], reply: Reply | None) -> dict[str, Any] | None:
    """Return what a model found, as JSON types; `None` where the call failed or the answer does not fit."""
    if reply is None or not reply.ok or reply.data is None:
        return None
    try:
        return schema.model_validate(reply.data).model_dump(mode="json")
    except ValidationError:
        return None


def debater_lines(config: DebateConfig, only: Sequence[str] = ()) -> str:
    """Return a line for each debater: id, name, role and stance."""
    return "\n".join(
        f"- {d.id}: {', '.join(inert(part) for part in (d.name, d.role, d.stance) if part)}"
        for d in config.debaters
        if not only or d.id in only
    )


def shown_entries(
    entries: Sequence[Entry], names: Mapping[str, str], room: int, count: TokenCounter
) -> list[str]:
    """Return entries as they are shown to a model, each cut to an equal share of `room` tokens."""
    share = max(24, room // max(1, len(entries)))
    return [cut_middle(render_entry(entry, names)["content"], share, count) for entry in entries]


def known_debater(name: str, names: Mapping[str, str]) -> str:
    """Return the id of the debater whom a model calls `name`, `""` where there is none."""
    wanted = name.strip().casefold()
    return next((who for who, shown in names.items() if wanted in (who, shown.casefold())), "")


def notes_by_model(
    data: Mapping[str, Any],
    entry: Entry,
    names: Mapping[str, str],
    *,
    aspect: str,
    challenged: Sequence[str],
) -> Notes | None:
    """Return the notes on one entry from a model's findings, `None` where they have none on it."""
    found = next((item for item in data["entries"] if item["message_id"].strip("[] ") == entry["id"]), None)
    if found is None:
        return None
    position = noted(found["position"])
    accords = {kind: _accords(found[kind], entry, names) for kind in ("concessions", "agreements")}
    oppositions = tuple(_oppositions(found["disagreements"], entry, names))
    engaged = [accord.to for kind in accords.values() for accord in kind if accord.to]
    answered = {message_id.strip("[] ") for message_id in found["answered"]}
    # A change of mind is told even where the model says nowhere to what.
    moved_to = position or noted(found["key_argument"]) or noted(entry["content"])
    return Notes(
        entry=entry,
        aspect=aspect,
        position=position,
        firm=bool(position),
        argument=noted(found["key_argument"]),
        evidence=tuple(noted(text, SHORT) for text in found["evidence"][:EVIDENCE] if text.strip()),
        concessions=accords["concessions"],
        agreements=accords["agreements"],
        oppositions=oppositions,
        shift=moved_to if found["changed_mind"] else "",
        engaged=tuple(dict.fromkeys([*engaged, *(o.to for o in oppositions)])),
        answered=tuple(text for text in challenged if split_source(text)[1] in answered),
    )


_MOST = 3
"""Accords or disagreements of one kind that one message can have."""


def _accords(
    found: Sequence[Mapping[str, Any]], entry: Entry, names: Mapping[str, str]
) -> tuple[Accord, ...]:
    some = [
        Accord(known_debater(item["with_debater"], names), noted(item["on"], TEXT))
        for item in found[:_MOST]
        if item["on"].strip()
    ]
    return tuple(accord for accord in some if accord.to != entry["speaker"])


def _oppositions(
    found: Sequence[Mapping[str, Any]], entry: Entry, names: Mapping[str, str]
) -> list[Opposition]:
    oppositions = [
        Opposition(
            known_debater(item["with_debater"], names),
            noted(item["claim"]),
            item["strength"],
            round(item["confidence"], 2),
            item["specific"],
        )
        for item in found[:_MOST]
    ]
    return [o for o in oppositions if o.claim and o.to not in ("", entry["speaker"])]
