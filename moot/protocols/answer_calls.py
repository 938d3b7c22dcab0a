"""Model calls about answers: final answers, which answer a message gives, and which answers say the same."""

import re
import unicodedata
from collections.abc import Container, Sequence

from pydantic import BaseModel, Field

from moot.calls.effects import errors_update
from moot.calls.model_calls import CallGenerator, Hints, ModelCall, Reply
from moot.config import DebateConfig
from moot.prompts.request import between, make_call, many, model_params, narrow_schema, one_of, prompt_budget
from moot.prompts.structured_calls import structured_call, structured_data
from moot.prompts.templates import fenced, load_prompt_template
from moot.protocols import voting
from moot.protocols.base import Protocol
from moot.protocols.long_form_prompt import long_form_blocks
from moot.protocols.prompt_context import PromptContext, PromptSource, assemble_prompt
from moot.state import verdict as verdict_types
from moot.state.conversation import ConversationState, Turn
from moot.state.entries import Entry, JsonObject, is_passed, traits_of
from moot.text.answers import ANSWER_WORDS, answer_key, option_of, parse_confidence, stated_option
from moot.text.plain_text import clip
from moot.text.terms import UNSPACED_CHARACTER
from moot.text.tokens import TokenCounter, truncate_middle

READ_ANSWER = load_prompt_template("read-answer", "form", home=__package__)
SAME_ANSWER = load_prompt_template("same-answer", home=__package__)
NONE = "none of them"
"""Value with which a model says that a message gives none of the options."""
COMPARED_CHARS = 300
"""Maximum length of an answer that is compared with others, in characters. Longer answers are cut."""
_CODE = re.compile(r"(?:[a-z]|-?\d+(?:\.(?!\d{3}\b)\d+)?)(?P<unit> .*)?")
"""Letters and numbers with a unit. Three digits behind a point may be thousands, so they do not match."""


class AnswerReply(BaseModel):
    """Answer that a model found in a message."""

    answer: str = Field(description="The answer that the message gives.")


class EqualAnswersReply(BaseModel):
    """Groups of answers that say the same."""

    reasoning: str = Field("", description="What the answers have in common, in at most 40 words.")
    groups: list[list[int]] = Field(
        [], description="One list for all answers that say the same, by number. Leave out single answers."
    )


