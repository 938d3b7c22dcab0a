"""The debated question, its options and its criteria, which a model finds in the topic.

Options keep an open question, such as “build, or keep buying?”, from being read as a question for yes or no.
Criteria keep a council on a business decision from being judged as a software design.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, create_model

from moot.calls.model_calls import Hints, ModelCall, Reply
from moot.claims.ledger_rendering import board_text
from moot.config import DebateConfig, debate_config, model_settings, rubrics
from moot.judging.judge_spec import JudgeSpec
from moot.judging.rubrics import asks_for_criteria
from moot.prompts.request import many, model_params
from moot.prompts.structured_calls import debater_lines, shown_entries, structured_call, structured_data
from moot.prompts.templates import fenced, load_prompt_template
from moot.state.conversation import DebateQuestion, QuestionCriterion
from moot.state.entries import Entry
from moot.state.verdict import UNDECIDED
from moot.text.terms import is_long
from moot.text.tokens import TokenCounter, truncate_middle

FRAME = load_prompt_template("question_frame", "topic", "debaters", "sources", "parts")

MAX_OPTIONS, MIN_CRITERIA, MAX_CRITERIA = 6, 3, 5
CRITERION_CHARS = 200
"""Maximum number of characters in a criterion's description."""
QUESTION_CHARS = 600
"""Maximum number of characters in the debated question. The prompt asks the model for one line."""
_FRAME_TOKENS = 600
_BACKGROUND = "The user messages contain the background of the debate. Read them and fill in these fields:"
_NO_BACKGROUND = "The debate has no background besides the topic. Fill in these fields:"
_OPTIONS = (
    "- `options`: the answers to choose from, in a few words each, taken from the topic or the background. "
    "Leave the list empty if the question can be answered with yes or no. If neither names any options, give "
    "the answers that the debaters' stances imply."
)
OTHER_ANSWERS = "An answer may also combine options or be another one."
"""Sentence that tells debaters that other answers are allowed. It follows the options that a model found in
the topic."""
_NAMED_OPTIONS = (
    "- `options`: the answers that the topic or the background names to choose from, each in a few words "
    "with its letter. Leave the list empty if they name none."
)
_CRITERIA = (
    "- `criteria`: three to five criteria by which a good answer to this question differs from a bad one. "
    "The first criterion is that the answer meets every stated requirement and constraint. The others follow "
    "from the question and the background. Give each a short name, and describe in one sentence what "
    "deserves a high score."
)


class CriterionFinding(BaseModel):
    """Criterion that a model proposes for judging answers to the debated question."""

    name: str
    description: str


def asked_of_topic(
    config: DebateConfig, topic: str, judge_spec: JudgeSpec, *, extracts: bool, has_background: bool = False
) -> tuple[str, ...]:
    """Return the names of the fields that a model must extract from the topic, such as `options`.

    With `has_background`, documents or a long topic may name options.
    """
    if model_settings.is_built_in(config.model) or not judge_spec.interactive:
        return ()
    is_judged = config.judge.enabled and judge_spec.judged
    needs_criteria = is_judged and asks_for_criteria(config, judge_spec.rubric)
    needs_question = needs_criteria or (is_judged and is_long(topic))
    parts = []
    if not config.options and (extracts or (needs_question and (is_long(topic) or has_background))):
        parts.append("options")
    if needs_criteria:
        parts.append("criteria")
    return ("question", *parts) if parts or needs_question else ()


def question_call(
    config: DebateConfig,
    topic: str,
    parts: Sequence[str],
    background: Sequence[Entry],
    count: TokenCounter,
    *,
    extracts: bool,
) -> ModelCall:
    """Return the model call that asks for the debated question, its options and its criteria.

    If a model extracts claims, which refer to the options, the model may also add options of its own.
    """
    token_limit = max(200, config.memory.budget.total - _FRAME_TOKENS)
    texts = {"options": _OPTIONS if extracts else _NAMED_OPTIONS, "criteria": _CRITERIA}
    part_texts = [text for name, text in texts.items() if name in parts]
    system = FRAME.render(
        topic=fenced(truncate_middle(topic, token_limit // 2, count), config.fence),
        debaters=debater_lines(config),
        sources=_BACKGROUND if background else _NO_BACKGROUND,
        parts="\n".join(part_texts),
    )
    background_messages = shown_entries(background, config, token_limit // 2, count)
    hints: Hints = {"phase": "question"}
    params = model_params(config, config.blackboard)
    messages = [*background_messages, "Fill in the fields."]
    return structured_call(
        "extract", config, system, messages, _schema(parts), count, params=params, hints=hints
    )


def question_found(parts: Sequence[str], reply: Reply) -> DebateQuestion:
    """Return the question, options and criteria of a model's reply, `{}` without a question."""
    data = None if reply.placeholder else structured_data(_schema(parts), reply)
    if data is None or not (question := board_text(data["question"], QUESTION_CHARS)):
        return {}
    debate_question: DebateQuestion = {"question": question}
    options_by_key: dict[str, str] = {}
    for option in (board_text(text, debate_config.OPTION_CHARS) for text in data.get("options", ())):
        options_by_key.setdefault(option.casefold(), option)
    options = [option for key, option in options_by_key.items() if key not in ("", UNDECIDED)][:MAX_OPTIONS]
    if len(options) > 1:
        debate_question["options"] = options
    criteria_by_key: dict[str, QuestionCriterion] = {}
    for each in data.get("criteria", ()):
        name, description = board_text(each["name"], 60), board_text(each["description"], CRITERION_CHARS)
        if key := rubrics.criterion_key(name):
            criteria_by_key.setdefault(key, QuestionCriterion(name=name, description=description))
    if len(criteria_by_key) >= MIN_CRITERIA:
        debate_question["criteria"] = list(criteria_by_key.values())[:MAX_CRITERIA]
    return debate_question


def question_text(question: DebateQuestion, topic: str) -> str:
    """Return the debated question and its options as text for the transcript.

    The text is `""` if there is no question, or if the topic already says the same. The rules of the debate
    show the criteria.
    """
    options = question.get("options") or ()
    if not question or not (options or is_long(topic)):
        return ""
    text = question.get("question", "")
    says_the_same = " ".join(text.casefold().split()) == " ".join(topic.casefold().split())
    lines = [] if says_the_same else [f"Question to decide: {text}", ""]
    option_lines = ["Options:", *(f"- {each}" for each in options), "", OTHER_ANSWERS] if options else []
    return "\n".join([*lines, *option_lines]).strip()


def _schema(parts: Sequence[str]) -> type[BaseModel]:
    fields: dict[str, Any] = {
        "question": (str, ...),
        "options": (many(str, 0, MAX_OPTIONS), ...),
        "criteria": (many(CriterionFinding, MIN_CRITERIA, MAX_CRITERIA), ...),
    }
    schema: type[BaseModel] = create_model("QuestionFrame", **{name: fields[name] for name in parts})
    return schema
