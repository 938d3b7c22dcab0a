"""Checks of a debate's configuration before the debate starts: errors, warnings, and a shorter debate."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from moot.config import DebateConfig, boundary, config_files, model_settings
from moot.memory.summarizers.registry import FALLBACK_SUMMARIZER, asks_model
from moot.memory.window import WindowLimits
from moot.models.model_call import complete
from moot.prompts.truncation import problem_token_limit
from moot.protocols.prompt_context import shared_prefix_tokens
from moot.protocols.registry import check_names, protocol_named, turns_planned
from moot.protocols.schedule import TOKENS_PER_WORD, TURN_WORDS
from moot.retrieval.indexes import embeddings_named
from moot.runtime.environment import Environment
from moot.state.errors import ConfigError, advise
from moot.text.plain_text import count_noun
from moot.text.tokens import TokenCounter
from moot.tools.registry import TOOLS, check_tools

FOLDER_TOOLS = tuple(name for name, tool in TOOLS.items() if tool.needs_context)
"""Tools that read the context folder: they list, read and search its files."""
_PLACEHOLDER = re.compile(r"\{\{?[A-Za-z_]\w*\}\}?")


def check_config(
    permissions: boundary.Permissions, environment: Environment, *, imports: bool = True
) -> DebateConfig:
    """Check that everything named in the configuration can be used.

    This includes models and tools. Return the configuration with the definitions of the tools of MCP servers.

    The configuration has to be authorized first. With `imports`, modules that it names are imported as a
    test.

    Raises:
        ConfigError: The configuration is invalid. The message says what to do.
    """
    config = permissions.authorize()
    count, models = environment.token_counter_for(config), environment.models_of(permissions)
    check_names(config)
    checked = check_tools(config, count, environment.tools)
    if imports and environment.embeddings is None:
        embeddings_named(config.memory.retrieval.embeddings)
    if config.limits.cost_usd is not None and (unpriced := models.names_without_price(config.model_names())):
        raise ConfigError(  # without prices the limit cannot be enforced
            "limits.cost_usd needs prices: set input_usd_per_million and output_usd_per_million "
            f"(0 for a free model) under `models` for {', '.join(map(repr, unpriced))}"
        )
    if environment.complete is complete:  # other functions than the default call no provider
        models.check(config.model_names())
    return config.model_copy(update={"mcp_servers": checked.mcp_servers}) if config.mcp_servers else config


def with_tools(config: DebateConfig, names: Sequence[str] = ()) -> DebateConfig:
    """Give tools to the debaters who have none and are not people.

    Without `names`, a debate with a context folder gets the tools that read it, unless a debater has tools.
    """
    has_folder = any(Path(path).is_dir() for path in config.context_paths())
    if not names and has_folder and not any(each.tools for each in config.debaters):
        names = FOLDER_TOOLS
    changes = {"tools": tuple(names)}
    debaters = [d if d.is_human or d.tools else d.model_copy(update=changes) for d in config.debaters]
    return config.model_copy(update={"debaters": tuple(debaters)}) if names else config


def check_model(config: DebateConfig) -> None:
    """Raise an error if nobody chose a model for a debate.

    Raises:
        ConfigError: The offline model would take part by default.
    """
    if config.lacks_model():
        raise ConfigError(
            "no model is set: "
            + advise(
                "run `moot setup` once, or add --model NAME (`--model offline` writes placeholder texts)",
                "run `moot setup` on the server's machine and start the server again, or choose a model",
                'add "env": {"OPENAI_API_KEY": "YOUR KEY", "MOOT_MODEL": "gpt-4o-mini"} to the entry of this '
                "server in your client's configuration, or run `moot setup`, and start the server again",
            )
        )


def check_judges(config: DebateConfig, models: Iterable[str], environment: Environment) -> None:
    """Raise a `ConfigError` if the `offline` model would judge messages of people or other models.

    `models` are the models of the messages; `""` is a person.
    """
    judge = config.judge
    is_judge_unset = config.model == model_settings.OFFLINE and not all(
        spec.model or judge.model for spec in judge.judges()
    )
    if is_judge_unset and environment.complete is complete and set(models) - {model_settings.OFFLINE}:
        choose = advise("set one with --model (in a file: judge.model)", "set judge.model")
        raise ConfigError(
            "no judge model is set, and the default `offline` model cannot judge messages of people or "
            f"models: {choose}, or `offline` for placeholders"
        )


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
    sizes = (
        ("topic", count(config.topic or ""), problem_token_limit(budget)),
        ("context", count(text), budget.messages),
    )
    warnings += [
        f"{name}: {tokens:,} tokens, but prompts have room for only {remaining:,}, so the rest is truncated: "
        "raise memory.budget.total, or use a folder and tools"
        for name, tokens, remaining in sizes
        if tokens > remaining
    ]
    return warnings + _unknown_placeholders(config) + _idle_memory(config, count)


def _unknown_placeholders(config: DebateConfig) -> list[str]:
    """Return a warning for each summary prompt with a placeholder, because Moot does not fill it in."""
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
        f"{key}: {placeholders[0]} is no placeholder, so the model reads it as it is: remove it, because the "
        "messages follow the prompt in any case"
        for key, prompt in prompts.items()
        if (placeholders := _PLACEHOLDER.findall(prompt))
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
    capacity = limits.high_tokens // message_tokens
    message_counts = {
        "keep_recent": memory.keep_recent,
        "summarize_every": memory.keep_recent + memory.summarize_every,
    }
    # A file that `moot config init` wrote contains both defaults, which the user did not choose.
    fields = type(memory).model_fields
    is_default = all(
        name in memory.model_fields_set and getattr(memory, name) == fields[name].default
        for name in message_counts
    )
    return warnings + [
        f"memory.{name}: {message_count} messages of {TURN_WORDS} words exceed the window's "
        f"{limits.high_tokens:,} tokens, which hold about {capacity}: the setting has no effect"
        for name, message_count in message_counts.items()
        if name in memory.model_fields_set and message_count > capacity and not is_default
    ]


def shorten_debate(config: DebateConfig, max_turns: int) -> DebateConfig:
    """Return a configuration with which the debate has at most `max_turns` turns.

    The settings that determine the protocol's length are lowered one after another, as little as possible.

    Raises:
        ConfigError: The shortest debate of the protocol has more turns.
    """
    if _turn_count(config) <= max_turns:
        return config
    for setting in protocol_named(config.protocol).length_settings or ():
        data = config.to_json()
        section, _, name = setting.rpartition(".")
        value = (data[section] if section else data)[name]
        if not isinstance(value, int | None):
            continue
        shorter = config
        for number in range(min(value or max_turns, max_turns), 0, -1):
            shorter = config_files.make_config(config_files.with_settings(data, {setting: number}))
            if _turn_count(shorter) <= max_turns:
                return shorter
        config = shorter
    raise ConfigError(
        f"even the shortest debate with protocol {config.protocol!r} may need {_turn_count(config)} turns, "
        f"but at most {max_turns} are allowed: allow more turns, or use another protocol"
    )


def _turn_count(config: DebateConfig) -> int:
    """Return the maximum number of turns. A debate that does not end is a `ConfigError`."""
    turns = protocol_named(config.protocol).turns(config)
    if turns:
        return turns.most
    from moot.debates.dry_run import estimate  # avoids an import cycle: the estimate runs the graph

    forecast = estimate(config)
    if forecast is None:
        raise ConfigError(
            f"Moot cannot estimate the length of a debate with protocol {config.protocol!r}, so it cannot "
            "limit the number of turns: remove this limit"
        )
    return forecast.turns_at_most