def read_texts(
    question: str, texts: Sequence[str], options: Sequence[str], config: DebateConfig, count: TokenCounter
) -> CallGenerator[tuple[list[str], list[str]]]:
    """Ask a model which answer each text gives, and return the answers and the errors.

    An answer is one of the options. Without options, it is copied from the text. `""`: the text gives no
    answer, the model answered something that the text does not say, or the call failed.
    """
    if not texts:
        return [], []
    form = (
        f"`answer` is “{NONE}” if the message chooses none of the others, or leaves open which it chooses."
        if options
        else f"Copy `answer` from the message, in at most {ANSWER_WORDS} words. It is empty if the "
        "message gives no answer, or several."
    )
    schema = narrow_schema(AnswerReply, {"answer": one_of([*options, NONE])} if options else {})
    question = truncate_middle(question, config.memory.budget.total // 4, count)
    calls = [
        structured_call(
            "evaluate",
            config,
            READ_ANSWER.render(form=form),
            [fenced(question, config.fence, "# Question"), fenced(text, config.fence, "# Message")],
            schema,
            count,
            call_index=index,
            hints={"phase": "read answers"},
        )
        for index, text in enumerate(texts)
    ]
    replies: list[Reply] = yield calls
    answers = []
    for text, reply in zip(texts, replies, strict=True):
        answer = " ".join((structured_data(schema, reply) or {"answer": ""})["answer"].split())
        is_usable = not reply.placeholder and (bool(options) or _occurs(answer, text))
        answers.append((option_of(answer, options) if options else answer) if is_usable else "")
    return answers, [f"an answer was not read: {reply.error}" for reply in replies if reply.error]


def _occurs(answer: str, text: str) -> bool:
    """Return True if a short answer stands in a text, apart from case, markup and space."""
    form, within = (
        " ".join(re.sub(r"[*_`]", "", unicodedata.normalize("NFKC", each)).casefold().split())
        for each in (answer, text)
    )
    if not form or len(form.split()) > ANSWER_WORDS:
        return False
    return (
        form in within
        if UNSPACED_CHARACTER.search(form)
        else bool(re.search(rf"(?<!\w){re.escape(form)}(?!\w)", within))
    )


def equal_forms(
    debate: PromptSource,
    ballots: Sequence[voting.AnswerBallot],
    known: Container[str] = (),
    *,
    weighted: bool = False,
) -> CallGenerator[tuple[dict[str, str], list[str]]]:
    """Ask a model which different answers say the same, if that can change the result of a vote.

    It cannot if an answer has a majority, if the answers are options, or if they are letters or numbers.

    Returns:
        For each form of an answer that counts as another one, that form. A form of an earlier step, as in
        `known`, stays as it is. Then the errors.
    """
    config, count = debate.config, debate.count
    votes = [voting.VoteCount(ballots, config, weighted=each) for each in (False, weighted)]
    answers: dict[str, str] = {}
    for each in votes[0].counted:
        answers.setdefault(each.form, clip(each.answer, COMPARED_CHARS))
    codes = [_CODE.fullmatch(form) for form in answers]
    differ = all(codes) and len({code["unit"] for code in codes if code}) == 1
    if config.options or len(answers) < 2 or differ or all(each.majority for each in votes):
        return {}, []
    forms = sorted(answers, key=lambda form: form not in known)
    lines = "\n".join(f"{number}. {answers[form]}" for number, form in enumerate(forms, 1))
    question = truncate_middle(debate.state["topic"], config.memory.budget.total // 4, count)
    texts = [fenced(question, config.fence, "# Question"), fenced(lines, config.fence, "# Answers")]
    group = many(between(1, len(forms), int), 2, len(forms))
    schema = narrow_schema(EqualAnswersReply, {"groups": many(group, 0, len(forms) // 2)})
    hints: Hints = {"phase": "compare answers"}
    (reply,) = yield [
        structured_call("evaluate", config, SAME_ANSWER.render(), texts, schema, count, hints=hints)
    ]
    data = None if reply.placeholder else structured_data(schema, reply)
    counts_as: dict[str, str] = {}
    for numbers in data["groups"] if data else []:
        group_forms = [forms[number - 1] for number in numbers if 0 < number <= len(forms)]
        for form in group_forms[1:]:
            if form not in known and form not in counts_as and group_forms[0] not in counts_as:
                counts_as[form] = group_forms[0]
    return counts_as, [f"answers were not compared: {reply.error}"] if reply.error else []


def add_answers(
    debate: PromptSource, protocol: Protocol, entries: Sequence[Entry], messages: Sequence[Entry]
) -> CallGenerator[list[str]]:
    """Complete the answers in a step's new entries by model calls, and return the errors.

    A message of `messages` whose answer the vote or a `stop` condition needs, and which states none that is
    certain, is read by a call. Then different answers that may say the same are compared by another one.
    """
    state, config = debate.state, debate.config
    votes = protocol.counts_messages(config)
    stops = bool(config.stop) and protocol.compares_answers
    transcript = [*state["full_transcript"], *entries] if votes or stops else []
    after: ConversationState = {**state, "full_transcript": transcript}
    if stops and not votes:
        latest = {each.latest for each in voting.current_answers(after, config).values() if each.latest}
        stops = "stable" in config.stop or len(latest) < 2
    unread = [
        entry
        for entry in messages
        if voting.states_answer(entry)
        and (votes or stops)
        and not voting.entry_answer(entry, config, in_vote=votes)
    ]
    texts = [entry["content"] for entry in unread]
    answers, errors = yield from read_texts(state["topic"], texts, config.options, config, debate.count)
    for entry, answer in zip(unread, answers, strict=True):
        if answer:
            entry["answer"] = answer
    if not votes:
        return errors
    known = {each.form for each in protocol.ballots(state, config)}
    weighted = protocol.method(config) == "weighted-vote"
    ballots = protocol.ballots(after, config)
    forms, failures = yield from equal_forms(debate, ballots, known, weighted=weighted)
    for entry in messages:
        for ballot in voting.ballots_of_entries([entry], config):
            if ballot.form in forms:
                entry["counts_as"] = forms[ballot.form]
    return [*errors, *failures]


ASK_FINAL_ANSWER = load_prompt_template("final_answer", "form", home=__package__)


class FinalAnswerReply(BaseModel):
    """A debater's reply to the request for a final answer."""

    reasoning: str = Field("", description="Decisive reasons for your answer, in at most 80 words.")
    answer: str = Field(description="The answer, in as few words as possible.")
    confidence: float | None = Field(
        None, description="How sure you are that the answer is right, from 0 to 100."
    )


def final_answers(debate: PromptSource, debaters: Sequence[str]) -> CallGenerator[JsonObject]:
    """Ask all debaters for their final answers at the same time.

    A person's answer is read from that person's last message. A failed call leaves out one answer and is
    recorded as an error. Then `read_texts` and `equal_forms` complete the answers.
    """
    state, config = debate.state, debate.config
    calls = {
        debater: _call(debate, debater, index)
        for index, debater in enumerate(debaters)
        if not config.has_person(debater)
    }
    replies = dict(zip(calls, (yield list(calls.values())) if calls else [], strict=True))
    unread: dict[str, str] = {}
    answers = [
        _by_model(debater, calls[debater], replies[debater], config, unread)
        if debater in calls
        else _by_person(state, config, debater, unread)
        for debater in debaters
    ]
    texts = list(unread.values())
    read, failures = yield from read_texts(state["topic"], texts, config.options, config, debate.count)
    by_call = {debater: answer for debater, answer in zip(unread, read, strict=True) if answer}
    for each in answers:
        if answer := by_call.get(each["debater"]):
            each |= {"answer": answer, "error": "", "by_call": True}
    ballots = voting.ballots_of_answers(answers)
    forms, errors = yield from equal_forms(debate, ballots, weighted=config.decide == "weighted-vote")
    for each in answers:
        if form := forms.get(answer_key(each["answer"])):
            each["counts_as"] = form
    turns = state.get("turn_count", 0)
    error_texts = [
        f"no final answer of {config.names()[each['debater']]}: {each['error']}" for each in answers
    ]
    errors += [text for text, each in zip(error_texts, answers, strict=True) if each["error"]]
    return {
        "final_answers": [{**each, "turns": turns} for each in answers],
        **errors_update(state, "judge", [*failures, *errors]),
    }


def _call(debate: PromptSource, debater: str, index: int) -> ModelCall:
    config = debate.config
    types: dict[str, object] = {"confidence": between(0, 100)}
    if config.options:
        types["answer"] = one_of([*config.options, verdict_types.UNDECIDED])
    schema = narrow_schema(FinalAnswerReply, types)
    total = prompt_budget(config.memory.budget.total, schema, debate.count)
    instruction = ASK_FINAL_ANSWER.render(form=voting.answer_form(config))
    turn: Turn = {"speaker": debater, "targets": [], "instruction": instruction, "room": ""}
    context = PromptContext(debate, turn, total)
    prompt = assemble_prompt(context, long_form_blocks(context), context.query, is_cached=True)
    params = model_params(config, config.debater(debater))
    hints: Hints = {"phase": "decide", "speaker": debate.names[debater]}
    return make_call(params, "decide", prompt, schema=schema, call_index=index, hints=hints)


def _by_model(
    debater: str, call: ModelCall, reply: Reply, config: DebateConfig, unread: dict[str, str]
) -> verdict_types.FinalAnswer:
    reply_data = structured_data(call.schema, reply) if call.schema else None
    answer = " ".join(str((reply_data or {}).get("answer", "")).split())
    if config.options and answer:
        option = option_of(answer, [*config.options, verdict_types.UNDECIDED])
        unread |= {} if option else {debater: answer}
        answer = option or verdict_types.UNDECIDED
    confidence = (reply_data or {}).get("confidence")
    return verdict_types.FinalAnswer(
        debater=debater,
        answer=answer,
        confidence=None if confidence is None else min(100.0, max(0.0, float(confidence))),
        reasoning=(reply_data or {}).get("reasoning", ""),
        model=reply.model,
        placeholder=reply.placeholder,
        error="" if answer else reply.error or "the reply has no answer",
        turns=0,
    )


def _by_person(
    state: ConversationState, config: DebateConfig, debater: str, unread: dict[str, str]
) -> verdict_types.FinalAnswer:
    own_entries = (each for each in reversed(state["full_transcript"]) if each["speaker"] == debater)
    text = next(
        (each["content"] for each in own_entries if traits_of(each).argues and not is_passed(each)), ""
    )
    answer = stated_option(text, config.options)
    if text and not answer:
        unread[debater] = text
    return verdict_types.FinalAnswer(
        debater=debater,
        answer=answer,
        confidence=parse_confidence(text),
        reasoning="",
        model="",
        placeholder=False,
        error="" if answer else "the last message of this person states no answer",
        turns=0,
    )
