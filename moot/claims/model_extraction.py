"""Claim extraction by a model, with one call for new messages and one call for verification."""

from collections.abc import Container, Iterable, Sequence
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, Field, create_model

from moot.calls.model_calls import CallGenerator
from moot.claims import claim_status
from moot.claims.claim_extraction import ANOTHER_ANSWER, ClaimExtraction, status_changes
from moot.claims.ledger_rendering import board_text
from moot.config import DebateConfig
from moot.config.model_settings import OFFLINE, is_built_in
from moot.prompts import request, structured_calls
from moot.prompts.templates import break_fence, fenced, load_prompt_template, system_message
from moot.state import claim_events
from moot.state.entries import Entry, ids_in
from moot.text.plain_text import sanitize_line
from moot.text.tokens import TokenCounter, equal_batches, prompt_tokens, truncate_middle

EXTRACT = load_prompt_template(
    "extract",
    "topic",
    "aspect",
    "debaters",
    "ledger",
    "main_question",
    "requests",
    "retractions",
    "proposals",
)
VERIFY = load_prompt_template("verify-quotations", "topic")

_MAIN_QUESTION = "the topic itself, answered with yes"
_OPEN_QUESTION = "the topic itself, an open question with these options: {options}"
_ON_MAIN_QUESTION = (
    "Every time a debater states a position on the topic, record an event for `p000`. A debater who supports "
    "the topic's proposal asserts `p000`."
)
_ON_OPEN_QUESTION = (
    "Every time a debater states a position on the topic, record an event for `p000`. The topic is an open "
    "question: a debater who chooses an option `asserts` it, or is `conditional` about it, and `option` "
    "names the option, word for word. If the debater's answer is none of the options, or combines several, "
    f"`option` is “{ANOTHER_ANSWER}”, and `answer` states the answer in a few words. Use the same words for "
    "debaters with the same answer. A debater who only rejects an option takes no position on `p000`."
)
_ON_REQUESTS = (
    "- `challenges` contains one record for each point made against another debater, with the claim that it "
    "attacks. `questions` contains questions to which debaters expect an answer. If a message below answers "
    "the challenge or question, give its id in `answered_in`, and copy the sentence that answers it into "
    "`answer`; otherwise leave both empty."
)
_ON_OPEN_POINTS = " `answers` contains answers to the challenges and questions that the ledger lists as open."
_ON_PROPOSALS = (
    "- `proposals` contains changed proposals. If a debater accepts the topic's proposal, or a later "
    "proposal of the ledger, with a change, write the changed proposal in full in `text`, and give the id of "
    "the proposal that it changes (p000, …) in `replaces`. Its `ref` is a new one, as for claims. Record an "
    "event for this `ref`, too: the debater who proposes the change asserts it, like each debater who "
    "accepts it. A condition that leaves the proposal as it is changes nothing.\n"
)
_ON_RECORDS = " `retractions` contains the ids of wrong records in the ledger (e001, …)."
FRAME_TOKENS = 1050
"""Number of tokens reserved for the instructions and the JSON schema of an extraction prompt."""
OUTPUT_TOKENS_PER_INPUT = 4
"""Maximum number of output tokens of an extraction per input token. A capable model used 1.5 to 4.4 in two
debates."""
MIN_NEW_MESSAGE_TOKENS = 200
"""Minimum number of prompt tokens for the new messages of an extraction. It applies however long the
background is."""
CONTEXT_MARK = "(for context)"
"""Marker for messages that an extraction prompt includes only as context."""
_MARGIN = 400
"""Number of additional output tokens that every extraction may use. They come on top of
`OUTPUT_TOKENS_PER_INPUT` per input token."""
COMMON_REPLY_LIMIT = 8192
"""Maximum number of output tokens that almost every model supports."""
MESSAGE_TOKENS = 12
"""Number of prompt tokens reserved for each message in addition to its text."""
MIN_CITED_TOKENS = 40
"""Minimum number of free prompt tokens for each earlier message that is cited. With fewer tokens, the earlier
messages are omitted."""
_MAX_NEW_CLAIMS = 12
"""Maximum number of new claims in one extraction. `_NEW_CLAIMS_PER_MESSAGE` allows more for many messages."""
_NEW_CLAIMS_PER_MESSAGE = 3
"""Maximum number of new claims per message. It applies to more than four messages, because nine messages of a
debate on lead pipes had more than 12 claims."""
_MAX_VERIFIED = 24
"""Maximum number of stance events that one model call verifies."""


