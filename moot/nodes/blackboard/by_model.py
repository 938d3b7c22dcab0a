"""The ledger's operations by model: one structured call over new messages, and a second look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, create_model

from moot.nodes.blackboard.board_words import board_text
from moot.nodes.blackboard.minutes import Minutes, standing_changes
from moot.nodes.blackboard.standing import Ledger, is_given_up, said_at
from moot.nodes.calls import Flow, Hints, ModelCall, Purpose, Reply, WireMessage
from moot.nodes.prompts.fitting import fit_messages
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.material import common_length
from moot.nodes.prompts.rendering import LABEL_TOKENS, render_entry
from moot.nodes.prompts.request import Voice, between, make_call, many, narrow, one_of, voice_of
from moot.nodes.text.plain import inert
from moot.nodes.text.tokens import TokenCounter, batches, cut_middle
from moot.state.config import DebateConfig
from moot.state.config.model_settings import is_built_in
from moot.state.conversation import MemoryKind
from moot.state.entries import Entry, ids_in
from moot.state.ledger import GIVES_UP, MOTION, OVERALL, Event, EventKind, EvidenceKind

EXTRACT = load_prompt("extract", "topic", "aspect", "debaters", "ledger")
SECOND_LOOK = load_prompt("second-look", "topic", "aspect")

_MOTION = "the topic itself, answered with yes"
FRAME = 900
"""Tokens of the prompt's own words and the schema's, kept free of what is shown."""
NOTES_A_TOKEN = 4
"""Tokens of minutes for one that is read: 1.5 to 4.4 in two debates that a capable model held."""
_MARGIN = 400
"""Tokens of minutes of which little is read."""
LEAST_CITED = 40
"""Tokens below which an earlier message that is cited is not shown."""
_NEW = 12
"""Propositions that one reading may open."""
_QUESTIONED = 24
"""Events of one reading that are looked at again."""


def asks_model(config: DebateConfig, *, auto: bool) -> bool:
    """Return whether a model is asked for the minutes.

    `auto` is whether its protocol wants one where nothing is configured; the built-in ones read nothing, so
    that they are only asked where somebody says so.
    """
    chosen = config.blackboard.extraction
    built_in = is_built_in(config.blackboard.model or config.model)
    return chosen == "llm" or (chosen == "auto" and auto and not built_in)


def minutes_schema(
    entries: Sequence[Entry], debaters: Sequence[str], ledger: Ledger, cited: Sequence[str] = ()
) -> type[BaseModel]:
    """Return the schema of the minutes of some entries: every id that may be used is enumerated.

    What earlier messages, the `cited`, said of a proposition may be noted, too.
    """
    said = one_of(entry["id"] for entry in entries)
    quotable = one_of([*(entry["id"] for entry in entries), *cited])
    somebody = one_of(debaters)
    refs = [f"n{number}" for number in range(1, _NEW + 1)]
    known = [*ledger.propositions, *refs]
    about, perhaps = one_of(known), one_of([*known, ""])
    waiting = [each["id"] for each in (*ledger.open_challenges(), *ledger.open_questions())]
    notes = [event["id"] for key in ledger.propositions for event in ledger.stances(key).values()]
    answered = {"answered_in": one_of([*(entry["id"] for entry in entries), ""]), "answer": str}
    sure = Annotated[float, Field(ge=0, le=1)]

    def rows(name: str, doc: str, **fields: Any) -> Any:
        required: Any = {field: (kind, ...) for field, kind in fields.items()}
        return (list[create_model(name, __doc__=doc, **required)], ...)  # type: ignore[misc]  # made for these

    return create_model(
        "StepMinutes",
        __doc__="Operations on the ledger.",
        reasoning=(str, ...),
        propositions=rows("New", "A proposition that the ledger does not have.", ref=one_of(refs), text=str),
        events=rows(
            "Said",
            "What a message says of a proposition.",
            message_id=quotable,
            proposition=about,
            kind=EventKind,
            quote=str,
            condition=str,
            ground=bool,
            confidence=sure,
        ),
        challenges=rows(
            "Challenged",
            "One point against somebody.",
            message_id=said,
            to=somebody,
            quote=str,
            proposition=perhaps,
            **answered,
        ),
        questions=rows(
            "Asked",
            "A question that wants an answer.",
            message_id=said,
            to=one_of([*debaters, ""]),
            quote=str,
            **answered,
        ),
        answers=rows(
            "Answered",
            "What answers an open challenge or question.",
            to=one_of(waiting),
            message_id=said,
            quote=str,
        ),
        evidence=rows(
            "Shown", "Evidence.", message_id=said, kind=EvidenceKind, quote=str, proposition=perhaps
        ),
        gaps=rows(
            "Unknown", "What the speaker admits not to know.", message_id=said, quote=str, proposition=perhaps
        ),
        same=rows("Same", "Two propositions that are one.", one=about, other=about, opposite=bool),
        retractions=rows("Wrong", "A note that was wrong.", of=one_of(notes), why=str),
    )


class Look(BaseModel):
    """What a quotation does, looked at by itself."""

    number: int
    reasoning: str
    kind: Literal["asserts", "denies", "conditional", "concedes", "withdraws", "open"]


class SecondLook(BaseModel):
    """What each quotation does to its proposition."""

    looks: list[Look]


def minutes_by_model(
    minutes: Minutes, config: DebateConfig, entries: Sequence[Entry], count: TokenCounter
) -> Flow[str]:
    """Read entries; return why that failed, `""` where it did not.

    The model is shown the ledger with its ids, and what the entries cite, as far as they leave it room. What
    would change a standing is looked at again by itself; where the two readings differ, nothing is noted.
    """
    before, room, names = minutes.ledger, 2 * room_for(config), config.names()
    system = EXTRACT.render(
        topic=cut_middle(minutes.topic, room // 6, count),
        aspect=_agenda(minutes),
        debaters=debater_lines(config),
        ledger=cut_middle("\n".join(ledger_lines(before)) or "- nothing yet", room // 3, count),
    )
    named = {key for entry in entries for key in ids_in(entry["content"])} - {e["id"] for e in entries}
    cited = [entry for key, entry in minutes.entries.items() if key in named]
    said = shown_entries(entries, names, room // 2, count)
    left = room // 2 - sum(map(count, said))
    if left > LEAST_CITED * len(cited):
        said = [f"(read before)\n{text}" for text in shown_entries(cited, names, left, count)] + said

    schema = minutes_schema(entries, minutes.debaters, before, [entry["id"] for entry in cited])
    least = _MARGIN + NOTES_A_TOKEN * sum(entry["tokens"] for entry in entries)
    call = structured_call(
        "extract", config, system, said, schema, count, makes="ledger", about=entries, least=least
    )
    (reply,) = yield [call]
    found = found_in(schema, reply)
    if found is None:
        return reply.error or "the model gave no fitting answer"
    old = len(minutes.new)
    minutes.take(found)  # type: ignore[arg-type]  # the schema's lists are the operations
    new = {note.get("id") for note in minutes.new[old:]}
    doubtful = sorted((e for e in standing_changes(minutes) if e["id"] in new), key=said_at)[:_QUESTIONED]
    if doubtful and config.blackboard.second_look:
        yield from _look_again(minutes, config, doubtful, count)
    return ""


def _look_again(
    minutes: Minutes, config: DebateConfig, events: Sequence[Event], count: TokenCounter
) -> Flow[None]:
    """Drop the events that a second look does not find, in one call: each message is shown once."""
    ledger, notes = minutes.ledger, dict[str, str]()
    for number, event in enumerate(events, 1):
        known = ledger.propositions.get(event["proposition"])
        text = board_text(known["text"]) if known and known["id"] != MOTION else _MOTION
        note = f"{number}. Quotation: {board_text(event['quote'], 400)}\nProposition: {text}"
        notes[event["message_id"]] = f"{notes.get(event['message_id'], '')}\n\n{note}"
    entries = [minutes.entries[key] for key in notes]
    room = 2 * room_for(config) - sum(map(count, notes.values()))
    shown = shown_entries(entries, config.names(), room, count)
    said = [text + note for text, note in zip(shown, notes.values(), strict=True)]

    system = SECOND_LOOK.render(topic=cut_middle(minutes.topic, 400, count), aspect=_agenda(minutes))
    look = narrow(Look, {"number": between(1, len(events), int)})
    schema = narrow(SecondLook, {"looks": many(look, 0, len(events))})
    (reply,) = yield [structured_call("extract", config, system, said, schema, count, makes="ledger")]
    if looks := found_in(SecondLook, reply):
        seen = {each["number"]: each["kind"] for each in looks["looks"]}
        numbered = enumerate(events, 1)
        wrong = [e["id"] for n, e in numbered if seen.get(n, e["kind"]) not in _alike(e, ledger)]
        minutes.drop(wrong, "second look")


def _alike(event: Event, ledger: Ledger) -> tuple[str, ...]:
    """Return the kinds that a second look may find: whoever concedes to those who deny, denies as well."""
    if event["kind"] == "unsure":
        return ("unsure", "open")
    if not is_given_up(event):
        return (event["kind"], "conditional") if event["condition"] else (event["kind"],)
    sign = ledger.course(event["proposition"]).sign_after(event["id"])
    same = {1: ("asserts",), -1: ("denies",)} if event["kind"] == "concedes" else {}
    return (*GIVES_UP, *same.get(sign, ()))


def read_in_batches(entries: Sequence[Entry], config: DebateConfig) -> list[list[Entry]]:
    """Return entries in the runs that one reading each is shown, a longer one by itself.

    Half of the room is theirs: what is noted of them is longer than they are.
    """
    return batches(entries, lambda entry: entry["tokens"] + LABEL_TOKENS, room_for(config) // 2)


def room_for(config: DebateConfig) -> int:
    """Return the tokens of messages that one reading is shown."""
    return max(200, config.memory.budget.total - FRAME) // 2


def ledger_lines(ledger: Ledger) -> Iterable[str]:
    """Yield the ledger as its keeper sees it: what is most urgent first, everything with its id."""
    for key in ledger.by_salience:
        events = ledger.stances(key).values()
        stances = "; ".join(f"{e['debater']} {e['kind']} ({e['id']}, {e['message_id']})" for e in events)
        text = _MOTION if key == MOTION else inert(ledger.propositions[key]["text"])
        yield f"- {key}: {text}" + (f" | {stances}" if stances else "")
    for each in (*ledger.open_challenges(), *ledger.open_questions()):
        whom = f"{each['debater']} to {each['to'] or 'all'}"
        yield f"- {each['id']}: {whom} ({each['message_id']}): {board_text(each['quote'])}"


def _agenda(minutes: Minutes) -> str:
    """Return what is under discussion, in words."""
    overall = minutes.aspect == OVERALL and not minutes.about
    return "the topic as a whole" if overall else inert(minutes.about or minutes.aspect)


def structured_call(
    purpose: Purpose,
    config: DebateConfig,
    system: str,
    said: Sequence[str],
    schema: type[BaseModel],
    count: TokenCounter,
    *,
    makes: MemoryKind | Literal[""] = "",
    floor: int = 0,
    debaters: Sequence[str] = (),
    about: Sequence[Entry] = (),
    least: int = 0,
    voice: Voice | None = None,
    hints: Hints | None = None,
) -> ModelCall:
    """Return a structured call, on the blackboard's model where it is no other `voice`'s.

    Its answer has `least` tokens or what is set.
    """
    shown: list[WireMessage] = [{"role": "user", "content": text} for text in said]
    view = fit_messages([{"role": "system", "content": system}, *shown], config.memory.budget.total, count)
    told: Hints = {"debaters": list(debaters) or list(config.names()), **(hints or {})}
    if about:
        told["message_ids"] = [entry["id"] for entry in about]
    voice = voice or voice_of(config, config.blackboard)
    reply = max(voice.reply, least)
    return make_call(voice, purpose, view, schema=schema, reply=reply, floor=floor, makes=makes, hints=told)


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
    """Return entries as they are shown to a model: the longest are cut to what `room` tokens leave them."""
    whole = [render_entry(entry, names)["content"] for entry in entries]
    rooms = common_length([count(text) for text in whole], room)
    return [cut_middle(text, max(24, size), count) for text, size in zip(whole, rooms, strict=True)]


def known_debater(name: str, names: Mapping[str, str]) -> str:
    """Return the id of the debater whom a model calls `name`, `""` where there is none."""
    wanted = name.strip().casefold()
    return next((who for who, shown in names.items() if wanted in (who, shown.casefold())), "")
