"""Facts that a model's replies and errors show: its context size, its tokenizer, and what it refuses."""

import math

from moot.calls.model_calls import ModelCall
from moot.models import error_kinds, failures
from moot.state.entries import EntryUsage, ModelFacts

LEAST_TOKENS = 1_000
"""Minimum size of a prompt, in tokens by Moot's count, from which a ratio is learned. In shorter prompts, the
constant tokens of a chat template would dominate."""
OVERHEAD_TOKENS = 50
"""Tokens that a server may add to every prompt, such as a default system message. They are not part of the
ratio. In the shortest prompt that teaches a ratio, they make a difference of one `RATIO_STEP`."""
MAX_RATIO = 4.0
"""Highest ratio that is believed. SmolLM2 has 2.87 in Russian."""
RATIO_STEP = 0.05
"""Ratios are rounded up to a multiple of this number, so that budgets, and with them the prefixes of prompts,
seldom change."""
CUT_SHARE = 0.5
"""Share of the sent tokens up to which a server has cut the prompt. SmolLM2 and Gemma counted 1.08 tokens or
more for each of Moot's, and a server that cut a prompt counted 0.44."""
LEAST_REPLY = 64
"""Minimum number of tokens left for a reply. With fewer, the server is left to refuse the request."""


def facts_of_usage(call: ModelCall, usage: EntryUsage) -> ModelFacts:
    """Return what the reported usage of a call shows about the model's tokenizer, or `{}`."""
    counted, real = call.prompt_tokens, usage["prompt_tokens"]
    has_schema = call.schema is not None and not (call.prompt and "schema" in call.prompt.sections)
    if counted < LEAST_TOKENS or call.tools or has_schema:  # only servers count tools and schemas
        return {}
    ratio = (real - OVERHEAD_TOKENS) / counted
    return {"ratio": _rounded(ratio)} if ratio > 1 else {}


def _rounded(ratio: float) -> float:
    return round(math.ceil(min(MAX_RATIO, ratio) / RATIO_STEP) * RATIO_STEP, 2)


def cut_words(call: ModelCall, usage: EntryUsage) -> str:
    """Describe that the server cut a prompt without an error, or return `""` if it did not."""
    schema = call.prompt.sections.get("schema", 0) if call.prompt else 0
    counted, real = call.prompt_tokens - schema, usage["prompt_tokens"]
    if counted < LEAST_TOKENS or usage.get("cached_tokens") or real > CUT_SHARE * counted:
        return ""
    return (
        f"the server counted {real:,} of about {counted:,} prompt tokens, so it probably cut the prompt: "
        f"raise its context size, or set models.{call.model}.context_size"
    )


def facts_of_change(change: error_kinds.Change, known: ModelFacts) -> ModelFacts:
    """Return the facts that a refused part of a request shows, or `{}` if they are known already."""
    if change.settings == {"merge_roles": True} and known.get("settings", {}).get("merge_roles"):
        change = error_kinds.WITHOUT_SYSTEM_ROLE  # some templates count the system message as a turn
    settings = {key: value for key, value in change.settings.items() if key != "max_reply"}
    facts: ModelFacts = {"told": [change.words]}
    if settings.items() - known.get("settings", {}).items():
        facts["settings"] = settings
    limit = change.settings.get("max_reply", 0)
    if limit and limit < known.get("max_reply", math.inf):
        facts["max_reply"] = limit
    return facts if len(facts) > 1 else {}


def facts_of_overflow(
    failure: failures.Failure, call: ModelCall, max_tokens: int, known: ModelFacts
) -> ModelFacts:
    """Return the context size that a refused prompt shows, stated by the server or estimated.

    If the size is known already, the server counts more tokens than expected, so the ratio is learned too.
    """
    if failure.overflow is None:
        return {}
    excess = failure.excess_tokens(call.prompt_tokens, max_tokens)
    estimate = int((call.prompt_tokens - excess) * known.get("ratio", 1.0)) + max_tokens
    limit, counted = failure.overflow.limit, max(1, call.prompt_tokens)
    facts: ModelFacts = {"limit": limit if 0 < limit < counted * MAX_RATIO + max_tokens else estimate}
    if facts["limit"] >= known.get("limit", math.inf) and failure.overflow.prompt > counted:
        facts["ratio"] = _rounded(failure.overflow.prompt / counted)
    return facts


def reply_limit(call: ModelCall, max_tokens: int, context_size: int | None, facts: ModelFacts) -> int:
    """Return the maximum number of reply tokens that fit into the model's context and its server's limit."""
    limit = min(max_tokens, facts.get("max_reply", max_tokens))
    real = math.ceil(call.prompt_tokens * facts.get("ratio", 1.0))
    # A reply that fills the rest would be refused if the server counts more than expected. SmolLM2 and Gemma
    # count up to 1.18 tokens for each of Moot's in English, which a quarter covers until a ratio is learned.
    if "limit" in facts:
        real += real // 4 + OVERHEAD_TOKENS
    free = (context_size or 0) - real
    return min(limit, free) if context_size and free >= LEAST_REPLY else limit