class ExtractionSettings(Protocol):
    """Settings of a debate's blackboard that decide whether a model extracts claims."""

    @property
    def extraction(self) -> Literal["auto", "llm", "none"]:
        """Who extracts claims."""

    @property
    def model(self) -> str | None:
        """Model for the extraction, or `None` for the debate's."""


def uses_model(board: ExtractionSettings, debate_model: str, *, auto: bool) -> bool:
    """Return True if the extraction settings let a model extract claims.

    The offline model never extracts claims. A recorded model does only with `llm`, because the recording must
    hold its replies. `auto` is true if the protocol extracts claims by default.
    """
    model = board.model or debate_model
    if board.extraction == "auto":
        return auto and not is_built_in(model)
    return board.extraction == "llm" and model != OFFLINE


def extraction_schema(
    entries: Sequence[Entry],
    debaters: Sequence[str],
    ledger: claim_status.Ledger,
    cited: Sequence[str] = (),
    *,
    options: Sequence[str] = (),
    aspects: Sequence[str] = (),
    last: bool = False,
) -> type[BaseModel]:
    """Return the schema for the reply of a model that extracts claims.

    Ids are limited to those that the model may use. Lists that can only be empty are left out.

    Args:
        entries: the new messages.
        debaters: ids of the debaters.
        ledger: ledger before the extraction.
        cited: ids of earlier messages that the new ones cite. Stances in them may be extracted too.
        options: options of an open main question. Other answers that debaters gave to it may be chosen, too.
        aspects: aspects of the topic, one of which a new claim belongs to.
        last: True if no debater can answer the new messages. Challenges and questions are then left out.
    """
    message_type = request.one_of([entry["id"] for entry in entries], "Message")
    quotable_type = request.either(request.one_of(cited), message_type) if cited else message_type
    debater_type = request.one_of([*debaters, ""], "Debater")
    new_claim_type, condition_type = (
        request.like(r"^n[0-9]+$", "NewClaim"),
        request.like(r"^((new|k)[0-9]+)?$", "Condition"),
    )
    claim_type = request.either(request.one_of([*ledger.claims, ""]), new_claim_type, "Claim")
    option_fields: dict[str, object] = {}
    if options:
        known_options = dict.fromkeys([*options, *claim_status.options_chosen(ledger)])
        option_fields = {
            "option": (request.one_of([*known_options, ANOTHER_ANSWER, ""]), ""),
            "answer": (str, ""),
        }
    open_ids = [each["id"] for each in (*ledger.open_challenges(), *ledger.open_questions())]
    answer_type = request.either(request.one_of([""]), message_type, "Answer")
    answer_fields = {"answered_in": answer_type, "answer": str}
    confidence_type = Annotated[float, Field(ge=0, le=1)]

    def rows(name: str, doc: str, max_rows: int = 0, default: object = ..., /, **fields: Any) -> Any:
        required: Any = {
            field: kind if isinstance(kind, tuple) else (kind, ...) for field, kind in fields.items()
        }
        row = create_model(name, __doc__=doc, **required)
        return (request.many(row, 0, max_rows) if max_rows else list[row], default)  # built for these ids

    return create_model(
        "ExtractedClaims",
        __doc__="Operations on the ledger.",
        reasoning=(str, ...),
        claims=rows(
            "New",
            "A claim that the ledger does not have.",
            max(_MAX_NEW_CLAIMS, _NEW_CLAIMS_PER_MESSAGE * len(entries)),
            ref=new_claim_type,
            text=str,
            **({"aspect": (request.one_of(aspects), "")} if len(aspects) > 1 else {}),
        ),
        events=rows(
            "Said",
            "A stance on a claim in a message.",
            message_id=quotable_type,
            claim=claim_type,
            kind=claim_events.StanceKind,
            quote=str,
            condition=str,
            condition_id=(condition_type, ""),
            replaces=(condition_type, ""),
            **option_fields,
            ground=bool,
            confidence=confidence_type,
        ),
        **(
            {}
            if last
            else {
                "challenges": rows(
                    "Challenged",
                    "One point against a debater.",
                    message_id=message_type,
                    to=debater_type,
                    quote=str,
                    claim=claim_type,
                    **answer_fields,
                ),
                "questions": rows(
                    "Asked",
                    "A question that asks for an answer.",
                    message_id=message_type,
                    to=debater_type,
                    quote=str,
                    **answer_fields,
                ),
            }
        ),
        **(
            {
                "answers": rows(
                    "Answered",
                    "An answer to an open challenge or question.",
                    to=request.one_of(open_ids),
                    message_id=message_type,
                    quote=str,
                )
            }
            if open_ids
            else {}
        ),
        evidence=rows(
            "Shown",
            "Evidence.",
            message_id=message_type,
            kind=claim_events.EvidenceKind,
            quote=str,
            claim=claim_type,
            source=(claim_events.EvidenceSource, "none"),
        ),
        gaps=rows(
            "Unknown",
            "Something that the speaker admits not to know.",
            message_id=message_type,
            quote=str,
            claim=claim_type,
        ),
        reversals=rows(
            "Falsifier",
            "A finding that would change the speaker's mind.",
            0,
            [],
            message_id=message_type,
            quote=str,
            claim=claim_type,
        ),
        **(
            {}
            if options
            else {
                "proposals": rows(
                    "Amended",
                    "A proposal that a debater accepts with a change.",
                    0,
                    [],
                    ref=new_claim_type,
                    message_id=message_type,
                    quote=str,
                    text=str,
                    replaces=claim_type,
                )
            }
        ),
        same=rows(
            "Same", "Two claims with the same meaning.", one=claim_type, other=claim_type, opposite=bool
        ),
        **(
            {
                "retractions": rows(
                    "Wrong", "A stance of the ledger that was wrong.", of=request.like(r"^e[0-9]{3,}$")
                )
            }
            if ledger.claim_events.get("event")
            else {}
        ),
    )


