"""Claim extraction, which checks proposed records and turns valid records into claim events."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast, get_args

from typing_extensions import TypedDict

from moot.claims.claim_status import Ledger, options_chosen
from moot.claims.ledger_from_events import fold_events, ledger_of
from moot.claims.ledger_rendering import NO_EXTRACTION, TEXT, board_text
from moot.config.debate_config import OPTION_CHARS
from moot.state import claim_events as ledger_events
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, cited_id
from moot.state.errors import InputError, option

_QUOTES = frozenset('`"“”„‟«»‹›「」『』')
_MARKS = _QUOTES | frozenset("'‘’‚‛*_")
_QUOTED_SPAN = re.compile(
    r"“[^“”]{8,600}”|\"[^\"\n]{8,600}\"|«[^«»]{8,600}»|„[^„“”]{8,600}[“”]|「[^「」]{4,300}」|『[^『』]{4,300}』"
    r"|^[ \t]{0,3}>.*$",
    re.MULTILINE,
)
ANOTHER_ANSWER = "another answer"
"""Value of the field `option` for an answer that is none of the main question's options."""
MAX_QUOTATION_CHARS = 400
"""Maximum number of characters in a stored quotation. Longer quotations are cut."""


PROPOSAL_CHARS = 400
"""Maximum number of characters in a changed proposal, which is stated in full: two or three sentences."""


class Operations(TypedDict, total=False):
    """Proposed changes to a debate's claims by type. New claims have a `ref` until they get an id."""

    claims: Sequence[Mapping[str, Any]]
    """New claims, each with the keys `ref`, `text` and `aspect`."""
    events: Sequence[Mapping[str, Any]]
    """New stances on claims, each with keys such as `message_id`, `claim`, `kind` and `quote`."""
    challenges: Sequence[Mapping[str, Any]]
    """New challenges to debaters. Each has the keys `message_id`, `to`, `quote`, `claim`, `answered_in` and
    `answer`."""
    questions: Sequence[Mapping[str, Any]]
    """New questions to debaters. Each has the keys `message_id`, `to`, `quote`, `answered_in` and
    `answer`."""
    answers: Sequence[Mapping[str, Any]]
    """Answers to challenges and questions. Each has the keys `to`, `message_id` and `quote`."""
    evidence: Sequence[Mapping[str, Any]]
    """Evidence for claims. Each item has the keys `message_id`, `kind`, `quote`, `claim` and `source`."""
    gaps: Sequence[Mapping[str, Any]]
    """Facts that debaters admit they do not know, each with the keys `message_id`, `quote` and `claim`."""
    reversals: Sequence[Mapping[str, str]]
    """Findings that would change a debater's mind, each with the keys `message_id`, `quote` and `claim`."""
    same: Sequence[Mapping[str, Any]]
    """Pairs of claims with the same or opposite meaning. Each has the keys `one`, `other` and `opposite`."""
    retractions: Sequence[Mapping[str, Any]]
    """Claim events to retract, each with its id in the key `of`."""
    proposals: Sequence[Mapping[str, str]]
    """Changed proposals, each with the keys `ref`, `message_id`, `quote`, `text` and `replaces`."""


BackgroundTexts = Callable[[str, int], Sequence[str]]
"""Function that takes a query and a token limit, and returns background texts that match the query."""


def no_background(query: str, remaining: int) -> Sequence[str]:
    """Return no texts, for debates without background texts."""
    return ()


