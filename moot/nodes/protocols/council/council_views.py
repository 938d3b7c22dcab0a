"""What a member of the council sees, phase by phase: always the problem, and what the phase is about."""

from moot.nodes.calls import WireMessage
from moot.nodes.judging.rubrics import scored_text
from moot.nodes.memory.perspective import latest_proposals, perspective_of
from moot.nodes.prompts.fitting import Block
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.material import problem_block, with_pieces
from moot.nodes.prompts.rendering import display_name, render_entry
from moot.nodes.protocols.protocol import with_agreement
from moot.nodes.roles.role import role_of
from moot.nodes.text.tokens import cut_middle
from moot.nodes.views.head import contract_text, members_text, rules_block
from moot.nodes.views.scene import Scene, entry_piece, given_entries, given_piece, tool_pieces
from moot.nodes.views.tail import plain_tail
from moot.state.conversation import MemoryKind
from moot.state.entries import Entry

RULES = load_prompt("rules", "debaters", "scored", "language", home=__package__)
PROPOSE = load_prompt("propose", "rounds", "words", "focus", home=__package__)
CRITIQUE = load_prompt("critique", "round", "rounds", "target", "words", "focus", "before", home=__package__)
REFINE = load_prompt("refine", "standing", "round", "rounds", "words", "focus", home=__package__)

PROPOSAL_WORDS, CRITIQUE_WORDS = 600, 300
"""What proposals, refinements and critiques are asked to stay within: about 80 words for each part."""

ROUNDS = 3
"""Rounds where none are configured."""

RUBRIC = "design"
"""What the solution is held against, where the configuration does not say."""

SUBJECT, GIVEN, OWN, RIVALS = 0, 1, 2, 3
"""Ranks: what the phase is about; what people said; the debater's own past, and documents; what others
propose."""

_STANDING = (
    "Your present proposal and the criticism that it received stand above. Under a heading of its own answer "
    'each point (2.3: the third of criticism 2): "adopted", and where it now stands, or "refused because", '
    "and the reason."
)
_STANDING_ALONE = "Your present proposal stands above; nobody criticised it in this round."
_ANSWERED = (
    "Your criticism of the proposal before this one stands above, too, under the number that the answers "
    "give it: what they meet needs no word. "
)
_NONE_YET = "You have no proposal yet: write one that stands up to what is known so far."


def council_view(scene: Scene) -> list[Block]:
    """Return the blocks of a view: rules, problem, material, contract and instruction.

    The material is what people gave, what the phase is about, and the speaker's own past; in a refinement
    what the others propose now, too, as far as there is room: theirs to learn from, not to criticise.
    """
    phase, now, speaker = scene.step["phase"], scene.step["round"], scene.speaker.id
    memory, proposals = scene.config.memory, latest_proposals(scene.state["full_transcript"])
    subject: list[Block] = []
    rivals: list[Block] = []
    if phase == "critique":
        (target,) = scene.floor["targets"]
        heading = f"# {display_name(target, scene.names)}'s proposal"
        subject = _criticisms(scene, target, now - 1, OWN)
        subject += _subject(scene, proposals[target], "proposal criticised", heading)
    elif phase == "refine":
        if speaker in proposals:
            subject = _subject(scene, proposals[speaker], "own proposal", "# Your present proposal")
        subject += _criticisms(scene, speaker, now, SUBJECT)
        heading = "# Another's proposal: take what is better in it"
        rivals = [
            entry_piece(scene, entry, RIVALS, "rival proposal", heading)
            for who, entry in proposals.items()
            if who != speaker and memory.rivals
        ]
    # Whoever criticises argues for no design of its own, so it is not shown its own.
    shown = frozenset(key for piece in subject for key in piece.ids)
    past = [] if phase == "critique" else _own_past(scene, shown)
    given = [given_piece(scene, entry, said=GIVEN, document=OWN) for entry in given_entries(scene)]

    head = [_rules_block(scene), problem_block(scene.state["topic"], memory.budget, scene.count)]
    about = [piece.message["content"] for piece in subject if piece.priority == SUBJECT]
    contract = _contract(scene) if memory.layout == "shared" else ""
    tail = plain_tail(scene, contract, council_instruction(scene), "\n".join([scene.state["topic"], *about]))
    return with_pieces(head, [*rivals, *given, *past, *subject], tail, scene.room, scene.count)