def _requests_text(ledger: claim_status.Ledger, *, last: bool) -> str:
    """Return the rules for extracting challenges, questions and answers, or `""` if none can occur."""
    request_rules = "" if last else _ON_REQUESTS
    answer_rules = _ON_OPEN_POINTS if ledger.open_challenges() or ledger.open_questions() else ""
    text = request_rules + answer_rules
    return f"{text if request_rules else f'-{text}'}\n" if text else ""


class QuotationCheck(BaseModel):
    """Result of the model call that verifies one quotation."""

    number: int
    reasoning: str
    kind: Literal["asserts", "denies", "conditional", "concedes", "withdraws", "open"]


class QuotationChecks(BaseModel):
    """Results of the model call that verifies several quotations."""

    checks: list[QuotationCheck]


def as_context(texts: Iterable[str]) -> list[str]:
    """Mark each text as context, so that a model extracts no claims from it."""
    return [
        structured_calls.ShownText(
            f"{CONTEXT_MARK}\n{text}", f"{CONTEXT_MARK}\n{getattr(text, 'full_text', text)}"
        )
        for text in texts
    ]


def texts_tokens(texts: Iterable[str], count: TokenCounter) -> int:
    """Return the number of tokens that texts need as prompt messages."""
    return sum(count(text) + MESSAGE_TOKENS for text in texts)