@dataclass
class ClaimExtraction:
    """State of a claim extraction, including the claim events found so far."""

    known: Sequence[ledger_events.ClaimEvent]
    topic: str
    entries: Mapping[str, Entry]
    """Messages that an extractor may quote, keyed by message id."""
    debaters: Sequence[str]
    by: ledger_events.Extractor
    aspect: str = ledger_events.OVERALL
    subject: str = ""
    """Description of the subject that the debaters are discussing. It is `""` if `aspect` already describes
    the subject."""
    aspects: Sequence[str] = ()
    """Aspects of the topic to which a new claim can belong. The claim belongs to the aspect that the
    extractor names, or else to `aspect`."""
    options: Sequence[str] = ()
    """Possible answers to the main question if it is not a yes-or-no question. A position on the main
    question is one of its options."""
    background: BackgroundTexts = no_background
    """Function that finds background texts for the prompt. They only give context: the model extracts no
    claims from them."""
    background_tokens: int = 0
    """Number of tokens that background texts take up in every prompt of the debate."""
    threshold: float = 0.0
    """Minimum confidence of the extractor, from 0 to 1, for keeping a stance event. Events with a lower
    confidence are dropped."""
    last: bool = False
    """True if the debate ends with the new messages. Their challenges and questions are then not extracted,
    because no debater can answer them."""
    new_ids: Collection[str] = ()
    """Ids of the messages from which this run extracts claims. The default is all of `entries`."""
    new: list[ledger_events.ClaimEvent] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    _counts: Counter[str] = field(default_factory=Counter)
    _claim_refs: dict[str, str] = field(default_factory=dict)
    _condition_refs: dict[str, str] = field(default_factory=dict)
    _aspect_refs: dict[str, str] = field(default_factory=dict)
    """Aspect of each new claim, keyed by the claim's temporary id."""
    _conditions: dict[str, dict[str, str]] = field(default_factory=dict)
    """Texts of all conditions, keyed by claim id and condition id."""
    _texts: dict[str, str] = field(default_factory=dict)
    """Case-folded text of each claim, keyed by claim id. Claims with the same text are found with it."""
    _known_stance_keys: set[tuple[str, ...]] = field(default_factory=set)
    """Keys of the stances that were recorded before this extraction. These stances are not recorded again.
    Some come from crux cards."""
    _other_answers: dict[str, str] = field(default_factory=dict)
    """Known answers to an open main question besides its options. The keys are the case-folded answers."""
    _asked: set[str] = field(default_factory=set)
    """Ids of all known challenges and questions to debaters."""

    def __post_init__(self) -> None:
        known_ledger = fold_events(self.known, self.topic)
        self._counts = Counter(known_ledger.last_numbers)
        self._texts = {ledger_events.MAIN_QUESTION: self.topic.casefold()}
        self._texts |= {
            each["id"]: each["text"].casefold() for each in known_ledger.claim_events.get("claim", ())
        }
        self._other_answers = {each.casefold(): each for each in options_chosen(known_ledger)}
        self._asked = known_ledger.challenges.keys() | known_ledger.questions.keys()
        self._known_stance_keys = {_identity(event) for event in known_ledger.events}
        for event in known_ledger.claim_events.get("event", ()):
            if key := event.get("condition_id"):
                self._conditions.setdefault(event["claim"], {}).setdefault(key, event["condition"])
                self._counts["condition"] = max(self._counts["condition"], int(key[1:]))

    @property
    def ledger(self) -> Ledger:
        """Return the claim ledger, built from all known and new claim events."""
        return fold_events([*self.known, *self.new], self.topic)

    def apply(self, operations: Operations) -> None:
        """Convert valid operations to new claim events, and count invalid ones in `dropped`."""
        new_texts = {each["ref"]: str(each["text"]) for each in operations.get("claims", ())}
        self._aspect_refs = {
            each["ref"]: str(each.get("aspect", "")) for each in operations.get("claims", ())
        }
        self._claim_refs, self._condition_refs = {}, {}  # each reading has references of its own
        for each in operations.get("proposals", ()):
            self._amend(each)
        for each in operations.get("events", ()):
            self._apply_event(each, new_texts)
        for each in operations.get("evidence", ()):
            if citation := self._quotation(each, quoted=True):
                source = each.get("source") or "none"
                fields = {**self._about(each), "kind": each["kind"], "source": source}
                self._add_with_id("x", {**citation, **fields, "type": "evidence"})
        for each in operations.get("gaps", ()):
            if citation := self._quotation(each):
                self._add_with_id("g", {**citation, **self._about(each), "type": "gap"})
        for each in operations.get("reversals", ()):
            if citation := self._quotation(each):
                self._add_with_id("w", {**citation, **self._about(each), "type": "would_reverse"})
        self._apply_requests(operations)
        for each in operations.get("answers", ()):
            self._answer(each, each["to"])
        self._apply_corrections(operations)

    def _amend(self, record: Mapping[str, str]) -> None:
        """Add a changed proposal. It must change a proposal, not another claim."""
        citation = self._quotation(record)
        replaced = self._claim_refs.get(record["replaces"], record["replaces"])
        if not citation:
            return
        if replaced not in self.ledger.proposals:
            self.dropped["no proposal"] += 1
            return
        seq, texts = self.entries[citation["message_id"]]["seq"], {record["ref"]: record["text"]}
        if key := self._claim(record["ref"], texts, seq, PROPOSAL_CHARS):
            self._add_with_id("a", {**citation, "type": "amends", "claim": key, "replaces": replaced})

    def _apply_event(self, record: Mapping[str, Any], new_texts: Mapping[str, str]) -> None:
        citation = self._quotation(record)
        if not citation:
            return
        if record["confidence"] < self.threshold:
            self.dropped["low confidence"] += 1
            return
        key = self._claim(record["claim"], new_texts, self.entries[citation["message_id"]]["seq"])
        if not key:
            self.dropped["unknown claim"] += 1
            return
        has_position = record["kind"] in ("asserts", "denies", "conditional")
        is_choice = key == ledger_events.MAIN_QUESTION and record["kind"] in ("asserts", "conditional")
        option = self._option(record) if is_choice and self.options else ""
        if key == ledger_events.MAIN_QUESTION and has_position and self.options and not option:
            self.dropped["no option"] += 1
            return
        condition = board_text(record["condition"]) if has_position else ""
        event = {
            "type": "event",
            "kind": record["kind"],
            "claim": key,
            "condition": condition,
            "ground": bool(record["ground"]),
            "confidence": round(float(record["confidence"]), 2),
        }
        if record["kind"] == "conditional" or condition:
            event |= {"kind": "conditional", "leans": "no" if record["kind"] == "denies" else "yes"}
            event |= self._condition_fields(record, key, citation["debater"], condition)
        if option:
            event["option"] = option
        event |= citation
        if _identity(event) in self._known_stance_keys:
            self.dropped["noted before"] += 1
            return
        self._add_with_id("e", event)

    def _option(self, record: Mapping[str, object]) -> str:
        """Return the option, in any case, or the own answer that a debater chose, or `""`."""
        answer = str(record.get("option") or "").strip()
        if answer.casefold() == ANOTHER_ANSWER:
            answer = board_text(str(record.get("answer") or ""), OPTION_CHARS).rstrip(".")
            self._other_answers.setdefault(answer.casefold(), answer)
        options = {option.casefold(): option for option in self.options}
        return {**self._other_answers, **options}.get(answer.casefold(), "")

    def _condition_fields(
        self, record: Mapping[str, Any], claim: str, debater: str, text: str
    ) -> dict[str, str]:
        """Return the fields that describe a condition in a stance event.

        The fields are the condition's id, its text and the id of the condition that it replaces. A known id
        keeps its first text.
        """
        ref = str(record.get("condition_id") or "")
        key = self._condition_refs.get(ref, ref)
        conditions = self._conditions.setdefault(claim, {})
        if key not in conditions:
            if not text:
                return {}
            key = next(
                (
                    known_key
                    for known_key, known_text in conditions.items()
                    if known_text.casefold() == text.casefold()
                ),
                "",
            )
        if not key:
            self._counts["condition"] += 1
            key = f"k{self._counts['condition']:03d}"
            conditions[key] = text
        if ref:
            self._condition_refs[ref] = key
        replaced_key = str(record.get("replaces") or "")
        replaced_key = self._condition_refs.get(replaced_key, replaced_key)
        fields = {"condition_id": key, "condition": conditions[key]}
        return (
            {**fields, "replaces": replaced_key}
            if replaced_key in conditions and replaced_key != key
            else fields
        )

    def _apply_requests(self, operations: Operations) -> None:
        """Add the proposed challenges, questions and answers as claim events."""
        for each in operations.get("challenges", ()):
            if citation := self._quotation(each, quoted=True):
                is_other = each["to"] in self.debaters and each["to"] != citation["debater"]
                self.dropped["not another debater"] += not is_other
                if not is_other:
                    continue
                key = self._add_with_id(
                    "c", {**citation, **self._about(each), "type": "challenge", "to": each["to"]}
                )
                if each.get("answered_in"):
                    self._answer({"message_id": each["answered_in"], "quote": each["answer"]}, key)
        for each in operations.get("questions", ()):
            if citation := self._quotation(each):
                to = each["to"] if each["to"] in self.debaters else ""
                key = self._add_with_id("q", {**citation, "type": "question", "to": to})
                if each.get("answered_in"):
                    self._answer({"message_id": each["answered_in"], "quote": each["answer"]}, key)

    def _apply_corrections(self, operations: Operations) -> None:
        """Record all claim merges and retractions in `operations` as new claim events."""
        for each in operations.get("same", ()):
            one, other = (self._claim_refs.get(each[key], each[key]) for key in ("one", "other"))
            if one in self._texts and other in self._texts and one != other:
                opposite = bool(each["opposite"])
                self._add({"type": "same", "one": one, "other": other, "opposite": opposite, "by": self.by})
        for each in operations.get("retractions", ()):
            if any(claim_event.get("id") == each["of"] for claim_event in self.known):
                self._add(
                    {
                        "type": "retraction",
                        "of": each["of"],
                        "why": board_text(each.get("why", "")),
                        "by": self.by,
                    }
                )

    def drop(self, ids: Sequence[str], why: str) -> None:
        """Remove newly extracted events, and count them in `dropped`.

        The reason `why` is the key in `dropped`. Also remove new claims that no remaining event mentions.
        """
        self.dropped[why] += len(ids)
        self.new = [claim_event for claim_event in self.new if claim_event.get("id") not in ids]
        mentioned_ids = {
            claim_event.get(key) for claim_event in self.new for key in ("claim", "one", "other")
        }
        for claim_event in [claim_event for claim_event in self.new if claim_event["type"] == "claim"]:
            if claim_event["id"] not in mentioned_ids:
                self.new.remove(claim_event)
                del self._texts[claim_event["id"]]

    def finish(self, through: int) -> list[ledger_events.ClaimEvent]:
        """Record the end of the extraction, and return all new claim events."""
        self._add(
            {"type": "extraction_pass", "through": through, "by": self.by, "dropped": dict(self.dropped)}
        )
        return self.new

    def _quotation(self, record: Mapping[str, Any], *, quoted: bool = False) -> dict[str, Any]:
        """Check a quotation, and return its debater, message id and exact words, or `{}` if it is invalid."""
        entry = self.entries.get(cited_id(record["message_id"]))
        if entry is None or find_quotation(record["quote"], entry["content"]) is None:
            entry = self._only_new_message_with(record["quote"]) or entry
        if entry is None or entry["speaker"] not in self.debaters:
            self.dropped["unknown message"] += 1
            return {}
        span = find_quotation(record["quote"], entry["content"])
        if span is None:
            self.dropped["quotation not found"] += 1
            return {}
        if not quoted and inside_quotation(entry["content"], *span):
            self.dropped["quotation of another person"] += 1
            return {}
        words = shorten_quotation(entry["content"], *span)
        return {"debater": entry["speaker"], "message_id": entry["id"], "quote": words, "by": self.by}

    def _only_new_message_with(self, quote: str) -> Entry | None:
        """Return the one new message with the quotation, or `None` if none or several contain it."""
        new_entries = (self.entries[key] for key in self.new_ids or self.entries if key in self.entries)
        matches = [entry for entry in new_entries if quote.strip() and quote.strip() in entry["content"]]
        return matches[0] if len(matches) == 1 and matches[0]["speaker"] in self.debaters else None

    def _about(self, record: Mapping[str, Any]) -> dict[str, str]:
        """Return an event's field `claim`, with an empty id if the record refers to no known claim."""
        key = self._claim_refs.get(record["claim"], record["claim"])
        return {"claim": key if key in self._texts else ""}

    def _claim(self, ref: str, new_texts: Mapping[str, str], seq: int, limit: int = TEXT) -> str:
        """Return the id of the claim that `ref` names.

        `ref` is an id or a temporary id. Add the claim if it is new; return `""` if it is unknown. A new
        claim with the text of a known claim is that claim.
        """
        key = self._claim_refs.get(ref, ref)
        text = board_text(new_texts.get(ref, ""), limit)
        if key in self._texts or not text:
            return key if key in self._texts else ""
        key = next(
            (claim for claim, folded_text in self._texts.items() if folded_text == text.casefold()), ""
        )
        if not key:
            named_aspect = self._aspect_refs.get(ref, "")
            aspect = named_aspect if named_aspect in self.aspects else self.aspect
            key = self._add_with_id("p", {"type": "claim", "text": text, "aspect": aspect, "seq": seq})
            self._texts[key] = text.casefold()
        self._claim_refs[ref] = key
        return key

    def _answer(self, record: Mapping[str, Any], to: str) -> None:
        """Add an answer to a challenge or a question.

        An answer by the debater who was asked counts even if its quotation is not verbatim. Its quotation is
        then empty, because Moot quotes nothing that was not said.
        """
        entry, ledger = self.entries.get(cited_id(record["message_id"])), self.ledger
        request = ledger.challenges.get(to) or ledger.questions.get(to)
        if to not in self._asked:
            self.dropped["unknown challenge"] += 1
            return
        addressees = [request["to"]] if request and request["to"] else self.debaters
        is_loose = entry and find_quotation(record["quote"], entry["content"]) is None
        if (
            entry
            and request
            and entry["speaker"] in addressees
            and is_loose
            and self._only_new_message_with(record["quote"]) is None
        ):
            answer = {"debater": entry["speaker"], "message_id": entry["id"], "quote": "", "by": self.by}
            self._add({"type": "answer", "to": to, **answer})
        elif citation := self._quotation(record):
            self._add({"type": "answer", "to": to, **citation})

    def _add_with_id(self, letter: str, claim_event: Mapping[str, Any]) -> str:
        """Give a claim event a new id that starts with `letter`, add the event, and return the id."""
        self._counts[claim_event["type"]] += 1
        key = f"{letter}{self._counts[claim_event['type']]:03d}"
        self._add({**claim_event, "id": key})
        if claim_event["type"] in ("challenge", "question"):
            self._asked.add(key)
        return key

    def _add(self, claim_event: Mapping[str, Any]) -> None:
        self.new.append(cast(ledger_events.ClaimEvent, claim_event))


