"""Kinds of errors that model servers report, recognized by one table of codes and texts.

The rows of `KINDS` are tried in order, and the first that fits decides. Servers reword their texts often, so
a pattern describes what an error says, not how one server says it. `tests/unit/test_error_kinds.py` holds the
labelled error bodies on which the table is measured.
"""

import re
from dataclasses import dataclass
from typing import Literal

from moot.models.error_body import DURATION, ErrorBody, duration_s
from moot.state.entries import JsonObject

ErrorKind = Literal["parameter", "overflow", "filter", "quota", "loading", "later", "model", "key", "other"]


@dataclass(frozen=True)
class Rule:
    """Row of the table: an error fits if its code is one of `codes`, or `text` matches its text or a code.

    A code such as `context_length_exceeded` is read as words.
    """

    kind: ErrorKind
    codes: frozenset[str] = frozenset()
    text: str = ""
    statuses: frozenset[int | None] = frozenset()
    """HTTP statuses for which the text counts. Empty: all statuses."""
    unless: str = ""
    """Pattern of texts that do not fit in spite of `text`."""


def _codes(names: str) -> frozenset[str]:
    return frozenset(names.split())


_LENGTH = r"(?:context|prompt|input|inputs|messages?|tokens?|request|sequence|conversation|history)"
_TOO_LONG = (
    rf"\b{_LENGTH}\b[^.;]*?\b(?:too (?:long|large|many|big)|overflow(?:s|ed)?)\b"
    rf"|\btoo (?:many|long) (?:input |prompt )?tokens\b"
    r"|(?:\b|_)(?:context|prompt|inputs?|messages?|tokens?|sequence|model)(?:\b|_)[^;]*?\b(?:exceed\w*"
    r"|larger than|longer than|greater than|over the|beyond|surpass\w*|above|must be (?:<=|less than"
    r"|at most))[^;]*?\b(?:context|length|window|maximum|max|limit|size|allowed|budget|max_\w+|n_ctx"
    r"|\d{3,})\b|(?:输入|上下文|提示|消息|token)[^。]{0,20}(?:过长|超长|超过|超出|超限)|\bn_keep\b"
    rf"|\bexceed\w*[^;]*?\b(?:context|prompt|input|token|max|n_ctx)\b[^;]*?\b(?:length|window|size|limit|n_ctx)\b"
    r"|\b(?:maximum|max)\b[^.;]*?\b(?:context|prompt|input|sequence)\b[^.;]*?\b(?:length|window|size)\b is\b"
    r"|\bcontext (?:length|window|size)\b[^;]*?\b(?:not enough|insufficient|too small|full|reached|exceeded)"
    r"|\btokens? limit (?:reached|exceeded)\b|\bcontext the overflows\b|\brange of input length\b"
    r"|\breduce (?:the|your) (?:length|size) of (?:the|your) (?:messages|prompt|input)"
    r"|\brequest (?:entity )?too large\b|\b(?:input|prompt)\b[^.;]*?\bdoes not fit\b"
)
_RATE = (
    r"per (?:minute|min|second|hour|day|request window)|\brate.?limit|\brequests?/|\bquota|\btpm\b|\brpm\b"
)

