"""Stub model of a dry run, which records each call and makes replies of the requested length."""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, cycle, islice
from random import Random
from typing import Any, Literal, cast

from langchain_core.runnables import RunnableConfig
from pydantic import ValidationError

from moot.calls.model_calls import ModelCall, Purpose, Reply
from moot.claims.reflections import DISAGREEMENT
from moot.config import DebateConfig
from moot.models.offline import TEXT, smallest_instance
from moot.models.registry import Models
from moot.runtime.environment import Environment
from moot.state import claim_events, errors
from moot.state.entries import EntryUsage, JsonObject
from moot.text.tokens import TokenCounter

Scenario = Literal["agreeing", "disputing"]
"""Behaviour of the stub debaters in a dry run. `agreeing` needs the fewest model calls, and
`disputing` needs the most."""


@dataclass(frozen=True)
class PlannedCall:
    """Model call recorded in a dry run."""

    call: ModelCall
    batch: int
    """Number of the batch that contains this call. Calls in the same batch run at the same time."""
    round: int
    reply_tokens: int
    times: float = 1.0
    """Number of real calls that this simulated call stands for. It exceeds 1 in a shortened simulation."""

    @property
    def phase(self) -> str:
        """Name of the call's phase, or of the memory kind if the phase is named like the purpose."""
        phase = self.call.hints.get("phase", "")
        return phase if phase != self.call.purpose else self.call.memory_kind or phase

    @property
    def kind(self) -> tuple[Purpose, str]:
        """Purpose and debate phase of the model call."""
        return self.call.purpose, self.phase

    @property
    def prompt_limit(self) -> int:
        """Maximum number of tokens in the prompt of this call."""
        return max(self.call.prompt_tokens, self.call.prompt.budget if self.call.prompt else 0)

    @property
    def reply_limit(self) -> int:
        """Maximum number of tokens in the reply to this call."""
        return max(self.call.max_tokens, self.reply_tokens)


TOKENS_PER_WORD: Mapping[Scenario, float] = {"agreeing": 1.05, "disputing": 1.3}
"""Assumed number of reply tokens for each word that a prompt requests, keyed by scenario. Recorded debates
have 1.06 to 1.33."""
DEFAULT_WORDS = 150
"""Number of words in a stub reply if the prompt requests no particular length."""
REPLY_TOKENS: Mapping[str, int] = {
    "judge": 1_800,
    "extract": 1_200,
    "reflect": 220,
    "evaluate": 270,
    "clarify": 80,
    "moderate": 60,
    "decide": 150,
}
"""Assumed number of tokens in a structured reply, keyed by the purpose of the call. The first three values
are means of recorded debates."""
DEFAULT_REPLY_TOKENS = 100
"""Assumed number of tokens in a structured reply of any other purpose than in `REPLY_TOKENS`."""
MAX_BATCHES = 20_000
"""Maximum number of batches of calls in a dry run. A debate with more batches counts as endless."""
MAX_CLAIMS = 12
"""Maximum number of claims in one simulated extraction."""
CLAIM_QUOTE = "this measure stands or falls with the figures"
"""Phrase in simulated messages that simulated claims quote. Each simulated message of more than 25 tokens
contains it."""
_CLAIM_SENTENCE = f"In case {{number}} {CLAIM_QUOTE}."
_WORDS = re.compile(r"(?<!\d)(\d+) words\b")
_VOCABULARY = """
anchor answer autumn balance barrel basket bottle branch bridge bucket budget button cabin camera
candle canvas carpet castle cattle cement chapel circle coffee colour copper corner cotton county
cradle credit custom dealer debate desert detail dinner doctor donkey effort engine evening fabric
factor farmer fellow figure finger forest friend garden gather ginger glass guitar habit hammer
harbour harvest helmet insect island jacket journal jungle kettle kitchen ladder lawyer leader
leather lemon letter linen lumber machine market master matter meadow member message metal minute
mirror moment motion mountain museum needle notice number object office orange orchard oxygen palace
paper parcel parent parish pencil pepper petrol picture pillow planet pocket potato powder prison
profit quarter rabbit record region result ribbon river rocket saddle sailor salary sample season
second secret shadow shelter signal silver sister socket spider spring square stable station statue
stream street student summer supper surface symbol system tailor target teacher temple tenant
theatre thread ticket timber tongue travel tunnel turkey valley vessel village violin wagon weather
weekend whistle window winter wonder yellow
""".split()  # noqa: SIM905  # 160 words