def _identity(event: Mapping[str, object]) -> tuple[str, ...]:
    """Return a key that two events share only if they record the same stance in the same message."""
    keys = ("claim", "debater", "message_id", "kind", "condition", "option")
    return tuple(str(event.get(key) or "") for key in keys)


def status_changes(extraction: ClaimExtraction) -> Iterator[ledger_events.StanceEvent]:
    """Yield the new events that change a debater's stance on a claim."""
    new_ids = {claim_event["id"] for claim_event in extraction.new if claim_event["type"] == "event"}
    for timeline in extraction.ledger.timelines.values():
        stances: dict[str, tuple[str, ...]] = {}
        for change in timeline:
            event, debater = change.event, change.event["debater"]
            stance = event["kind"], event.get("leans", ""), event.get("option", "")
            if event["id"] in new_ids and stances.get(debater) != stance and "moved_to" not in event:
                yield event
            stances[debater] = stance


def find_quotation(quote: str, text: str) -> tuple[int, int] | None:
    """Return the span in `text` that matches `quote` apart from space, case, `*`, `_` and quotation marks."""
    bare_quote, _ = _bare(quote)
    bare_text, places = _bare(text)
    start = bare_text.find(bare_quote) if bare_quote else -1
    if start < 0:
        return None
    first, last = places[start], places[start + len(bare_quote) - 1] + 1
    # Keep the quotation marks if the quotation begins or ends with one.
    has_opening_mark = quote.strip()[0] in _QUOTES and text[:first].endswith(tuple(_QUOTES))
    has_closing_mark = quote.strip()[-1] in _QUOTES and text.startswith(tuple(_QUOTES), last)
    return first - has_opening_mark, last + has_closing_mark


