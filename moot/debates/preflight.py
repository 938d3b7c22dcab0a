"""Checks and warnings for a configuration that run before any model call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import BaseModel, Field

from moot.calls.effects import CallGenerator
from moot.configuration.configure import check_names
from moot.memory.summarizers.registry import FALLBACK_SUMMARIZER, asks_model
from moot.memory.window import WindowLimits
from moot.models.endpoints import OTHER_MODEL
from moot.models.model_call import complete
from moot.prompts.request import counter_of, make_call, many, model_params
from moot.prompts.templates import load_prompt_template
from moot.prompts.truncation import Block, problem_token_limit, truncate_blocks
from moot.protocols.base import TOKENS_PER_WORD, TURN_WORDS
from moot.protocols.prompt_context import shared_prefix_tokens
from moot.protocols.registry import protocol_named, turns_planned
from moot.retrieval.indexes import embeddings_of
from moot.runtime.background_loop import call_from_sync
from moot.runtime.environment import Environment
from moot.runtime.run_node import run_to_end
from moot.state.config import DebateConfig, slug
from moot.state.config.boundary import Permissions
from moot.state.config.config_files import make_config, with_settings
from moot.state.config.model_settings import OFFLINE
from moot.state.config.participants import RESERVED_IDS, DebaterConfig, unique_slug, unreserved_name
from moot.state.entries import JsonObject, clean_text
from moot.state.errors import ConfigError, ModelError
from moot.text.plain_text import count_noun
from moot.text.tokens import TokenCounter
from moot.tools.context_documents import check_tools

_PLACEHOLDER = re.compile(r"\{\{?[A-Za-z_]\w*\}\}?")

NO_JUDGE = (
    "no judge model is set, and the default `offline` model cannot judge messages of people or models: "
    "set one with --model (in a file: judge.model), or `offline` for placeholders"
)


def check_config(permissions: Permissions, environment: Environment, *, imports: bool = True) -> DebateConfig:
    """Check that the models, tools and other resources named in the configuration can be used.

    Return the configuration with the definitions of the tools of MCP servers.

    The configuration has to be authorized first. With `imports`, modules that it names are imported as a
    test.

    Raises:
        ConfigError: The configuration is invalid. The message says what to do.
    """
    config = permissions.authorize()
    check_names(config)
    checked = check_tools(config, environment.token_counter_for(config), environment.tools)
    if imports:
        embeddings_of(permissions, environment.embeddings)
    models = environment.models_of(permissions)
    if config.limits.cost_usd is not None and (unpriced := models.names_without_price(config.model_names())):
        raise ConfigError(  # without prices the limit cannot be enforced
            "limits.cost_usd needs prices: set input_usd_per_million and output_usd_per_million "
            f"(0 for a free model) under `models` for {', '.join(map(repr, unpriced))}"
        )
    if environment.complete is complete:  # other functions than the default call no provider
        models.check(config.model_names())
    return config.model_copy(update={"mcp_servers": checked.mcp_servers}) if config.mcp_servers else config


def check_judges(config: DebateConfig, models: Iterable[str], environment: Environment) -> None:
    """Raise an error if the `offline` model would judge real messages.

    `models` are the models of the messages; `""` is a person.

    Raises:
        ConfigError: A judge has no model.
    """
    judge = config.judge
    unnamed = config.model == OFFLINE and not all(spec.model or judge.model for spec in judge.judges())
    if unnamed and environment.complete is complete and set(models) - {OFFLINE}:
        raise ConfigError(NO_JUDGE)


def warnings_about(config: DebateConfig) -> list[str]:
    """Return warnings about valid settings that are probably mistakes."""
    unused = sorted(config.models.keys() - set(config.model_names()))
    used = ", ".join(map(repr, config.model_names()))
    warnings = [f"models.{name}: this debate uses no model with this name; it uses {used}" for name in unused]

    turns = turns_planned(config) if config.interjections else None
    late = [each.after for each in config.interjections if turns is not None and each.after >= turns]
    if late:
        warnings.append(
            f"interjections: after {count_noun(late[0], 'turn')} is too late, because the debate has {turns}"
        )

    # Topics and context files that exceed every prompt.
    budget, count = config.memory.budget, Environment().token_counter_for(config)
    files = [path for path in map(Path, config.context_paths()) if path.is_file()]
    text = "\n".join(path.read_text("utf-8", "replace") for path in files)
    given = (
        ("topic", count(config.topic or ""), problem_token_limit(budget)),
        ("context", count(text), budget.messages),
    )
    warnings += [
        f"{name}: {tokens:,} tokens, but prompts have room for only {remaining:,}, so the rest is truncated: "
        "raise memory.budget.total, or use a folder and tools"
        for name, tokens, remaining in given
        if tokens > remaining
    ]
    return warnings + _unknown_placeholders(config) + _idle_memory(config, count)


def _unknown_placeholders(config: DebateConfig) -> list[str]:
    """Return warnings about placeholders in summary prompts, because Moot does not fill them in."""
    prompts = {
        "memory.summary_prompt": config.memory.summary_prompt,
        "memory.perspectives.prompt": config.memory.perspectives.prompt,
    }
    if config.judge.summary:
        prompts["judge.summary.prompt"] = config.judge.summary.prompt
    for debater in config.debaters:
        prompts[f"debaters.{debater.id}.summary_prompt"] = debater.summary_prompt
        if debater.perspective:
            prompts[f"debaters.{debater.id}.perspective.prompt"] = debater.perspective.prompt
    return [
        f"{key}: {found[0]} is no placeholder, so the model reads it as it is: remove it, because the "
        "messages follow the prompt in any case"
        for key, prompt in prompts.items()
        if (found := _PLACEHOLDER.findall(prompt))
    ]


def _idle_memory(config: DebateConfig, count: TokenCounter) -> list[str]:
    """Return warnings about memory settings that have no effect in this debate."""
    memory = config.memory
    warnings = []
    if asks_model(memory.summarizer) and not protocol_named(config.protocol).shows_summary:
        warnings = [
            f"memory.summarizer: no prompt of {config.protocol!r} shows a summary; {FALLBACK_SUMMARIZER} "
            "makes the judge's"
        ]
    limits = WindowLimits.of(memory, shared_prefix_tokens(config.topic or "", config, count))
    message_tokens = int(TURN_WORDS * TOKENS_PER_WORD)
    remaining = limits.high_tokens // message_tokens
    asked = {
        "keep_recent": memory.keep_recent,
        "summarize_every": memory.keep_recent + memory.summarize_every,
    }
    # A file that `moot config init` wrote contains both defaults, which the user did not choose.
    fields = type(memory).model_fields
    untouched = all(
        name in memory.model_fields_set and getattr(memory, name) == fields[name].default for name in asked
    )
    return warnings + [
        f"memory.{name}: {most} messages of {TURN_WORDS} words exceed the window's {limits.high_tokens:,} "
        f"tokens, which hold about {remaining}: the setting has no effect"
        for name, most in asked.items()
        if name in memory.model_fields_set and most > remaining and not untouched
    ]


def shorten_debate(config: DebateConfig, most: int) -> DebateConfig:
    """Return a copy of the configuration that limits the debate to `most` turns.

    The settings that determine the protocol's length are lowered one after another, as little as possible.

    Raises:
        ConfigError: The shortest debate of the protocol has more turns.
    """
    if _turn_count(config) <= most:
        return config
    for setting in protocol_named(config.protocol).length_settings or ():
        data = config.to_json()
        section, _, name = setting.rpartition(".")
        value = (data[section] if section else data)[name]
        if not isinstance(value, int | None):
            continue
        for number in range(min(value or most, most), 0, -1):
            shorter = make_config(with_settings(data, {setting: number}))
            if _turn_count(shorter) <= most:
                return shorter
        config = shorter
    raise ConfigError(
        f"even the shortest debate with protocol {config.protocol!r} may need {_turn_count(config)} turns, "
        f"but at most {most} are allowed: allow more turns, or use another protocol"
    )


def _turn_count(config: DebateConfig) -> int:
    """Return the maximum number of turns that a debate can have.

    Raises:
        ConfigError: The debate does not end.
    """
    turns = protocol_named(config.protocol).turns(config)
    if turns:
        return turns.most
    from moot.debates.dry_run import estimate  # avoids an import cycle: the estimate runs the graph

    planned = estimate(config)
    if planned is None:
        raise ConfigError(
            f"the length of a debate with protocol {config.protocol!r} cannot be estimated, so the limit on "
            "turns cannot be applied: remove this limit"
        )
    return planned.turns_at_most


PROPOSE = load_prompt_template("propose")
REPLY_TOKENS = 400
"""Maximum number of tokens in a reply that proposes two debaters."""
NAME_CHARS, STANCE_CHARS = 40, 300
"""Maximum number of characters in a debater's name or role, and in a debater's stance. Longer texts are
truncated."""


class ProposedDebater(BaseModel):
    """One debater that the model proposes."""

    name: str = Field("", description="First name.")
    role: str = Field("", description="Role of the debater, in at most six words.")
    stance: str = Field("", description="The debater's answer to the question, in one sentence.")


class ProposedDebaters(BaseModel):
    """Two proposed debaters who give different answers to the question."""

    debaters: many(ProposedDebater, 2, 2) = Field(default_factory=list)  # type: ignore[valid-type]  # checked by Pydantic


def propose_debaters(
    question: str, config: DebateConfig, environment: Environment
) -> tuple[tuple[DebaterConfig, ...], float]:
    """Ask the configured model to propose two debaters, and return the debaters and the cost.

    Raises:
        ModelError: the model fails, or its reply does not name two debaters with stances.
    """

    async def ask() -> tuple[list[JsonObject], Mapping[str, float]]:
        try:
            replied, handler = await run_to_end(
                _proposal(question, config), environment, Permissions.of_operator(config)
            )
            return replied, handler.spent
        finally:
            await environment.aclose()

    proposed, usage = call_from_sync(ask)
    debaters: list[DebaterConfig] = []
    taken = set(RESERVED_IDS)
    for number, each in enumerate(proposed[:2], start=1):
        name, role = (" ".join(clean_text(str(each[key])).split())[:NAME_CHARS] for key in ("name", "role"))
        stance = " ".join(clean_text(str(each["stance"])).split())[:STANCE_CHARS]
        if name and stance:
            own_id = unique_slug(slug(name) or f"debater-{number}", taken)
            taken.add(own_id)
            debaters.append(DebaterConfig(id=own_id, name=unreserved_name(name), role=role, stance=stance))
    if len(debaters) < 2 or debaters[0].name == debaters[1].name:
        raise ModelError(
            f"model {config.model!r} did not propose two debaters: name two debaters yourself, each with "
            "--debater NAME:ROLE:STANCE"
        )
    return tuple(debaters), float(usage.get("cost_usd", 0.0))


def _proposal(question: str, config: DebateConfig) -> CallGenerator[list[JsonObject]]:
    """Return the two debaters that a model proposes for a question."""
    params = model_params(config, config.debaters[0])
    blocks = [
        Block("system", {"role": "system", "content": PROPOSE.render()}, label="instruction"),
        Block("turn_suffix", {"role": "user", "content": question}, label="question"),
    ]
    prompt = truncate_blocks(blocks, config.memory.budget.total, counter_of(params, config))
    (reply,) = yield [make_call(params, "evaluate", prompt, schema=ProposedDebaters, reply=REPLY_TOKENS)]
    if reply.error:  # no debate is stored yet that could be resumed
        raise ModelError(reply.error.replace(OTHER_MODEL, "choose another model with --model NAME"))
    found = ProposedDebaters.model_validate(reply.data or {})
    return [each.model_dump() for each in found.debaters]
