"""Count the tokens outside debaters' messages while today's code replays three recorded debates.

    python -m benchmarks.overhead [--samples FOLDER] [--json]

Debaters repeat their recorded messages. Structured replies are rebuilt from the recorded ones: an extraction
gets the recorded operations on the messages in its prompt, whenever it is made. Every call except the turns
counts with its messages, the JSON schema and the reply.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import PrivateAttr

from moot.api import open_debates
from moot.claims.model_extraction import CONTEXT_MARK
from moot.config import DebateConfig
from moot.models.offline import LocalModel, smallest_instance
from moot.prompts.request import sent_form
from moot.state.verdict import VERDICT_FIELDS
from moot.text.tokens import counter

SAMPLES = Path(__file__).resolve().parents[2] / "shared" / "samples" / "second-round"
MODEL = "replay"
WORDS_OF_A_MESSAGE = 120
"""Length of a message that the replay needs and the recording lacks."""
COUNT = counter("o200k_base")
_ID = re.compile(r"\[(m\d{6})\]")
_CLAIM = re.compile(r"^- (p[0-9]{3}): (.+?)(?: \| .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Recording:
    """One recorded debate: the requests that belong to it, and its settings."""

    file: str
    requests: Sequence[int]
    """Numbers of the requests on the way that was kept, where a debate was forked."""
    settings: Mapping[str, Any]
    target: int = 0
    """Wanted tokens outside messages for each message."""
    before: int = 0
    """Tokens outside messages for each message when the debate was recorded."""


RECORDINGS = {
    "council": Recording(
        "council-free-tier.jsonl",
        range(1, 24),
        {"protocol": "council", "rounds": 2},
        target=400,
        before=370,
    ),
    "dialogue": Recording(
        "dialogue-harbour.jsonl",
        [*range(1, 46), *range(63, 73), *range(77, 83)],
        {
            "protocol": "dialogue",
            "dialogue": {"aspects": ["what the pilot really showed", "who carries the risk and the cost"]},
        },
        target=1500,
        before=2600,
    ),
    "round-robin": Recording(
        "round-robin-motor.jsonl",
        [*range(1, 13), *range(14, 28)],
        {"protocol": "round-robin", "turns": 10},
        target=1500,
        before=3850,
    ),
}


@dataclass(frozen=True)
class StructureCost:
    """Cost of the calls outside the debaters' turns in one debate."""

    messages: int
    tokens: int
    """Tokens of all calls except the debaters' turns."""
    by_purpose: Mapping[str, int]
    calls: Mapping[str, int]

    @property
    def tokens_per_message(self) -> int:
        """Tokens outside messages for each message."""
        return round(self.tokens / max(1, self.messages))


