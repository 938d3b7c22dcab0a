"""Functions that read and compare the answers in debaters' messages, and end a debate by agreement.

An answer is read from the line `Answer: …` that the instruction asks for, never guessed from other text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, traits_of
from moot.state.verdict import UNDECIDED
from moot.text.plain_text import quoted

ANSWER_WORDS = 12
"""Maximum number of words in an answer, as stated in the instruction to debaters. Longer answers are not
compared with others."""
_LAST_LINE = re.compile(r"^[\s>*_#-]*answer[\s*_]*:[\s*_]*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)
_CONFIDENCE = re.compile(
    r"^[\s>*_#-]*confidence[\s*_]*:[\s*_]*(\d{1,3}(?:\.\d+)?)\b[^\n]*$", re.IGNORECASE | re.MULTILINE
)
_EDGES = " \t\r\n.,;:!?\"'`*_()[]{}“”‘’«»"


def answer_as_written(text: str) -> str:
    """Return the unchanged answer from a text's last `Answer:` line, or from the whole text."""
    marked: list[str] = _LAST_LINE.findall(text)
    return marked[-1] if marked else " ".join(text.split())


def parse_final_answer(text: str) -> str:
    """Return the normalised answer from a text's last `Answer:` line, or from the whole text.

    Normalisation removes case, markup, outer punctuation, character width and digit grouping. Numbers of
    equal value have the same form.
    """
    plain = unicodedata.normalize("NFKC", answer_as_written(text)).casefold()
    plain = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", plain)
    plain = " ".join(plain.split()).strip(_EDGES)
    try:
        number = Decimal(plain)
    except InvalidOperation:
        return plain
    return format(number.normalize(), "f") if number.is_finite() else plain


def parse_confidence(text: str) -> float | None:
    """Return the number in a text's last `Confidence:` line, or `None` if the text has no such line."""
    stated: list[str] = _CONFIDENCE.findall(text)
    return min(100.0, float(stated[-1])) if stated else None


def match_option(said: str, options: Sequence[str]) -> str:
    """Return the option that a text names, ignoring case and markup, or `""` if the text names no option."""
    wanted = parse_final_answer(said)
    return next((option for option in options if parse_final_answer(option) == wanted), "")


def read_answer(text: str, options: Sequence[str], *, whole: bool = False) -> str:
    """Return the answer in a message, or the option that the message names if the question has options.

    Args:
        text: text of the message.
        options: options of the question. Without options any answer is returned.
        whole: True to use the whole text if there is no answer line.

    Returns:
        `""` if the message has no answer line, or if its answer is none of the options.
    """
    if not whole and not _LAST_LINE.search(text):
        return ""
    return match_option(text, options) if options else answer_as_written(text)


def comparable_answer(text: str, options: Sequence[str]) -> str:
    """Return a normalised answer for comparison with the answers in other messages.

    Return `""` if the answer cannot be compared: it is missing, none of the options, or too long.
    """
    answer = read_answer(text, options)
    form = answer if options else parse_final_answer(answer)
    return form if len(form.split()) <= ANSWER_WORDS or options else ""


def answer_form(config: DebateConfig) -> str:
    """Return the part of the instruction that specifies the form of the answer."""
    if config.options:
        return f"exactly one of {quoted(config.options)}, or “{UNDECIDED}” if you cannot choose"
    return f"your answer in at most {ANSWER_WORDS} words, without reasons"


def with_answer_line(instruction: str, config: DebateConfig) -> str:
    """Append a request for an answer line to `instruction` if the debate uses answer lines.

    Conditions in `stop` read it. A vote reads the answer line of a person, who gives no structured answer.
    """
    votes = config.decide in ("vote", "weighted-vote")
    if not config.stop and not (votes and any(debater.is_human for debater in config.debaters)):
        return instruction
    form = answer_form(config)
    return f'{instruction}\n\nEnd your message with one line: "Answer: " and {form}.'


class CurrentAnswer(NamedTuple):
    """One debater's two latest answers, in normalised form."""

    latest: str
    before: str | None
    """Answer in the debater's previous message, or `None` if there is no previous message."""


def current_answers(state: ConversationState, config: DebateConfig) -> Mapping[str, CurrentAnswer]:
    """Return the two latest answers of each debater who has answered since the last message from a person.

    Crux rooms and critiques are about other questions. Placeholders of the offline model are no answers.
    """
    people = len(config.debaters)
    recent = state.get("full_transcript", [])[-2 * people * (people + 4) :]
    found: dict[str, list[str]] = {}
    for entry in reversed(recent):
        if traits_of(entry).user_input == "interjection":
            break
        if entry["speaker"] in config.names() and _states_answer(entry):
            own = found.setdefault(entry["speaker"], [])
            if len(own) < 2:
                own.append(comparable_answer(entry["content"], config.options))
    return {who: CurrentAnswer(own[0], own[1] if len(own) > 1 else None) for who, own in found.items()}


def _states_answer(entry: Entry) -> bool:
    argued = traits_of(entry).argues and not entry.get("placeholder")
    return argued and not entry["room"] and entry["kind"] != "critique"


def stop_reason(state: ConversationState, config: DebateConfig) -> str:
    """Return the reason why a `stop` condition ends the debate now, or `""` if none does.

    A debate with planned interjections goes on until they are read. A debate that ended at this point before
    goes on until the next message.
    """
    if not config.stop or (state.get("step") or {}).get("kind") == "close":
        return ""
    if state.get("planned_interjections_used", 0) < len(config.interjections):
        return ""
    answers = current_answers(state, config)
    latest = [answers[who].latest for who in config.names() if who in answers]
    if len(latest) < max(2, len(config.debaters)) or not all(latest):
        return ""
    if "agreement" in config.stop and len(set(latest)) == 1:
        return f"agreement: all {len(latest)} debaters answer “{latest[0]}”"
    if "stable" in config.stop and all(each.latest == each.before for each in answers.values()):
        held = "; ".join(f"{config.names()[who]}: “{each.latest}”" for who, each in answers.items())
        return f"stable: no answer changed for a round ({held})"
    return ""
