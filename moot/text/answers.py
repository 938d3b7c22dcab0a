"""The final answer that a text states, and its comparison with options and with other answers.

Precision comes first: where a text has no certain answer, it has none here, and a model can be asked.
"""

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

EDGES = " \t\r\n.,;:!?\"'`*_()[]{}“”‘’«»„"
"""Characters around an answer that do not belong to it."""
MAX_ANSWER_CHARS = 100_000
"""Number of characters at the end of a text in which an answer is looked for."""
ANSWER_WORDS = 12
"""Maximum length of an answer, in words, as debaters are told. Longer ones are prose and not compared."""

_ANSWER = (
    r"(?:(?:the|my|our|final|correct|best|die|meine|endgültige|la|ma|mi|a|o|il|sua)\s+){0,3}"
    r"(?:answer|antwort|réponse|respuesta|risposta|resposta|ответ|答案|回答|答え)(?:\s+(?:finale?|definitiva))?"
)
_DECISION = (
    r"(?:(?:the|my|our|final|die|meine|la|ma|mi|a)\s+){0,3}"
    r"(?:decision|verdict|choice|vote|entscheidung|décision|decisión|decisione|decisão|решение)(?:\s+finale?)?"
)
_LEAD = r"^[ \t>*_#{\"'`•-]*+(?:\d+[.)]\s++[*_\"'`]*+|(?:so|thus|hence|therefore),?\s+)?"
_SIGN = (
    r"[ \t*_\"'`]*(?::|：|=|→|->|是|\b(?:is|remains|ist|bleibt|est|es|è|é)\b:?)[ \t*_]*(?P<answer>[^\n]*)$"
)
_LABELS = [re.compile(_LEAD + label + _SIGN, re.IGNORECASE | re.MULTILINE) for label in (_ANSWER, _DECISION)]
"""Lines with a label before the answer. A line with a label for answers counts before other lines."""
_HEADINGS = [
    re.compile(
        rf"^[ \t]*(?:#+[ \t]*|[*_]{{2}}){label}[:*_ \t]*\n\s*(?P<answer>[^\n]+)$",
        re.IGNORECASE | re.MULTILINE,
    )
    for label in (_ANSWER, _DECISION)
]
_MARKUP = (
    re.compile(r"<answer>(?P<answer>[^<]*)</answer>", re.IGNORECASE),
    re.compile(r"\\boxed\{(?P<answer>(?:[^{}]|\{[^{}]{0,500}\}){0,500})\}"),
    re.compile(r"^####[ \t]+(?P<answer>[^\n]*)\s*\Z", re.MULTILINE),
)
_SENTENCE = re.compile(
    r"(?:^|[.!?:]\s+|\n)(?:(?:so|therefore|thus|hence|overall|finally|in conclusion|in short|i think"
    r"|i believe),?\s+){0,2}(?:the|my|our)\s+(?:final\s+|correct\s+|best\s+|right\s+)?(?:answer"
    r"|choice)\s+(?:is|would be)\s*:?\s*(?P<answer>[^\n]+?)(?=[.!?](?:\s|$)|\n|$)",
    re.IGNORECASE,
)
_NO_ANSWER = re.compile(
    r"\W*(?:not|no longer|un\w+|that|still|probably|likely|what|whether|in|on|about)\b", re.IGNORECASE
)
_TEXT_COMMAND = re.compile(r"\\(?:text|mathrm|textbf|mathbf)\{([^{}]*)\}")
_CONFIDENCE = re.compile(
    r"^[\s>*_#-]*confidence[\s*_]*:[\s*_]*(\d{1,3}(?:\.\d+)?)\b[^\n]*$", re.IGNORECASE | re.MULTILINE
)
_BEFORE_OPTION = r"(?:(?:option|choice|answer|output|candidate)\s+)?"
_AFTER_OPTION = r"(?=\s*(?:$|[.,;:)\]—–-]|\((?!\w\))|because\b|since\b|weil\b|denn\b))"
_CURRENCIES = {
    "€": "eur",
    "euro": "eur",
    "euros": "eur",
    "$": "usd",
    "us$": "usd",
    "dollar": "usd",
    "dollars": "usd",
    "£": "gbp",
    "¥": "jpy",
    "percent": "%",
    "per cent": "%",
    "prozent": "%",
}
_UNIT = r"[^\W\d_]+(?:[ /][^\W\d_]+)?|[%‰°€£¥]|us\$|\$"
_AMOUNT = re.compile(
    rf"(?P<before>{_UNIT})?\s*(?P<number>[+-]?\d[\d.,'’ ]*)(?:/\s*(?P<parts>\d+))?\s*(?P<after>{_UNIT})?"
)


def stated_answer(text: str) -> str:
    """Return the answer that a text states, as written, or `""` if it states none.

    The last labelled line counts, such as `Answer: B` or `**Final answer:** no`, then markup for answers, and
    then a sentence such as "So the answer is B." Sentences that differ state no answer.
    """
    plain = unicodedata.normalize("NFKC", text[-MAX_ANSWER_CHARS:])
    patterns = (_LABELS[0], _HEADINGS[0], *_MARKUP, _LABELS[1], _HEADINGS[1])
    for pattern in patterns:
        if matches := list(pattern.finditer(plain)):
            # A label without an answer stands above its answer.
            lines = [matches[-1]["answer"], *plain[matches[-1].end() :].splitlines()]
            return next((_unboxed(line).strip() for line in lines if line.strip(EDGES + "#")), "")
    answers = [_unboxed(match["answer"]) for match in _SENTENCE.finditer(plain)]
    answers = [each for each in answers if len(each.split()) <= ANSWER_WORDS and not _NO_ANSWER.match(each)]
    return answers[-1].strip() if len({answer_key(each) for each in answers}) == 1 else ""