Check = Callable[[], object]
"""Function called before each simulated model call. It can raise an error to end the dry run."""


def no_check() -> None:
    """Do nothing as the default check, so that the dry run continues."""


class EndlessDebate(errors.MootError):
    """Error raised if a simulated debate does not end within `MAX_BATCHES` batches of calls."""


@dataclass
class StubReplies:
    """Stub model that records all calls and returns texts of the requested length.

    The stub is the `complete` function of an `Environment`. A text reply has the number of words that the
    prompt asks for. A structured reply is the smallest object that the schema allows, except for the fields
    that decide how the debate continues.
    """

    scenario: Scenario
    config: DebateConfig
    check: Check = no_check
    planned: list[PlannedCall] = field(default_factory=list)
    _batch: int = 0
    _in_flight: int = 0
    _round: int = 0
    _texts: int = 0
    """Number of texts that this stub model has generated. It seeds the next text, so that all texts
    differ."""
    _heard: dict[str, int] = field(default_factory=dict)
    """Messages from which claims were extracted. The dictionary maps each message id to a number, which
    starts at 0."""
    _counter: TokenCounter | None = None

    async def __call__(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        """Return a stub reply to a model call, and record the call."""
        self.check()
        if not self._in_flight:
            self._batch += 1
            if self._batch > MAX_BATCHES:
                raise EndlessDebate(f"the debate did not end within {MAX_BATCHES} batches of model calls")
        self._in_flight += 1
        try:
            self._round = call.hints.get("round", self._round) if call.purpose == "turn" else self._round
            reply, tokens = self._reply(call)
            self.planned.append(PlannedCall(call, self._batch, self._round, tokens))
            await asyncio.sleep(0)  # lets the other calls of the batch start
        finally:
            self._in_flight -= 1
        return reply

    def _reply(self, call: ModelCall) -> tuple[Reply, int]:
        usage: EntryUsage = {"prompt_tokens": call.prompt_tokens, "completion_tokens": 0}
        if call.schema is None:
            # A debater's prompt states the length in its last message, a summarizer's in its first message.
            place = -1 if call.purpose == "turn" else 0
            prompt = call.messages[place]["content"]
            text = self.text(prompt, call.max_tokens)
            if '"Answer: "' in prompt:
                # Disputing debaters state answers in no known form, so that calls read and compare them.
                disputes = self.scenario == "disputing"
                text += "\nNo rule reads an answer here." if disputes else f"\nAnswer: {self._answer()}"
            tokens = self._count(text)
            usage["completion_tokens"] = tokens
            return Reply(text=text, model=call.model, usage=usage), tokens
        tokens = min(REPLY_TOKENS.get(call.purpose, DEFAULT_REPLY_TOKENS), call.max_tokens)
        usage["completion_tokens"] = tokens
        return Reply(data=self._data(call), model=call.model, usage=usage), tokens

    def _answer(self) -> str:
        """Return a simulated debater's answer to the question under debate."""
        options = self.config.options
        if options:
            return options[self._texts % len(options) if self.scenario == "disputing" else 0]
        return f"answer {self._texts}" if self.scenario == "disputing" else "the same answer"

    def _count(self, text: str) -> int:
        self._counter = self._counter or Environment().token_counter_for(self.config)
        return self._counter(text)

    def text(self, prompt: str, limit: int | None) -> str:
        """Return random text of about the length that the prompt requests, with at most `limit` tokens."""
        self._texts += 1
        word_counts = _WORDS.findall(prompt)
        tokens = (int(word_counts[-1]) if word_counts else DEFAULT_WORDS) * TOKENS_PER_WORD[self.scenario]
        target_tokens = min(int(tokens), limit or 1_000_000)
        dice = Random(self._texts)  # noqa: S311  # no secret
        vocabulary = dice.sample(_VOCABULARY, 40)
        sentences = [_CLAIM_SENTENCE.format(number=self._texts)] if target_tokens > 25 else []
        remaining = target_tokens - sum(map(_sentence_tokens, sentences))
        while remaining > 0:
            sentence = f"{' '.join(dice.choices(vocabulary, k=min(12, max(1, remaining - 1)))).capitalize()}."
            sentences.append(sentence)
            remaining -= _sentence_tokens(sentence)
        return " ".join(sentences)

    def _data(self, call: ModelCall) -> JsonObject:
        """Return a minimal structured reply that fits the schema and the scenario."""
        schema = cast(Any, call.schema)
        form = schema.model_json_schema()
        smallest = cast(JsonObject, smallest_instance(form))
        decisions = {key: value for key, value in self._decisions(call).items() if key in form["properties"]}
        try:
            return cast(JsonObject, schema.model_validate(smallest | decisions).model_dump(mode="json"))
        except ValidationError:
            return smallest  # a plug-in's schema uses one of these names with another type

    def _decisions(self, call: ModelCall) -> JsonObject:
        """Return values for the fields that steer the debate, such as `agreement`."""
        fields, disputes = cast(Any, call.schema).model_fields, self.scenario == "disputing"
        if {"claims", "events"} <= fields.keys():
            return self._dispute(call) if disputes else {}
        speakers = self.config.turn_order()
        aspects = fields["aspects"].json_schema_extra if "aspects" in fields else None
        max_aspects = cast(JsonObject, aspects or {}).get("maxItems", 1)
        return {
            "agreement": 0.0 if disputes else 1.0,
            "resolved": not disputes,
            "aspects": [
                f"aspect number {number}" for number in range(1, 1 + (max_aspects if disputes else 1))
            ],
            "questions": [f"What about {self.text('8 words', None)}?"] if disputes else [],
            "answer": self._answer(),
            # A test of the decision: the texts of the stub verdict are placeholders.
            "solution_markdown": TEXT,
            **({"fails": {"quotes": [TEXT], "problem": "It never ends."}} if disputes else {}),
            "next_speaker": speakers[len(self.planned) % len(speakers)],
        }

    def _dispute(self, call: ModelCall) -> JsonObject:
        """Return simulated claims that the debaters all dispute.

        One message asserts each claim, and another message denies it. After the first round, the debaters
        also change their position on the topic itself, which a further call may check.
        """
        claims, events = [], []
        for message in call.hints.get("message_ids", ()):
            is_first = self._heard.setdefault(message, len(self._heard)) < len(self.config.turn_order())
            kind = "asserts" if is_first else "denies"
            events.append(_event(message, claim_events.MAIN_QUESTION, kind))
        pairs = list(islice(combinations(call.hints.get("message_ids", ()), 2), MAX_CLAIMS))
        min_claims = 1 + self.config.blackboard.reflection_threshold // DISAGREEMENT
        claim_count = min(MAX_CLAIMS, max(len(pairs), min_claims))
        for number, (asserting_id, denying_id) in enumerate(islice(cycle(pairs), claim_count), 1):
            self._texts += 1
            claims.append({"ref": f"n{number}", "text": f"Measure {self._texts} saves the city money"})
            for message, kind in ((asserting_id, "asserts"), (denying_id, "denies")):
                events.append(_event(message, f"n{number}", kind))
        return {"claims": claims, "events": events}


def _event(message: str, claim: str, kind: str) -> JsonObject:
    """Return one event for a simulated claim."""
    return {
        "message_id": message,
        "claim": claim,
        "kind": kind,
        "quote": CLAIM_QUOTE,
        "condition": "",
        "ground": True,
        "confidence": 1.0,
    }


@lru_cache(maxsize=4096)
def _sentence_tokens(sentence: str) -> int:
    """Estimate the tokens in a sentence of a reply as 1.1 per word plus one."""
    return int(1.1 * len(sentence.split())) + 1
