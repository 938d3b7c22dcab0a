"""Model for dialogues: scripted debaters who disagree, and an extractor that detects it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.graph.debate import build_graph
from moot.models.registry import Models
from moot.runtime.environment import Environment
from tests.support.fakes import JUDGE_REPLY, NOW

STATEMENTS = (
    "Night trains carry more freight than barges",
    "The harbour levy falls on poor households",
    "Dredging poisons the oyster beds",
)
CLAIM_LINE = re.compile(r"^- (p\d+): ([^|\n]+?)(?: \||$)", re.M)
MESSAGE_HEADING = re.compile(r"^(?P<name>.+) \[(?P<id>m\d{6})\]:.* <<[a-z]{6}\n", re.M)

THREAD: Any = {"configurable": {"thread_id": "0d5a4b10-93cb-4d0c-9e26-41ad52b0c15c"}}
TOPIC = "Should freight leave the harbour? Night trains, barges, levy and dredging are in dispute."


def scripted_debaters(number: int, **data: Any) -> DebateConfig:
    """Return a dialogue of two to four personas on two aspects. With `flips` one has a flip condition."""
    people = [
        {
            "name": "Ada Quay",
            "id": "ada",
            "role": "harbour pilot",
            "persona": {"What is at stake for you": "her licence"},
            "flip_conditions": ["a winter without delays"] if data.pop("flips", True) else [],
            "reference_documents": [
                {"name": "logbook", "text": "Night trains were late on nine days. Barges never were."}
            ],
        },
        {
            "name": "Bob",
            "stance": "for the railway",
            "persona": {"Your voice": "dry", "What counts as knowledge for you": "timetables"},
        },
        {"name": "Cyd", "persona": "You are patient. You accept measured things only."},
        {"name": "Dan", "persona": {"How far ahead you look": "thirty years"}},
    ]
    return DebateConfig.model_validate(
        {
            "protocol": "dialogue",
            "debaters": people[:number],
            "dialogue": {"aspects": ["freight", "who pays"], **data.pop("dialogue", {})},
            "judge": {"enabled": False},
            "blackboard": {
                "extraction": "llm",
                "model": "personas",
                "verify_changes": False,
                **data.pop("blackboard", {}),
            },
            **data,
        }
    )


def _last_words(call: ModelCall, name: str) -> dict[str, str]:
    """Return the id and the first words of a debater's last message in a prompt."""
    texts = [message["content"] for message in call.messages if message["content"].startswith(f"{name} [")]
    heading, _, text = texts[-1].partition("\n")
    return {"message_id": heading.partition("[")[2].partition("]")[0], "quote": text.partition(" (")[0]}


