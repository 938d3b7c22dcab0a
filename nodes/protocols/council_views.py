"""What a member of the council sees, phase by phase: always the problem, and what the phase is about."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.memory.material import Piece, problem_block, with_pieces
from nodes.memory.perspective import latest_proposals, perspective_of
from nodes.memory.rendering import cut_message, display_name, render_entry
from nodes.memory.scene import TAIL, Scene, contract_text
from nodes.memory.tokens import cut_middle
from nodes.memory.view import Block
from nodes.models.calls import WireMessage
from nodes.prompts.library import load_prompt
from nodes.roles.library import role_of
from state.entries import Entry

RULES = load_prompt("council/rules", "debaters", "language")
PROPOSE = load_prompt("council/propose", "words", "focus")
CRITIQUE = load_prompt("council/critique", "target", "words", "focus")
REFINE = load_prompt("council/refine", "standing", "words", "focus")

PROPOSAL_WORDS, CRITIQUE_WORDS = 400, 200
"""What proposals, refinements and critiques are asked to stay within."""

SUBJECT, GIVEN, OWN = 0, 1, 2
"""Ranks: what the phase is about; what the person gave; the debater's own past."""

_FROM_THE_FLOOR = frozenset({"context", "question", "answer", "interjection"})

_STANDING = "Your present proposal and the criticism that it received stand above."
_STANDING_ALONE = "Your present proposal stands above; nobody criticised it in this round."
_NONE_YET = "You have no proposal yet: write one that stands up to what is known so far."


def council_view(scene: Scene) -> list[Block]:
    """Return the blocks of a view: rules, problem, the phase's material, contract and instruction."""
    makers = {"propose": _proposing, "critique": _criticising, "refine": _refining}
    pieces, instruction = makers[scene.step["phase"]](scene)
    budget = scene.config.memory.budget
    head = [_rules_block(scene), problem_block(scene.state["topic"], budget, scene.count)]
    given = [_piece(scene, entry, GIVEN, "from the floor") for entry in _given(scene)]
    tail = _tail_block(scene, instruction)
    return with_pieces(head, [*given, *pieces], tail, budget.total, scene.count)


def _proposing(scene: Scene) -> tuple[list[Piece], str]:
    focus = role_of(scene.speaker).says("propose")
    return _own_past(scene, frozenset()), PROPOSE.render(words=str(PROPOSAL_WORDS), focus=focus)


def _criticising(scene: Scene) -> tuple[list[Piece], str]:
    (target,) = scene.floor["targets"]
    name = display_name(target, scene.names)
    proposal = latest_proposals(scene.state["full_transcript"])[target]
    pieces = [_piece(scene, proposal, SUBJECT, "proposal criticised", f"# {name}'s proposal")]
    focus = role_of(scene.speaker).says("critique")
    instruction = CRITIQUE.render(target=name, words=str(CRITIQUE_WORDS), focus=focus)
    return [*pieces, *_own_past(scene, frozenset())], instruction


def _refining(scene: Scene) -> tuple[list[Piece], str]:
    own = latest_proposals(scene.state["full_transcript"]).get(scene.speaker.id)
    received = _received(scene)
    pieces = [_piece(scene, own, SUBJECT, "own proposal", "# Your present proposal")] if own else []
    pieces += [_piece(scene, entry, SUBJECT, "critique received") for entry in received]
    shown = frozenset(entry["id"] for entry in ([own] if own else []) + received)
    standing = _NONE_YET if own is None else _STANDING if received else _STANDING_ALONE
    focus = role_of(scene.speaker).says("refine")
    instruction = REFINE.render(standing=standing, words=str(PROPOSAL_WORDS), focus=focus)
    return [*pieces, *_own_past(scene, shown)], instruction


def _received(scene: Scene) -> list[Entry]:
    """Return this round's critiques of the speaker, and the notices of those that are missing."""
    speaker, round_no = scene.speaker.id, scene.step["round"]
    return [
        entry
        for entry in scene.state["full_transcript"]
        if entry["kind"] in ("critique", "notice")
        and entry["phase"] == "critique"
        and entry["round"] == round_no
        and speaker in _about(entry)
    ]


def _about(entry: Entry) -> Sequence[str]:
    # A notice also names who was to speak, first.
    return entry["targets"][1:] if entry["kind"] == "notice" else entry["targets"]


def _given(scene: Scene) -> list[Entry]:
    return [entry for entry in scene.state["full_transcript"] if entry["kind"] in _FROM_THE_FLOOR]


def _own_past(scene: Scene, shown: frozenset[str]) -> list[Piece]:
    """Return the speaker's perspective as one piece: summary and what came after, less what is shown."""
    perspective = perspective_of(scene.state, scene.speaker.id)
    entries = [entry for entry in perspective.entries if entry["id"] not in shown]
    parts = [perspective.summary, *(_past_text(scene, entry) for entry in entries)]
    text = "\n\n".join(filter(None, parts))
    if not text:
        return []
    message: WireMessage = {"role": "user", "content": f"# Your part in the debate so far\n{text}"}
    ids = tuple(entry["id"] for entry in entries)
    return [Piece(message, OWN, "own perspective", ids, "summary")]


def _past_text(scene: Scene, entry: Entry) -> str:
    title = {"critique": "Critique that you received, by "}.get(entry["kind"], f"Your {entry['kind']}, ")
    return title + render_entry(entry, scene.names)["content"]


def _piece(scene: Scene, entry: Entry, rank: int, label: str, heading: str = "") -> Piece:
    message = render_entry(entry, scene.names)
    if heading:
        message = {**message, "content": f"{heading}\n{message['content']}"}
    return Piece(message, rank, f"{label} {entry['id']}", (entry["id"],))


def _rules_block(scene: Scene) -> Block:
    lines = [
        f"- {d.name} ({', '.join(dict.fromkeys(filter(None, (d.id, d.role))))})"
        for d in scene.config.debaters
    ]
    language = f"- Write {scene.config.language}." if scene.config.language else ""
    text = RULES.render(debaters="\n".join(lines), language=language)
    if scene.config.memory.layout == "per-speaker":
        text = f"{_contract(scene)}\n\n{text}"
    message: WireMessage = {"role": "system", "content": text}
    return Block(
        "system", cut_message(message, scene.config.memory.budget.system, scene.count), label="rules"
    )


def _contract(scene: Scene) -> str:
    speaker = scene.speaker
    prompt = speaker.system_prompt or role_of(speaker).says("system")
    text = contract_text(speaker.model_copy(update={"system_prompt": prompt}))
    return cut_middle(text, scene.config.memory.budget.system // 2, scene.count)


def _tail_block(scene: Scene, instruction: str) -> Block:
    shared = scene.config.memory.layout == "shared"
    values = dict.fromkeys(("perspective", "blackboard", "retrieved"), "")
    asked = "\n\n".join(filter(None, (instruction, scene.floor["instruction"])))
    text = TAIL.render(contract=_contract(scene) if shared else "", instruction=asked, **values)
    return Block("tail", {"role": "user", "content": text}, label="contract and instruction")