@lru_cache(maxsize=256)  # one message is searched for many quotations
def _bare(text: str) -> tuple[str, list[int]]:
    """Return a case-folded text without space, quotation marks, `*` and `_`, and original indexes."""
    kept = [(char, index) for index, char in enumerate(text) if not char.isspace() and char not in _MARKS]
    folded = [(folded_char, index) for char, index in kept for folded_char in char.casefold()]
    return "".join(char for char, _ in folded), [index for _, index in folded]


def inside_quotation(text: str, start: int, end: int) -> bool:
    """Return True if the characters from `start` to `end` are within quotation marks."""
    return any(first <= start and end <= last for first, last in quoted_spans(text))


@lru_cache(maxsize=256)
def quoted_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each quoted passage in a text, including the quotation marks."""
    return [match.span() for match in _QUOTED_SPAN.finditer(text)]


def shorten_quotation(text: str, start: int, end: int) -> str:
    """Return a part of `text`, cut at the end of a word to `MAX_QUOTATION_CHARS` characters."""
    words = text[start:end]
    if len(words) <= MAX_QUOTATION_CHARS:
        return words
    return words[
        : words.rfind(" ", 0, MAX_QUOTATION_CHARS)
        if " " in words[:MAX_QUOTATION_CHARS]
        else MAX_QUOTATION_CHARS
    ]


KINDS: tuple[ledger_events.StanceKind, ...] = get_args(ledger_events.StanceKind)


def correct_event(
    state: ConversationState, note_id: str, kind: str = "", why: str = "", condition: str = ""
) -> list[ledger_events.ClaimEvent]:
    """Return the claim events with which a person corrects or retracts an extracted event.

    Args:
        state: state of the debate.
        note_id: id of the claim event to correct. Claims cannot be corrected this way.
        kind: the stance that the debater really takes, one of `KINDS`. Empty: retract the event.
        why: reason of a retraction.
        condition: condition of the kind `conditional`, beginning with “if” or “unless”. Empty: the event's
            own condition.

    Raises:
        InputError: the id is unknown, or the event cannot have that kind.
    """
    all_events: Sequence[Any] = state.get("claim_events") or []
    claim_events = {
        claim_event["id"]: claim_event
        for claim_event in all_events
        if "id" in claim_event and claim_event["type"] != "claim"
    }
    if note_id not in claim_events:
        raise InputError(f"no claim event {note_id!r}: {_newest(claim_events)}")
    event = claim_events[note_id]
    if not kind:
        return [ledger_events.Retraction(type="retraction", of=note_id, why=board_text(why), by="person")]
    if event["type"] != "event":
        raise InputError(
            f"cannot change the kind of claim event {note_id!r}, because it is not a stance: "
            "give no kind to remove the event"
        )
    if kind not in KINDS:
        raise InputError(f"{kind!r} is not a valid kind of claim event: use one of {', '.join(KINDS)}")
    if kind == "conditional" and not (condition := board_text(condition) or event["condition"]):
        raise InputError(
            f"claim event {note_id!r} has no condition: give one with {option('condition')}, such as "
            "'if the tests pass'"
        )
    if condition and kind != "conditional":
        raise InputError(f"{option('condition')} needs the kind 'conditional', but the kind is {kind!r}")
    number = 1 + sum(claim_event["type"] == "event" for claim_event in all_events)
    corrected_event = {**event, "id": f"e{number:03d}", "kind": kind, "by": "person", "confidence": 1.0}
    corrected_event["condition"] = condition
    if condition != event["condition"]:
        corrected_event.pop("condition_id", None)  # belongs to the earlier condition
    if kind == "conditional":
        corrected_event.setdefault("leans", "no" if event["kind"] == "denies" else "yes")
    else:
        for name in ("leans", "condition_id", "replaces"):
            corrected_event.pop(name, None)
    return [ledger_events.StanceEvent(**corrected_event)]  # type: ignore[typeddict-item]  # add the event again with other values


def merge_claims(
    state: ConversationState, one: str, other: str, *, opposite: bool = False
) -> list[ledger_events.ClaimEvent]:
    """Return the claim event that records a person's merge of two claims.

    Raises:
        InputError: a claim is unknown, or both ids are equal.
    """
    claims = ledger_of(state).claims
    for key in (one, other):
        if key not in claims:
            raise InputError(f"no claim {key!r}: {_newest(claims)}")
    if one == other:
        raise InputError(f"both ids refer to claim {one!r}: give the ids of two different claims")
    return [ledger_events.SameClaim(type="same", one=one, other=other, opposite=opposite, by="person")]


def _newest(keys: Iterable[str]) -> str:
    newest_ids = list(keys)[-12:]
    return f"the newest are {', '.join(newest_ids)}" if newest_ids else f"there are none. {NO_EXTRACTION}"