class ReplayModel(LocalModel):
    """A model that repeats a recorded debate and counts the tokens of every call."""

    rows: list[dict[str, Any]]

    _messages: dict[tuple[str, str], deque[str]] = PrivateAttr(default_factory=dict)
    """Recorded messages, keyed by debater and by the partner in a crux room, `""` outside rooms."""
    _cards: dict[frozenset[str], dict[str, Any]] = PrivateAttr(default_factory=dict)
    """Last recorded crux card of each pair of debaters."""
    _texts: dict[str, deque[dict[str, Any]]] = PrivateAttr(default_factory=dict)
    _operations: list[tuple[str, dict[str, Any]]] = PrivateAttr(default_factory=list)
    _claims: dict[str, str] = PrivateAttr(default_factory=dict)
    _plain: deque[str] = PrivateAttr(default_factory=deque)
    _tokens: Counter[str] = PrivateAttr(default_factory=Counter)
    _calls: Counter[str] = PrivateAttr(default_factory=Counter)

    def model_post_init(self, context: Any, /) -> None:
        """Group the recorded replies by kind of request."""
        for number, row in enumerate(self.rows):
            system, last, reply = row["messages"][0]["content"], row["messages"][-1]["content"], row["reply"]
            name = re.search(r"You are (.+?)\.\n", last)
            schema = (row["response_format"] or {}).get("json_schema", {}).get("name")
            if schema == "StepMinutes":
                self._record_operations(system, json.loads(reply), number)
            elif schema == "CruxFinding":
                card = json.loads(reply)
                self._cards[frozenset(side["debater"] for side in card["sides"])] = card
            elif schema:
                self._texts.setdefault(schema, deque()).append(json.loads(reply))
            elif name and system.startswith(("You take part", "You sit on")):
                self._messages.setdefault((name[1], _partner(last)), deque()).append(reply)
            else:
                self._plain.append(reply)

    def _record_operations(self, system: str, reply: Mapping[str, Any], number: int) -> None:
        """Store each recorded operation with the texts of its claims in place of their ids."""
        known = dict(_CLAIM.findall(system)) | {each["ref"]: each["text"] for each in reply["propositions"]}
        for row in self.rows[number + 1 :]:  # a claim's id stands in the next ledger
            known |= {
                key: text for key, text in _CLAIM.findall(row["messages"][0]["content"]) if key not in known
            }
        for kind in ("events", "challenges", "questions", "answers", "evidence", "gaps"):
            for each in reply.get(kind, ()):
                row = {**each, "claim": known.get(each.get("proposition", ""), "")}
                if each.get("proposition") == "p000":
                    row["claim"] = "p000"
                self._operations.append((kind, row))

    @property
    def _llm_type(self) -> str:
        return "replay"

    def respond(self, messages: list[BaseMessage], **kwargs: Any) -> AIMessage:
        """Return the recorded reply, and count the call."""
        hints, schema = kwargs["hints"], kwargs.get("json_schema")
        purpose = str(hints.get("purpose") or hints["phase"])
        text = self._reply(messages, hints, schema)
        if purpose != "turn":
            asked = sum(4 + COUNT(message.text) for message in messages)
            asked += (
                COUNT(json.dumps(sent_form(schema), ensure_ascii=False, separators=(",", ":")))
                if schema
                else 0
            )
            self._tokens[purpose] += asked + COUNT(text)
            self._calls[purpose] += 1
        return AIMessage(text)

    def cost(self, messages: int) -> StructureCost:
        """Return the cost of the calls so far."""
        return StructureCost(messages, self._tokens.total(), dict(self._tokens), dict(self._calls))

    def _reply(
        self, messages: list[BaseMessage], hints: Mapping[str, Any], schema: dict[str, Any] | None
    ) -> str:
        if schema is None and hints.get("purpose") == "turn":
            queue = self._messages.get((hints["speaker"], _partner(messages[-1].text)))
            return queue.popleft() if queue else " ".join(["word"] * WORDS_OF_A_MESSAGE)
        if schema is None:
            return self._plain.popleft() if self._plain else " ".join(["word"] * WORDS_OF_A_MESSAGE)
        fields = schema["properties"]
        if "events" in fields:
            return json.dumps(self._extraction(messages, schema), ensure_ascii=False)
        if "winner" in fields:
            return json.dumps(self._verdict(hints, schema), ensure_ascii=False)
        if "checks" in fields:
            return json.dumps({"checks": self._checks("\n".join(message.text for message in messages))})
        if "sides" in fields:
            return json.dumps(self._card(messages, schema), ensure_ascii=False)
        if "reflections" in fields and (texts := self._texts.get("Reflections")):
            return json.dumps(texts.popleft(), ensure_ascii=False)
        return json.dumps(smallest_instance(schema))

    def _extraction(self, messages: list[BaseMessage], schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the recorded operations on the new messages of a prompt."""
        new = [m.text for m in messages[1:] if not m.text.startswith(CONTEXT_MARK)]
        shown = {key: text for text in new if (key := next(iter(_ID.findall(text)), ""))}
        ids = {text: key for key, text in _CLAIM.findall(messages[0].text)}
        refs: dict[str, str] = {}
        out: dict[str, Any] = {name: [] for name in schema["properties"]}
        out["reasoning"] = "Positions on the topic first, then the disputes in the order of the messages."
        for kind, row in self._operations:
            key = next((key for key, text in shown.items() if row["quote"] and row["quote"] in text), "")
            if not key or kind not in out or kind == "answers":
                continue
            claim = row["claim"]
            if claim and claim != "p000":
                claim = ids.get(claim) or refs.setdefault(claim, f"n{len(refs) + 1}")
            kept = {name: row[name] for name in row if name not in ("proposition", "claim")}
            out[kind].append({**kept, "message_id": key, "claim": claim})
        aspect = schema["$defs"]["New"]["properties"].get("aspect", {}).get("enum", [""])[0]
        out["claims"] = [{"ref": ref, "text": text, "aspect": aspect} for text, ref in refs.items()]
        return out

    def _card(self, messages: Sequence[BaseMessage], schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the recorded crux card of a room's two debaters, with the ids of today's messages."""
        text = json.dumps(schema)
        card = next(
            (card for pair, card in self._cards.items() if all(f'"{who}"' in text for who in pair)), None
        )
        if card is None:
            return cast("dict[str, Any]", smallest_instance(dict(schema)))
        shown = {key: m.text for m in messages if (key := next(iter(_ID.findall(m.text)), ""))}
        sides = []
        for side in card["sides"]:
            own = [key for key, text in shown.items() if side["debater"] in text.partition("]")[0].casefold()]
            quoted = [key for key in own if side["quote"] in shown[key]]
            sides.append({**side, "condition": "", "message_id": (quoted or own)[-1]})
        return {**card, "sides": sides}

    def _checks(self, prompt: str) -> list[dict[str, Any]]:
        """Return a verification that agrees with the recorded extraction."""
        why = "The author says this as an own view, and the words before it leave no doubt about it."
        checks = []
        for number, quote in re.findall(r"^(\d+)\. Quotation: (.+)$", prompt, re.MULTILINE):
            same = (
                row["kind"] for kind, row in self._operations if kind == "events" and row["quote"] == quote
            )
            kind = next(same, "asserts")
            checks.append(
                {"number": int(number), "reasoning": why, "kind": "open" if kind == "unsure" else kind}
            )
        return checks

    def _verdict(self, hints: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the recorded verdict with the fields that today's schema asks for."""
        recorded = self._texts["JudgeOpinion"][-1]
        out: dict[str, Any] = {}
        for name in schema["properties"]:
            field, sides = VERDICT_FIELDS[name], list(hints["debaters"])
            words = " ".join(["word"] * max(4, field.tokens // 2))
            if name == "scores":
                out[name] = _scores(recorded[name], sides, schema)
            elif name == "reasoning" and "decision" not in schema["properties"]:
                out[name] = " ".join(["word"] * 100)
            elif name in recorded and name != "unmet_requirements":
                out[name] = recorded[name]
            elif name == "final_position":
                out[name] = [{"debater": side, "position": words} for side in sides]
            elif name == "moved":
                half = " ".join(["word"] * (field.tokens // 4))
                move = {"before": half, "after": half, "message_id": hints["message_ids"][-1]}
                out[name] = [{"debater": side, **move} for side in sides]
            elif field.kind is str:
                out[name] = words
            elif field.kind == list[str]:
                out[name] = [" ".join(["word"] * 16)] * 3
            elif field.kind == float | None:
                out[name] = 70
            else:
                out[name] = []
        return out


def _partner(text: str) -> str:
    """Return the other debater of the crux room that a prompt's last message names, or `""`."""
    found = re.search(r"You are in a (?:private |side )?room with (.+?)(?: alone)?[.,] ", text)
    return found[1] if found else ""


def _scores(
    recorded: Sequence[Mapping[str, Any]], sides: Sequence[str], schema: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return one score for every debater on every criterion of the schema, with the recorded reasons."""
    criteria = schema["$defs"]["CriterionScore"]["properties"]["criterion"]["enum"]
    reasons: dict[str, list[Mapping[str, Any]]] = {}
    for each in recorded:
        reasons.setdefault(each["debater"], []).append(each)
    return [
        {**rows[number % len(rows)], "debater": side, "criterion": criterion}
        for number, criterion in enumerate(criteria)
        for side, rows in zip(sides, reasons.values(), strict=False)
    ]


def measure(recording: Recording, samples: Path) -> StructureCost:
    """Replay one recorded debate, and return the cost of its calls outside the turns."""
    lines = (samples / recording.file).read_text(encoding="utf-8").splitlines()
    rows = {row["request"]: row for row in map(json.loads, filter(None, lines))}
    kept = [rows[number] for number in recording.requests]
    opening = [each["content"] for each in kept[0]["messages"]]
    topic = opening[1].partition("\n")[2]
    name, _, text = opening[2].partition("]:\n")[2].partition("\n\n")
    listed = re.search(r"# (?:Debaters|Members)\n((?:- .+\n)+)", opening[0])
    debaters = []
    for line in listed[1].splitlines() if listed else ():
        who, _, role = line.removeprefix("- ").partition(" (")
        debaters.append({"name": who, "role": role.removesuffix(")")})
    model = ReplayModel(rows=kept)
    config = DebateConfig.model_validate({**recording.settings, "model": MODEL, "debaters": debaters})
    documents = [{"name": name, "content": text.replace("> # ", "# ")}]
    with (
        tempfile.TemporaryDirectory() as folder,
        open_debates(str(Path(folder) / "debates.sqlite"), models={MODEL: model}) as debates,
    ):
        document = debates.start(topic, config, documents=documents).run()
    messages = [entry for entry in document["transcript"] if entry["speaker"] in config.names()]
    return model.cost(len(messages))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tokens outside messages for each message, beside those of the recording and the target."""
    parser = argparse.ArgumentParser(description="Tokens outside the debaters' messages.")
    parser.add_argument("--samples", type=Path, default=SAMPLES, metavar="FOLDER", help="recorded requests")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    if not options.samples.is_dir():
        print(f"no recorded debates in {options.samples}: give their folder with --samples")
        return
    costs = {name: measure(recording, options.samples) for name, recording in RECORDINGS.items()}
    if options.json:
        print(
            json.dumps(
                {
                    name: {"tokens_each": m.tokens_per_message, "messages": m.messages}
                    for name, m in costs.items()
                }
            )
        )
        return
    for name, cost in costs.items():
        recording = RECORDINGS[name]
        parts = ", ".join(
            f"{purpose} {tokens:,} in {cost.calls[purpose]}"
            for purpose, tokens in sorted(cost.by_purpose.items(), key=lambda item: -item[1])
        )
        print(
            f"{name:12} {cost.tokens_per_message:5,} per message (recorded {recording.before:,}, "
            f"target at most {recording.target:,}); {cost.messages} messages; {parts}"
        )


if __name__ == "__main__":
    main()