KINDS: tuple[Rule, ...] = (
    Rule(
        "quota",
        _codes(
            "insufficient_quota billing_hard_limit_reached exceeded_current_quota_error Arrearage 1113 "
            "billing_not_active"
        ),
        r"insufficient (?:account )?(?:balance|credit|quota|funds)|out of credits"
        r"|credit balance (?:is )?too low|(?:all|purchase) (?:available|more) credits|spending limit"
        r"|(?:check your plan and billing|billing details)|account (?:is )?(?:in arrears|overdue|suspended)"
        r"|free-models-per-day|exceeded your monthly|payment required",
        unless=r"(?:retry|try again) in \d",
    ),
    Rule(
        "filter",
        _codes("ResponsibleAIPolicyViolation 1301"),
        r"content (?:exists )?risk|content.{0,3}(?:filter|moderat)|content (?:safety|management policy)"
        r"|safety violation|inspection failed|inappropriate content|flagged (?:for|as|by|due)\b"
        r"|violat\w+ (?:our |the |its )?(?:usage|content|safety|acceptable|policy)|(?:usage|content|safety"
        r"|moderation) (?:policy|policies|guidelines) violation|(?:unsafe|sensitive|harmful|prohibited"
        r"|illegal) (?:or \w+ )?(?:content|information)|for safety reasons|(?:blocked|rejected|refused"
        r"|filtered|intervened)\b[^.;]*\b(?:safety|moderation|policy|guardrail|content)|\b(?:safety"
        r"|moderation|guardrail)\w*\b[^.;]*\b(?:blocked|rejected|refused|intervened|triggered|failed)"
        r"|(?:prompt|input|output|response|content) (?:was |is )?(?:blocked|flagged|(?:new_)?sensitive)"
        r"|high risk\b|PROHIBITED.CONTENT|cyber policy|不安全|敏感|违规|违法",
        frozenset({None, 200, 400, 403, 421, 422, 451, 500}),
    ),
    Rule(
        "overflow",
        _codes("string_above_max_length 1261 3051"),
        _TOO_LONG,
        frozenset({None, 200, 400, 413, 422, 429, 500, 503}),
        unless=rf"{_RATE}|\d images|file|upload|connection|concurren",
    ),
    # A single request above a limit per minute never passes, however long the wait.
    Rule("overflow", text=r"request too large", statuses=frozenset({400, 413, 429})),
    Rule("overflow", text=r"", statuses=frozenset({413})),
    Rule(
        "loading",
        _codes("unavailable_error"),
        r"\bloading\b[^.;]*\bmodel\b|\bmodel\b[^.;]*\b(?:loading|being loaded|warming up|starting"
        r"|not (?:yet )?ready"
        r"|scaling up|cold start)|\b(?:server|instance|deployment) is (?:starting|warming|scaling)",
        frozenset({None, 409, 425, 429, 500, 502, 503}),
    ),
    Rule(
        "key",
        _codes("authentication_error invalid_authentication_error 1000 1002"),
        r"(?:invalid|incorrect|missing|no|bad|expired) (?:api |access |auth\w* )?(?:key|token|credential)s?\b"
        r"|\bkey (?:is )?(?:not valid|invalid|incorrect|expired)|unauthori[sz]ed",
        frozenset({400, 401, 403}),
        unless=r"\btokens\b",
    ),
    Rule(
        "model",
        _codes("1211"),
        r"\bmodels?\b[^.;]*\b(?:not (?:found|exist|available|supported)|does not exist|doesn't exist|unknown"
        r"|decommissioned|retired)|(?:no such|unknown|invalid|not a valid) model\b|try pulling it",
        frozenset({400, 404, 422}),
    ),
    Rule(
        "later",
        _codes("overloaded_error rate_limit_exceeded rate_limit_error engine_overloaded_error 1302 1305"),
        r"please (?:re)?try\b|(?:try|retry|again|wait)\b[^.;]*\b(?:later|again|moment|shortly|in \d|after \d)"
        r"|overload|at capacity|temporar|unavailable|timed? ?out|too many (?:requests|concurrent)|rate limit"
        r"|busy|throttl|upstream|server (?:is )?(?:error|busy)|disconnected|internal (?:server )?error"
        r"|\bunloaded\b|\bcrashed\b|operation cancell?ed|channel error",  # LM Studio, with status 400
    ),
)

RETRYABLE = frozenset({408, 409, 424, 425, 429, 499})
"""HTTP status codes below 500 for which a call is retried. 424: a service behind the server failed. 499: a
gateway closed the request."""


def kind_of(body: ErrorBody, status: int | None) -> ErrorKind:
    """Return the kind of an error. Refused parameters come first: their texts also mention limits."""
    if _NEGATIVE.search(body.text):
        return "overflow"
    if status in (None, 400, 402, 422, 500, 501) and refused_parameter(body) is not None:
        return "parameter"
    if status in (None, 400, 413, 422, 429, 500) and _is_over_its_limit(body):
        return "overflow"
    if status in (400, 404, 422) and re.search(
        r"response_format|json_schema|requested parameters", body.text
    ):
        return "other"  # the method of structured output
    return next((rule.kind for rule in KINDS if _fits(rule, body, status)), "other")