def stated_option(text: str, options: Sequence[str]) -> str:
    """Return the option that a text states as its answer, or `""` if it states none of them.

    Without options, it is any answer. Besides the forms of `stated_answer`, the last sentence may say that an
    option is better than the others.
    """
    answer = stated_answer(text)
    if answer or not options:
        return option_of(answer, options) if options else answer
    *_, last = re.split(r"(?<=[.!?])\s+|\n", text[-MAX_ANSWER_CHARS:].strip())
    hits = [option for option in options if re.fullmatch(_conclusion(option), last, re.IGNORECASE)]
    others = [option for option in options if option not in hits and _mentions(last, option)]
    return hits[0] if len(hits) == 1 and not others else ""


def _conclusion(option: str) -> str:
    # Measured on GPT-4's 200 explained choices of LLMBar: all are read, none wrongly.
    words = r"is\s+(?:the\s+)?(?:better|best|correct|right)\b[^,;]*"
    return rf"(?:[^\W\d]+,?\s+){{0,3}}[*_(]*{re.escape(option)}[*_)]*\s+{words}"


def _unboxed(answer: str) -> str:
    boxed = _MARKUP[1].search(answer) or _MARKUP[0].search(answer)
    return _TEXT_COMMAND.sub(r"\1", boxed["answer"] if boxed else answer).strip("$ ")


def parse_confidence(text: str) -> float | None:
    """Return the number in a text's last `Confidence:` line, or `None` if there is no such line."""
    matches: list[str] = _CONFIDENCE.findall(text)
    return min(100.0, float(matches[-1])) if matches else None


def answer_key(answer: str) -> str:
    """Return a form of an answer in which equal answers are equal.

    It has no case, markup, outer punctuation, character width or digit grouping. Amounts with one number and
    one unit have one form, so that `EUR 1.125`, `1.125 EUR` and `€1.125` are equal, and `1/2` equals `0.5`.
    """
    plain = " ".join(unicodedata.normalize("NFKC", answer.replace("½", "1/2")).casefold().split()).strip(
        EDGES
    )
    match = _AMOUNT.fullmatch(plain.replace("⁄", "/"))
    if match is None or (match["before"] and match["after"]):
        return plain
    number, unit = _decimal(match["number"], match["parts"]), match["before"] or match["after"] or ""
    if number is None:
        return plain
    figure = format(number.normalize(), "f")
    return " ".join(filter(None, (figure, _CURRENCIES.get(unit, unit))))


def _decimal(digits: str, parts: str | None) -> Decimal | None:
    plain = re.sub(r"(?<=\d)['’ ](?=\d{3}(?!\d))", "", digits.strip())
    if "," in plain and "." in plain:
        decimal = max(plain.rfind(","), plain.rfind("."))
        plain = re.sub(r"[.,]", "", plain[:decimal]) + "." + plain[decimal + 1 :]
    else:
        plain = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", plain).replace(",", ".")
        if plain.count(".") > 1:
            plain = plain.replace(".", "")
    try:
        number = Decimal(plain)
        return number / Decimal(parts) if parts and Decimal(parts) else number if not parts else None
    except InvalidOperation:
        return None


def option_of(answer: str, options: Sequence[str]) -> str:
    """Return the option that an answer names, or `""` if it names none or more than one.

    The option may be the whole answer, begin it, as in "B, because …", or end it, as in "option B".
    """
    key = answer_key(answer)
    if equal := [option for option in options if answer_key(option) == key]:
        return equal[0] if len(equal) == 1 else ""
    plain = " ".join(unicodedata.normalize("NFKC", answer).split()).strip(" *_`\"'“”$")
    plain = re.sub(r"[*_`“”\"]+", "", plain)
    hits = [option for option in options if _names(plain, option)]
    others = [option for option in options if option not in hits and _mentions(plain, option)]
    return hits[0] if len(hits) == 1 and not others else ""


def _names(plain: str, option: str) -> bool:
    flags, pattern = _option_pattern(option)
    start = rf"(?i:{_BEFORE_OPTION})[(\[]?{pattern}[)\]]?{_AFTER_OPTION}"
    end = rf".*\b(?i:option|choice|answer|is|choose|vote for)\s+[(\[]?{pattern}[)\]]?"
    end += r"(?:\W*|,?\s+(?:because|since|weil|denn)\b.*)"
    return bool(re.match(start, plain, flags) or re.fullmatch(end, plain, flags)) and not _NO_ANSWER.match(
        plain
    )


def _mentions(plain: str, option: str) -> bool:
    flags, pattern = _option_pattern(option)
    return bool(re.search(rf"(?<!\w){pattern}(?!\w)", plain, flags))


def _option_pattern(option: str) -> tuple[int, str]:
    bare = " ".join(unicodedata.normalize("NFKC", option).split())
    # A lone letter in lower case is a word of a sentence, such as the article "a".
    return (0, re.escape(bare.upper())) if len(bare) == 1 else (re.IGNORECASE, re.escape(bare))