def extract_claims(
    extraction: ClaimExtraction, config: DebateConfig, entries: Sequence[Entry], count: TokenCounter
) -> CallGenerator[list[str]]:
    """Extract claims from transcript entries with a model, and add the claims to `extraction`.

    Return an error message for each failed call. Several entries that do not fit one prompt whole are divided
    among several calls.

    The prompt shows the ledger with its ids, and cited earlier messages if tokens remain. A second call
    verifies events that change a debater's position on the main question. If the two readings differ, the
    event is dropped.
    """
    ledger, remaining = extraction.ledger, 2 * extraction_tokens(config)
    mentioned_ids = {key for entry in entries for key in ids_in(entry["content"])} - {
        e["id"] for e in entries
    }
    # People's messages are shown as well, because debaters rely on their facts.
    debaters = set(extraction.debaters)
    cited = [
        entry
        for key, entry in extraction.entries.items()
        if key in mentioned_ids or entry["speaker"] not in debaters
    ]
    cited_ids = {entry["id"] for entry in cited}
    ledger_text = "\n".join(ledger_lines(ledger, extraction.options, cited_ids)) or "- nothing yet"
    system = EXTRACT.render(
        topic=fenced(truncate_middle(extraction.topic, remaining // 6, count), config.fence),
        aspect=_agenda(extraction, config.fence),
        debaters=structured_calls.debater_lines(config),
        ledger=fenced(truncate_middle(ledger_text, remaining // 3, count), config.fence),
        main_question=_ON_OPEN_QUESTION if extraction.options else _ON_MAIN_QUESTION,
        requests=_requests_text(ledger, last=extraction.last),
        retractions=_ON_RECORDS if ledger.claim_events.get("event") else "",
        proposals="" if extraction.options else _ON_PROPOSALS,
    )
    schema = extraction_schema(
        entries,
        extraction.debaters,
        ledger,
        [entry["id"] for entry in cited if entry["speaker"] in debaters],
        options=extraction.options,
        aspects=extraction.aspects,
        last=extraction.last,
    )
    budget = request.prompt_budget(config.memory.budget.total, schema, count)
    budget -= prompt_tokens([system_message(system, config.fence)], count)
    # A long message is shortened before the background is, which every prompt shows.
    free_tokens = budget - extraction.background_tokens - MESSAGE_TOKENS * (len(entries) + len(cited))
    entry_tokens = min(remaining // 2, max(MIN_NEW_MESSAGE_TOKENS, free_tokens))
    shown_texts = structured_calls.shown_entries(entries, config, entry_tokens, count)
    prompt_texts: list[str] = [*shown_texts]
    if len(entries) > 1 and any(text != text.full_text for text in shown_texts):
        middle = len(entries) // 2
        failures = yield from extract_claims(extraction, config, entries[:middle], count)
        return failures + (yield from extract_claims(extraction, config, entries[middle:], count))
    tokens_left = entry_tokens - sum(map(count, prompt_texts))
    if tokens_left > MIN_CITED_TOKENS * len(cited):
        # A message that changed the facts stands where it was written, not before what it changed.
        cited_texts = as_context(structured_calls.shown_entries(cited, config, tokens_left, count))
        pairs = [*zip(cited, cited_texts, strict=True), *zip(entries, prompt_texts, strict=True)]
        prompt_texts = [text for _, text in sorted(pairs, key=lambda pair: pair[0]["seq"])]
    tokens_left = budget - texts_tokens(prompt_texts, count)
    query = "\n".join(entry["content"] for entry in entries)
    background_texts = as_context(extraction.background(query, tokens_left))
    # The marks of the texts need tokens, too.
    if (excess := texts_tokens(background_texts, count) - tokens_left) > 0:
        background_texts = as_context(extraction.background(query, tokens_left - excess))
    prompt_texts = background_texts + prompt_texts
    min_reply_tokens = _MARGIN + OUTPUT_TOKENS_PER_INPUT * sum(entry["tokens"] for entry in entries)
    call = structured_calls.structured_call(
        "extract",
        config,
        system,
        prompt_texts,
        schema,
        count,
        memory_kind="ledger",
        about=entries,
        least=min_reply_tokens,
    )
    (reply,) = yield [call]
    data = structured_calls.structured_data(schema, reply)
    if data is None:
        error = reply.error or "the model gave no fitting answer"
        return [f"no claims of {entries[0]['id']} to {entries[-1]['id']}: {error}"]
    old_count = len(extraction.new)
    extraction.new_ids = [entry["id"] for entry in entries]
    extraction.apply(data)  # type: ignore[arg-type]  # the lists in the schema are the operations
    new_ids = {claim_event.get("id") for claim_event in extraction.new[old_count:]}
    proposals = extraction.ledger.proposals
    changes = (event for event in status_changes(extraction) if event["claim"] in proposals)
    events = sorted((e for e in changes if e["id"] in new_ids), key=claim_status.message_seq)[:_MAX_VERIFIED]
    if events and config.blackboard.verify_changes:
        yield from _verify(extraction, config, events, count)
    return []


def _verify(
    extraction: ClaimExtraction,
    config: DebateConfig,
    events: Sequence[claim_events.StanceEvent],
    count: TokenCounter,
) -> CallGenerator[None]:
    """Verify stance events with a second model call, and drop those that it interprets differently."""
    ledger, quoted_by_message = extraction.ledger, dict[str, str]()
    for number, event in enumerate(events, 1):
        claim = ledger.claims.get(event["claim"])
        text = (
            board_text(claim["text"])
            if claim and claim["id"] != claim_events.MAIN_QUESTION
            else _MAIN_QUESTION
        )
        if option := event.get("option") or _option_given_up(event, ledger):
            text = f"the right answer to the topic is: {sanitize_line(option)}"
        quotation = f"{number}. Quotation: {board_text(event['quote'], 400)}\nClaim: {text}"
        quotation = break_fence(quotation, config.fence)
        quoted_by_message[event["message_id"]] = (
            f"{quoted_by_message.get(event['message_id'], '')}\n\n{quotation}"
        )
    entries = [extraction.entries[key] for key in quoted_by_message]
    remaining = 2 * extraction_tokens(config) - sum(map(count, quoted_by_message.values()))
    entry_texts = structured_calls.shown_entries(entries, config, remaining, count)
    prompt_texts: list[str] = [
        structured_calls.ShownText(text + quotations, text.full_text + quotations)
        for text, quotations in zip(entry_texts, quoted_by_message.values(), strict=True)
    ]

    topic = fenced(truncate_middle(extraction.topic, 400, count), config.fence)
    system = VERIFY.render(topic=topic)
    check_type = request.narrow_schema(QuotationCheck, {"number": request.between(1, len(events), int)})
    schema = request.narrow_schema(QuotationChecks, {"checks": request.many(check_type, 0, len(events))})
    (reply,) = yield [
        structured_calls.structured_call(
            "extract", config, system, prompt_texts, schema, count, memory_kind="ledger"
        )
    ]
    if checks := structured_calls.structured_data(QuotationChecks, reply):
        kinds = {each["number"]: each["kind"] for each in checks["checks"]}
        numbered = enumerate(events, 1)
        wrong_ids = [
            e["id"] for n, e in numbered if kinds.get(n, e["kind"]) not in _accepted_kinds(e, ledger)
        ]
        extraction.drop(wrong_ids, "verification")


def _option_given_up(event: claim_events.StanceEvent, ledger: claim_status.Ledger) -> str:
    """Return the option of an open main question that a debater gives up, or `""`."""
    changes = (each for each in ledger.timeline(event["claim"]) if each.event["id"] == event["id"])
    option = next((each.held_change.side for each in changes if each.held_change), "")
    return option if claim_status.is_given_up(event) and option not in claim_status.ANSWERS else ""


def _accepted_kinds(event: claim_events.StanceEvent, ledger: claim_status.Ledger) -> tuple[str, ...]:
    """Return the kinds of stance that count as confirmation of an event.

    An event is confirmed if a second model call finds one of these kinds in its quotation. Conceding to those
    who deny a claim also denies it.
    """
    if event["kind"] == "unsure":
        return ("unsure", "open")
    if not claim_status.is_given_up(event):
        is_denial = claim_status.is_conditional(event) and claim_status.leaning(event) < 0
        return ("denies", "conditional") if is_denial else (event["kind"],)
    sign = ledger.timeline(event["claim"]).sign_after(event["id"])
    kinds_by_sign = {1: ("asserts",), -1: ("denies",)} if event["kind"] == "concedes" else {}
    return (*claim_events.GIVING_UP, *kinds_by_sign.get(sign, ()))


def extraction_batches(entries: Sequence[Entry], config: DebateConfig) -> list[list[Entry]]:
    """Split transcript entries into one batch for each extraction call.

    The batches are about equally long. A batch takes at most half of the tokens, because the claims extracted
    from it are longer than its messages. It takes up to three quarters if the reply stays within
    `COMMON_REPLY_LIMIT`.
    """
    tokens = extraction_tokens(config)
    input_limit = (COMMON_REPLY_LIMIT - _MARGIN) // OUTPUT_TOKENS_PER_INPUT
    max_tokens = max(tokens // 2, min(tokens * 3 // 4, input_limit))
    return equal_batches(entries, lambda entry: entry["tokens"], max_tokens)


def extraction_tokens(config: DebateConfig) -> int:
    """Return how many message tokens fit into one extraction prompt."""
    return max(200, config.memory.budget.total - FRAME_TOKENS) // 2


def ledger_lines(
    ledger: claim_status.Ledger, options: Sequence[str] = (), cited_ids: Container[str] = ()
) -> Iterable[str]:
    """Yield the claim ledger for an extraction prompt, line by line.

    The most salient claim comes first. A position taken in a message whose id is in `cited_ids` names this
    message, so that a model can check it.
    """
    options_text = "; ".join(map(sanitize_line, options))
    question = _OPEN_QUESTION.format(options=options_text) if options else _MAIN_QUESTION
    for key in ledger.by_salience:
        stances = "; ".join(
            f"{debater} {_kind_of(change.event)}"
            + (f" “{sanitize_line(option)}”" if (option := change.event.get("option")) else "")
            + f" ({change.event['id']}"
            + (f" in {change.event['message_id']})" if change.event["message_id"] in cited_ids else ")")
            + "".join(f" [{each}: {sanitize_line(text)}]" for each, text in change.conditions.items() if text)
            for debater, change in ledger.timeline(key).last.items()
        )
        text = question if key == claim_events.MAIN_QUESTION else sanitize_line(ledger.claims[key]["text"])
        if key in ledger.amendments:
            text += f" (proposal, changed from {ledger.amendments[key]['replaces']})"
        yield f"- {key}: {text}" + (f" | {stances}" if stances else "")
    waiting = (*ledger.open_challenges(), *ledger.open_questions())
    if waiting:
        yield "Open challenges and questions:"
    for each in waiting:
        parties = f"{each['debater']} to {each['to'] or 'all'}"
        yield f"- {each['id']}: {parties} ({each['message_id']}): {board_text(each['quote'])}"


def _kind_of(event: claim_events.StanceEvent) -> str:
    """Return a stance event's kind in the extraction prompt. A “no, unless …” is a denial."""
    return (
        "denies" if claim_status.is_conditional(event) and claim_status.leaning(event) < 0 else event["kind"]
    )


def _agenda(extraction: ClaimExtraction, fence: str) -> str:
    """Return the prompt section that names the aspect under discussion, or `""` for the topic as a whole."""
    if extraction.aspect == claim_events.OVERALL and not extraction.subject:
        return ""
    return fenced(sanitize_line(extraction.subject or extraction.aspect), fence, "# Under discussion")