def _fits(rule: Rule, body: ErrorBody, status: int | None) -> bool:
    is_later = rule.kind == "later"
    if rule.codes & set(body.codes):
        return not (is_later and status is not None and 400 <= status < 500 and status != 429)
    codes = [re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", code) for code in body.codes]
    if rule.text and not is_later and any(re.search(rule.text, code, re.IGNORECASE) for code in codes):
        return True
    if (rule.statuses and status not in rule.statuses) or not (rule.text or rule.statuses):
        return False
    if rule.unless and re.search(rule.unless, body.text, re.IGNORECASE):
        return False
    return re.search(rule.text, body.text, re.IGNORECASE) is not None


@dataclass(frozen=True)
class Overflow:
    """Token counts that a context overflow states. 0: not stated."""

    limit: int = 0
    """Size of the model's context, or of its longest prompt."""
    prompt: int = 0
    total: int = 0
    """Tokens of prompt and reply together."""
    reply: int = 0
    """Maximum tokens of the reply, as requested."""
    excess: int = 0
    """Tokens by which the request is too long, if the server states this number itself."""

    def excess_tokens(self, own_tokens: int, max_tokens: int) -> int:
        """Return how many of its `own_tokens`, by Moot's count, a prompt must lose after this error.

        Half of the prompt, if the server states no usable numbers.
        """
        reply = self.reply or max_tokens
        real = self.prompt or max(self.total - reply, own_tokens)
        # Most servers count the reply into the context. One that does not gets a prompt of half its
        # limit or more.
        excess = self.excess or (real - max(self.limit - reply, self.limit // 2) if self.limit else 0)
        # The server's tokenizer counts pieces of a text unlike Moot's, so an eighth is added as a margin.
        own_excess = (excess + excess // 8) * own_tokens // max(real, 1) + 16
        return own_excess if excess > 0 and own_excess < own_tokens else own_tokens // 2


_NUMBER = re.compile(r"(?<![\w.\-])(\d{1,3}(?:,\d{3})+|\d{2,9}|\d{1,4}[kK])(?![\w]|\.\d)")
_SUM = re.compile(
    r"(\d[\d,]{0,14})\s*+(?:\+\s*+(\d[\d,]{0,14})\s*+)?(?:>|exceeds)\s*+(\d[\d,]{0,14})(?!\s*-)"
)
_NEGATIVE = re.compile(r"max_(?:[a-z]{1,12}_)?tokens\b.{0,60}?(?:got|value|=|\()\s?-(\d{1,9})", re.IGNORECASE)
"""Number of reply tokens that became negative, because the prompt alone is longer than the context."""
_RANGE = re.compile(r"\[\s*\d+\s*,\s*(\d[\d,]*)\s*\]")
_AFTER = (
    (
        "reply",
        r"(?:output|in (?:the|your) (?:output|completion)|(?:for|in) the (?:completion|reply|output)"
        r"|completion|generated|draft|`?'?max_(?:new|completion|output)?_?tokens)",
    ),
    (
        "prompt",
        r"(?:(?:of )?(?:text )?(?:input|prompt)|`?'?inputs|(?:in|from) (?:the"
        r"|your) (?:input )?(?:messages|prompt|input)|(?<=tokens )(?:were )?(?:given|sent|received))",
    ),
    ("limit", r"(?:>=?\W*)?(?:maximum|max\b|limit|allowed)"),
)
_BEFORE = (
    ("excess", r"\bby\W*(?:about|around|approximately)?\W*$"),
    ("total", r"\brequested\b|\btotal(?: of)?\b"),
    (
        "prompt",
        r"\b(?:prompt(?:_\w+)?|inputs?|messages|request|resulted in|contains|current length|first|given|count"
        r"|has|have|sent|got|received|provided|length of your)\b",
    ),
    ("reply", r"\bmax_(?:new_|completion_|output_)?tokens\b"),
    (
        "limit",
        r"\bcontext\W{0,3}$|\bmax(?:imum|\.)?(?: (?:allowed|number of|total|model|prompt|input|context"
        r"|sequence|tokens?|length|size|window|supported|configured))*\b|\blimit(?:ed)?\b"
        r"|\bcontext (?:length|size|window)\b|\ballowed\b|\bat most\b|\bup to\b|\bonly\b|\bmax_\w*(?:len\w*"
        r"|ctx|context|size)\b|\bn_ctx\b|\b(?:less|fewer) than\b|\bcapacity\b|\bsupports?\b|\baccepts?\b"
        r"|\btakes?\b|\bthreshold\b|<=|≤|>|\bexceeds?\b|\b(?:longer|larger|greater) than\b",
    ),
)
_PROMPT_NAMES = ("n_prompt_tokens", "prompt_tokens", "input_tokens", "num_prompt_tokens")
_LIMIT_NAMES = (
    "n_ctx",
    "max_model_len",
    "context_length",
    "max_context_length",
    "max_tokens_allowed",
    "limit",
)


def overflow_of(body: ErrorBody) -> Overflow:
    """Read the token counts of a context overflow by the words around each number."""
    fields = {
        "prompt": next((int(body.numbers[name]) for name in _PROMPT_NAMES if body.numbers.get(name)), 0),
        "limit": next((int(body.numbers[name]) for name in _LIMIT_NAMES if body.numbers.get(name)), 0),
    }
    counts: dict[str, int] = {name: number for name, number in fields.items() if number}
    text = body.text
    if arithmetic := _SUM.search(text):
        prompt, reply, limit = (int((number or "0").replace(",", "")) for number in arithmetic.groups())
        return Overflow(limit, prompt, prompt + reply, reply)
    if negative := _NEGATIVE.search(text):
        return Overflow(excess=int(negative[1]))
    if interval := _RANGE.search(text):
        counts.setdefault("limit", int(interval[1].replace(",", "")))
        text = text.replace(interval[0], "")
    matches, end = list(_NUMBER.finditer(text)), 0
    for place, match in enumerate(matches):
        until = matches[place + 1].start() if place + 1 < len(matches) else len(text)
        before, end = text[end : match.start()][-120:], match.end()
        role = _role(before, text[match.end() : until])
        if role:
            digits, scale = match[1].rstrip("kK").replace(",", ""), 1000 if match[1][-1] in "kK" else 1
            counts.setdefault(role, int(digits) * scale)
    return Overflow(**counts)


def _is_over_its_limit(body: ErrorBody) -> bool:
    """Return True if an error with unknown wording states more tokens than its own limit."""
    if not re.search(r"tokens?\b|context|prompt|\binputs?\b|seq", body.text, re.IGNORECASE):
        return False
    if re.search(rf"{_RATE}|image|file", body.text, re.IGNORECASE):
        return False
    counts = overflow_of(body)
    return 0 < counts.limit < max(counts.prompt + counts.reply, counts.total)


def _role(before: str, after: str) -> str:
    """Return what a number counts, by the words that follow it, or else by the nearest words before it."""
    for role, words in _AFTER:
        if re.match(rf"[^\w+]*(?:tokens?\W+)?(?:as )?{words}", after, re.IGNORECASE):
            return role
    role, nearest = "", -1
    for name, words in _BEFORE:
        for cue in re.finditer(words, before, re.IGNORECASE):
            if cue.end() > nearest:
                role, nearest = name, cue.end()
    return role


@dataclass(frozen=True)
class Change:
    """Change of later requests to a model that refused a part of a request."""

    settings: JsonObject
    """Fields of `ModelSettings` that change."""
    words: str
    """What changes, as a user reads it."""


_REFUSES = (
    r"(?:not (?:be )?(?:support\w*|allow\w*|permitted|recogni[sz]ed|implemented|available|accepted|enabled)"
    r"|unsupported|un(?:recogni[sz]ed|known)|unexpected|extra (?:inputs|fields|arguments)|cannot find field"
    r"|invalid|doesn'?t support|does not (?:support|accept)|additional propert|deprecated|only the default"
    r"|must (?:be|not)|is not|can only|no longer|forbidden|disallowed|may only|only \d|range\b|非法|不支持"
    r"|should be|cannot|too (?:large|high|big)|exceeds?|less than or equal|at most|verified)"
)
_UNKNOWN = (
    r"not (?:be )?(?:support\w*|allow\w*|permitted|recogni[sz]ed)|unsupported|un(?:recogni[sz]ed|known"
    r"|expected)|deprecated|extra (?:inputs|fields|arguments)|cannot find field|additional propert"
    r"|use [`'\"]?max_|does not support"
)


@dataclass(frozen=True)
class _Refusal:
    names: str
    """Pattern of the names of the request's field."""
    change: Change
    text: str = ""
    """Pattern that suffices without the field's name."""
    refuses: str = _REFUSES
    """Pattern of the words that refuse the field, searched in the whole text."""


WITHOUT_SYSTEM_ROLE = Change(
    {"system_role": False}, "the system message is sent as part of the first user message"
)
NOTHING = r"(?!)"
"""Pattern that matches no name."""

_REFUSALS = (
    _Refusal(
        r"system(?: role| message| prompt|_role)?s?|developer(?: role| message)",
        WITHOUT_SYSTEM_ROLE,
        r"system (?:role|message|prompt|instruction)s? (?:is |are )?not (?:supported|allowed)|only user(?:, "
        r"| and |/)assistant|(?:got|unknown|invalid|unexpected"
        r"|unsupported)(?: message)? role:? ?['\"`]?system|developer instruction is not enabled|(?:does not"
        r"|doesn'?t|cannot) (?:support|accept|handle)[^.;]*\bsystem (?:role|message|prompt|instruction)"
        r"|(?:system message|system) must be (?:at|the) (?:the )?(?:beginning|first|start)|(?:should"
        r"|must) be (?:one of )?\W{0,2}user\W{1,3}(?:or|and)?\W{0,2}assistant\b(?!.{0,40}system)"
        r"|roles? (?:must|should|can only) be[^.;]*\buser\b[^.;]*\bassistant\b[^.;]*(?:got"
        r"|received)[^.;]*\bsystem",
    ),
    _Refusal(
        NOTHING,
        Change({"merge_roles": True}, "consecutive messages of one role are sent as one message"),
        r"roles? must alternate|alternat\w+ (?:between )?[`'\"]?user|(?:consecutive|same role"
        r"|successive)[^.;]*\b(?:user|assistant|role|messages)|(?:two|multiple)[^.;]*\b(?:user|assistant"
        r"|role|messages)\b[^.;]*(?:not|cannot|must)|unexpected role \W?\w+\W? after|must alternate"
        r"|(?:expected|should)[^.;]*\balternat|(?:must|should) (?:end|start) with (?:a )?[`'\"]?user|prefill"
        r"|last message (?:must|should|role)|expected last role",
    ),
    _Refusal(
        r"stream_options|include_usage",
        Change({"stream_usage": False}, "token usage is not requested while replies stream"),
    ),
    _Refusal(r"stream(?:ing)?", Change({"stream": False}, "replies are not streamed")),
    _Refusal(r"temperature|temp", Change({"temperature": False}, "no temperature is sent")),
    _Refusal(r"seed|random_seed", Change({"seed": False}, "no seed is sent")),
    _Refusal(
        r"max_completion_tokens",
        Change({"max_tokens_field": "max_tokens"}, "`max_tokens` limits the reply"),
        refuses=_UNKNOWN,
    ),
    _Refusal(
        r"max_tokens",
        Change({"max_tokens_field": "max_completion_tokens"}, "`max_completion_tokens` limits the reply"),
        refuses=_UNKNOWN,
    ),
    _Refusal(
        r"name|(?:body\.)?messages?[\[.]\W*\d+\W*[\].]*\W*(?:\w+\.)?name",
        Change({"names": False}, "speakers' names stand in the text of messages"),
    ),
)
_METHOD = (
    r"requested parameters|response_format|json_schema|json_object|tool_choice|tools?|functions?|structured"
    r"|grammar|schema"
)
_NAMED = (
    r"(?:^|[\s:'\"])(?:{names}): |\b(?:{names})\s?参数"
    r"|\b(?:invalid|unsupported|unknown|unrecogni[sz]ed)\W{{1,3}}(?:{names})\b(?! ['\"])"
)
_QUOTED = (
    r"[`'\"“‘\[]\s*(?:body[.])?(?:{names})\s*[`'\"”’\]]|\b(?:parameter|argument|field|supplied"
    r"|property|option|key)s?:?\s*[`'\"]?(?:{names})\b"
)
_SPOKEN = (
    r"\b(?:{names})\b (?:parameter |field |option |values? )?(?:is|are|was|does|do|must|can"
    r"|cannot|should|may|has)\b"
)
_SUPPORT = (
    r"(?:support|accept|allow|recogni[sz]e|permit)\w*\b (?:the |a |any |custom )?(?:parameter "
    r"|field )?(?:{names})\b"
)
_VALUE = re.compile(
    r"(?:less than or equal to|at most|<=|≤|maximum(?: (?:value|of|is|allowed|tokens))*+|max(?: (?:of|is))?"
    r"|(?<!requested )up to|only afford|limit(?: (?:of|is))*+|between \d++ and"
    r"|range (?:is )?from \d++(?: \(inclusive\))? to|\[\s*+\d++\s*+,|lower than|cannot exceed"
    r"|must not exceed|exceeds? (?:the )?(?:\w++ ){0,4}(?:of )?)\W{0,20}(\d[\d,]{0,14})",
    re.IGNORECASE,
)


def refused_parameter(body: ErrorBody) -> Change | None:
    """Return how later requests must change after an error that refuses a part of the request.

    `None`: the error names no such part, or one that stays, such as the schema of a structured reply.
    """
    text = body.text
    if reply_limit := _reply_limit(body):
        return Change({"max_reply": reply_limit}, f"replies have at most {reply_limit:,} tokens")
    fields = [
        re.split(r"[.\[]", name)[-1].rstrip("]") if "name" not in name else name for name in body.fields
    ]
    for refusal in _REFUSALS:
        if refusal.text and re.search(refusal.text, text, re.IGNORECASE):
            return refusal.change
    if not re.search(_REFUSES, text, re.IGNORECASE) and not body.fields:
        return None
    for refusal in _REFUSALS:
        if any(re.fullmatch(refusal.names, name, re.IGNORECASE) for name in fields):
            return refusal.change
    mentions: list[tuple[int, Change]] = []
    for refusal in _REFUSALS:
        patterns = "|".join(
            pattern.format(names=refusal.names) for pattern in (_NAMED, _QUOTED, _SPOKEN, _SUPPORT)
        )
        mention = re.search(patterns, text, re.IGNORECASE)
        if mention and refusal.names != NOTHING and re.search(refusal.refuses, text, re.IGNORECASE):
            mentions.append((mention.start(), refusal.change))
    return min(mentions, key=lambda each: each[0])[1] if mentions else None


def _reply_limit(body: ErrorBody) -> int:
    """Return the longest reply that a server allows, if it refused a longer one."""
    name = r"max_(?:completion_|new_|output_)?tokens|maximum tokens|maxTokens|maxOutputTokens|num_predict"
    if not re.search(name, " ".join((body.text, *body.fields))):
        return 0
    if re.search(
        r"unsupported parameter|use [`'\"]?max_|\b(?:inputs?|prompt)\b[^;]*(?:\+|\band\b)|context limit:",
        body.text,
        re.IGNORECASE,
    ):
        return 0
    # vLLM: 8000 > 4096 - 300, Anthropic: max_tokens: 100000 > 8192
    if difference := re.search(r">\s*(\d+)\s*-\s*(\d+)|max_tokens: \d+ > (\d+)", body.text):
        return max(0, int(difference[1] or difference[3]) - int(difference[2] or 0))
    match = _VALUE.search(body.text)
    if match is None or (re.search(r"\b(?:prompt|input|messages)\b", body.text) and "context" in body.text):
        return 0
    return int(match[1].replace(",", ""))


def refuses_method(body: ErrorBody) -> bool:
    """Return True if an error names the structured output method of the request."""
    return re.search(rf"\b(?:{_METHOD})\b", f"{body.text} {' '.join(body.fields)}", re.IGNORECASE) is not None


_SPOKEN_WAIT = re.compile(
    rf"(?:again|retry|wait|back|available|resets?|reset)\w{{0,9}}\b[^.;\d]{{0,40}}?((?:{DURATION}\s*+)++)",
    re.IGNORECASE,
)


def stated_wait(body: ErrorBody) -> float | None:
    """Return the seconds that an error body asks to wait before a retry, or `None`."""
    for name in (
        "retry_after",
        "retryafter",
        "retry_after_seconds",
        "estimated_time",
        "retry_after_ms",
        "retrydelay",
    ):
        if (number := body.numbers.get(name)) is not None:
            return number * 0.001 if name.endswith("_ms") else number
    match = _SPOKEN_WAIT.search(body.text)
    return duration_s(match[1]) if match else None