@dataclass
class ScriptedDebaters:
    """Model that answers every call of a dialogue, with claims on which chosen debaters disagree."""

    disputes: Mapping[str, tuple[tuple[str, str, str], ...]] = field(default_factory=dict)
    """By phase: speaker, opponent and statement of each dispute."""
    resolved: frozenset[str] = frozenset()
    """Statements on which a crux room reaches agreement."""
    fail_at: int = 0
    """Number of the call that fails as if the process had died, 0 for none."""
    broken: frozenset[str] = frozenset()
    """Purposes whose calls always fail."""
    calls: list[ModelCall] = field(default_factory=list)
    peak: int = 0
    """Highest number of concurrent calls."""
    _running: int = 0

    async def complete(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        """Answer a call after the other calls of its batch have begun."""
        self.calls.append(call)
        if self.fail_at and len(self.calls) == self.fail_at:
            raise ConnectionAbortedError("the process dies here")
        self._running += 1
        self.peak = max(self.peak, self._running)
        await asyncio.sleep(0.002)
        self._running -= 1
        return self.reply(call)

    def reply(self, call: ModelCall) -> Reply:
        """Return the reply to a call. It depends only on the call."""
        usage: Any = {"prompt_tokens": call.prompt_tokens, "completion_tokens": 10}
        if call.purpose in self.broken:
            return Reply(error="out of order", model=call.model)
        if call.schema is None:
            return Reply(text=self._message(call), model=call.model, usage=usage)
        makers: dict[str, Any] = {
            "ExtractedClaims": self._extracted_claims,
            "QuotationChecks": lambda _: {"checks": []},
            "CruxFinding": self._finding,
            "Reflections": self._reflections,
            "Aspects": lambda _: {"reasoning": "", "aspects": ["freight", "who pays", "freight"]},
            "Nomination": lambda _: {"reasoning": "", "next_speaker": "Bob", "instruction": "Answer."},
        }
        data = makers.get(call.schema.__name__, lambda _: dict(JUDGE_REPLY))(call)
        return Reply(data=data, model=call.model, usage=usage)

    def environment(self) -> Environment:
        """Return an environment with this model and a fixed time."""
        return Environment(complete=self.complete, clock=lambda: NOW)

    def turns_in_phase(self, phase: str) -> list[ModelCall]:
        """Return the calls of the turns in a phase."""
        return [call for call in self.calls if call.purpose == "turn" and call.hints["phase"] == phase]

    def _message(self, call: ModelCall) -> str:
        return f"{call.hints['speaker']} speaks in the phase {call.hints['phase']} ({call.digest[:6]})."

    def _extracted_claims(self, call: ModelCall) -> dict[str, Any]:
        headings = [MESSAGE_HEADING.match(message["content"]) for message in call.messages[1:]]
        messages = [(match["name"], match["id"], match.string) for match in headings if match]
        known = dict(CLAIM_LINE.findall(call.messages[0]["content"]))
        events = [event for item in messages for event in self._events(*item, messages, known)]
        claims = [{"ref": f"n{n}", "text": text} for n, text in enumerate(STATEMENTS, 1)]
        proof = [
            {"message_id": key, "kind": "figure", "quote": f"{name} speaks", "claim": ""}
            for name, key, _ in messages
        ]
        empty = ("challenges", "questions", "answers", "gaps", "same", "retractions")
        lists: dict[str, Any] = {name: [] for name in empty}
        return {"reasoning": "read", "claims": claims, "events": events, "evidence": proof, **lists}

    def _events(
        self,
        name: str,
        message_id: str,
        text: str,
        messages: Sequence[tuple[str, str, str]],
        known: Mapping[str, str],
    ) -> list[dict[str, Any]]:
        """Return the stances of a speaker: on the main question, and in the disputes of the phase."""
        phase = text.split(" speaks in the phase ")[-1].split(" ")[0]
        base = {"condition": "", "ground": False, "confidence": 0.9}
        stance = "denies" if phase == "closing" else "asserts"
        events = [
            {
                "message_id": message_id,
                "claim": "p000",
                "kind": stance,
                "quote": f"{name} speaks in the phase {phase}",
                **base,
            }
        ]
        for speaker, opponent, statement in self.disputes.get(phase, ()):
            about = next(
                (key for key, words in known.items() if words == statement),
                f"n{STATEMENTS.index(statement) + 1}",
            )
            for debater, kind in ((speaker, "asserts"), (opponent, "denies")):
                if debater == name:
                    quote = f"{name} speaks in the phase {phase}"
                    events.append(
                        {"message_id": message_id, "claim": about, "kind": kind, "quote": quote, **base}
                    )
        return events

    def _finding(self, call: ModelCall) -> dict[str, Any]:
        prompt = call.messages[0]["content"]
        claim = next((text for text in STATEMENTS if text in prompt), "")
        done = any("speaks in the phase crux-steelman" in message["content"] for message in call.messages)
        settled = claim in self.resolved and done
        answers = ("yes", "yes" if settled else "no")
        return {
            "reasoning": "weighed",
            "question": f"{claim}?",
            "sides": [
                {
                    "debater": who,
                    "reasoning": f"{who} says so",
                    "answer": answer,
                    "falsifier": "a count",
                    "now": "asserts" if answer == "yes" else "denies",
                    **_last_words(call, who),
                }
                for who, answer in zip(call.hints["debaters"], answers, strict=True)
            ],
            "type": "evidence",
            "diagnosis": "They trust different counts.",
            "resolved": settled,
            "resolution": "Both accept the count." if settled else "Count for one winter.",
        }

    def _reflections(self, call: ModelCall) -> dict[str, Any]:
        return {
            "reasoning": "seen",
            "reflections": [
                {
                    "content": "Ada and Bob talk about different years.",
                    "kind": "pattern",
                    "about": ["ada", "Bob", "nobody"],
                    "message_ids": ["m000001", "m999999"],
                    "importance": 8,
                }
            ],
        }


def room_messages(transcript: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the phases of the messages of each crux room, in order."""
    rooms: dict[str, list[str]] = {}
    for entry in transcript:
        if entry["room"]:
            rooms.setdefault(entry["room"], []).append(entry["phase"])
    return rooms


def run_scripted_debate(config: DebateConfig, model: ScriptedDebaters) -> dict[str, Any]:
    """Run a debate on `TOPIC`, and return its last state."""
    graph: Any = build_graph(InMemorySaver(), environment=model.environment())
    graph.invoke({"topic": TOPIC}, THREAD, context=config)
    values: dict[str, Any] = graph.get_state(THREAD).values
    return values
