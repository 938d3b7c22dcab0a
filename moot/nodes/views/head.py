"""The head of a view: the rules that are everybody's, the topic, and what a debater is told about itself."""

from moot.nodes.calls import WireMessage
from moot.nodes.judging.rubrics import scored_text
from moot.nodes.prompts.fitting import Block, cut_block
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.material import problem_block
from moot.nodes.text.tokens import TokenCounter, message_tokens
from moot.nodes.views.scene import Scene
from moot.state.at_sight import at_sight
from moot.state.config import DebateConfig, DebaterConfig, slug

RULES = load_prompt("rules", "debaters", "scored", "language")
CONTRACT = load_prompt("contract", "name", "role", "stance", "persona", "contract")


@at_sight()
def contract_text(debater: DebaterConfig) -> str:
    """Return what a debater is told about itself."""
    terms = {
        "Your temper": debater.personality,
        "What is at stake for you": debater.stakes,
        "What counts as knowledge for you": debater.epistemology,
        "How far ahead you look": debater.time_horizon,
        "What would change your mind": "; ".join(debater.flip_conditions),
        "Evidence": debater.evidence_policy,
        "Your voice": debater.voice,
    }
    return CONTRACT.render(
        name=debater.name,
        role=f"Your role: {debater.role}." if _adds(debater, debater.role) else "",
        stance=f"Your stance: {debater.stance}." if debater.stance else "",
        persona="\n\n".join(filter(None, [debater.system_prompt, debater.persona])),
        contract="\n".join(f"{title}: {text}" for title, text in terms.items() if text),
    )


@at_sight()
def rules_text(config: DebateConfig) -> str:
    """Return the debate's rules: the same for everybody, for the whole debate."""
    language = f"- Speak {config.language}." if config.language else ""
    return RULES.render(debaters=members_text(config), scored=scored_text(config), language=language)


def members_text(config: DebateConfig) -> str:
    """Return a line for each debater: its name, and of id, role and stance what the name does not say."""
    lines = []
    for debater in config.debaters:
        told = ", ".join(each for each in (debater.id, debater.role, debater.stance) if _adds(debater, each))
        lines.append(f"- {debater.name} ({told})" if told else f"- {debater.name}")
    return "\n".join(lines)


def _adds(debater: DebaterConfig, part: str) -> bool:
    return bool(part) and slug(part) != slug(debater.name)


@at_sight()
def topic_block(topic: str, config: DebateConfig, count: TokenCounter) -> Block:
    """Return the topic, a message of its own after the rules."""
    return problem_block(topic, config.memory.budget, count, heading="# Topic")


def head_tokens(topic: str, config: DebateConfig, count: TokenCounter) -> int:
    """Return what rules and topic take; where each speaker's rules are others, the whole of their section."""
    rules = config.memory.budget.system
    if config.memory.layout == "shared":
        message: WireMessage = {"role": "system", "content": rules_text(config)}
        rules = min(message_tokens(message, count), rules)
    return rules + message_tokens(topic_block(topic, config, count).message, count)


def rules_block(scene: Scene, *, rules: str = "", extra: str = "") -> Block:
    """Return the system message, within the system section's budget; `rules` stand for everybody's."""
    content = "\n\n".join(filter(None, [rules or rules_text(scene.config), extra]))
    whole: WireMessage = {"role": "system", "content": content}
    return cut_block("system", whole, scene.config.memory.budget.system, scene.count, label="rules")