def council_instruction(scene: Scene) -> str:
    """Return what the phase asks of the speaker, and whatever else the floor does."""
    phase, now, speaker = scene.step["phase"], scene.step["round"], scene.speaker.id
    focus, most = role_of(scene.speaker).says(phase), max(now, scene.config.rounds or ROUNDS)
    place = {"round": str(now), "rounds": str(most), "focus": focus}
    match phase:
        case "propose":
            asked = PROPOSE.render(words=str(PROPOSAL_WORDS), **place)
        case "critique":
            (target,) = scene.floor["targets"]
            name = display_name(target, scene.names)
            said = any(each["speaker"] == speaker for each in _critiques_of(scene, target, now - 1))
            before = _ANSWERED if said else ""
            asked = CRITIQUE.render(target=name, words=str(CRITIQUE_WORDS), before=before, **place)
        case _:
            standing = _STANDING if _critiques_of(scene, speaker, now) else _STANDING_ALONE
            if speaker not in latest_proposals(scene.state["full_transcript"]):
                standing = _NONE_YET
            asked = REFINE.render(standing=standing, words=str(PROPOSAL_WORDS), **place)
    return with_agreement("\n\n".join(filter(None, (asked, scene.floor["instruction"]))), scene.config)


def _criticisms(scene: Scene, target: str, round_no: int, rank: int) -> list[Block]:
    """Return a round's criticism of the speaker, or its own of another, numbered as the answers number it."""
    own = target == scene.speaker.id
    heading = (
        "# Criticism {} of your proposal" if own else "# Your criticism ({}) of the proposal before this one"
    )
    return [
        piece
        for number, entry in enumerate(_critiques_of(scene, target, round_no), 1)
        if own or entry["speaker"] == scene.speaker.id
        for piece in _subject(scene, entry, "critique", heading.format(number), rank)
    ]


def _subject(scene: Scene, entry: Entry, label: str, heading: str, rank: int = SUBJECT) -> list[Block]:
    """Return what the phase is about, after what tools brought for it."""
    return [*tool_pieces(scene, entry, rank), entry_piece(scene, entry, rank, label, heading)]


def _critiques_of(scene: Scene, target: str, round_no: int) -> list[Entry]:
    """Return a round's critiques of a debater, and the notices of those that are missing."""
    return [
        entry
        for entry in scene.state["full_transcript"]
        if entry["kind"] in ("critique", "notice")
        and entry["phase"] == "critique"
        and entry["round"] == round_no
        # A notice also names who was to speak, first.
        and target in entry["targets"][entry["kind"] == "notice" :]
    ]


def _own_past(scene: Scene, shown: frozenset[str]) -> list[Block]:
    """Return the speaker's perspective as one piece: summary and what came after, less what is shown."""
    perspective = perspective_of(scene.state, scene.speaker.id)
    entries = [entry for entry in perspective.entries if entry["id"] not in shown]
    parts = [perspective.summary]
    for entry in entries:
        title = f"Your {entry['kind']} of round {entry['round']}, replaced since: "
        if entry["kind"] == "critique":
            title = "Critique of it, by "
        parts.append(title + render_entry(entry, scene.names)["content"])
    text = "\n\n".join(filter(None, parts))
    if not text:
        return []
    message: WireMessage = {"role": "user", "content": f"# Your part in the debate before\n{text}"}
    ids = tuple(entry["id"] for entry in entries)
    memory: dict[MemoryKind, int] = {"perspective": scene.count(perspective.summary)}
    held = memory if perspective.summary else {}
    return [Block("summary", message, OWN, ids, label="own perspective", memory=held)]


def _rules_block(scene: Scene) -> Block:
    language = f"- Write {scene.config.language}." if scene.config.language else ""
    text = RULES.render(
        debaters=members_text(scene.config),
        scored=scored_text(scene.config, RUBRIC),
        language=language,
    )
    if scene.config.memory.layout == "per-speaker":
        text = f"{_contract(scene)}\n\n{text}"
    return rules_block(scene, rules=text)


def _contract(scene: Scene) -> str:
    speaker = scene.speaker
    prompt = speaker.system_prompt or role_of(speaker).says("system")
    text = contract_text(speaker.model_copy(update={"system_prompt": prompt}))
    return cut_middle(text, scene.config.memory.budget.system // 2, scene.count)
