"""Processing of a configuration in five stages, from its sources to the debate's graph.

    read       the environment, a file and the command line, lowest priority first
    merge      merge the layers; later ones override earlier ones
    validate   make a `DebateConfig`; unknown keys and wrong types are errors
    authorize  apply the operator's ceilings and prices, and grant capabilities
    freeze     the JSON that the state keeps as `config`

Every configuration passes these stages, whether it comes from the command line, Python, a server, MCP, the
live page or a batch. The settings of a request override the operator's settings. The configuration of a
stored debate starts at `authorize`, with the capabilities granted to the debate.

A file of the program dialectic is converted first. Every field is converted or named in a warning. Thresholds
stay in characters, and the token budget of prompts is raised if they need it.
"""

import logging
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, cast

from moot.config import DebateConfig, boundary, participants
from moot.config.config_files import load_config, make_config, merge_settings, nested_settings
from moot.config.memory_config import Budget
from moot.judging.rubrics import load_rubric, rubric_for, rubric_names
from moot.memory.perspectives import check_summarizers
from moot.prompts.templates import ROLE_NAMES
from moot.protocols import registry
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, InputError, file_error_reason
from moot.state.settings import variable

OPENROUTER = {"base_url": "https://openrouter.ai/api/v1", "api_key_env": "OPENROUTER_API_KEY"}
PROVIDERS: Mapping[str, Mapping[str, str]] = {"openai": {}, "openrouter": OPENROUTER}
TOOLS = {"context_search": "search_debate", "file_read": "read_file", "list_files": "list_files"}
FILE_TOOLS = frozenset({"read_file", "list_files"})
METHODS = {"length-based": "llm", "semantic": "hierarchical"}
"""Mapping from the summary methods of the debate program `dialectic` to Moot's summarizers."""

INSTEAD = {
    "maxTokens": "`memory.budget.reply` in a Moot configuration",
    "trace": "the environment variable MOOT_OTEL=1",
}
"""Advice on what to use instead of settings that Moot does not have. The settings are those of the debate
program `dialectic`. Each key is the last component of a setting's dotted name."""

SECTIONS = {
    "rounds": "debate.rounds",
    "termination": "debate.terminationCondition",
    "limits.wall_clock_s": "debate.timeoutPerRound",
    "clarifications.enabled": "debate.interactiveClarifications",
    "clarifications.max_per_debater": "debate.clarificationsMaxPerAgent",
    "memory.perspectives": "debate.summarization",
}
"""Mapping from Moot's dotted setting names to those in configuration files of the debate program `dialectic`.
Other names differ only in `FIELDS`."""
FIELDS = {
    "perspective": "summarization",
    "summary": "summarization",
    "threshold_chars": "threshold",
    "max_chars": "maxLength",
    "prompt": "promptPath",
    "tool_call_limit": "toolCallLimit",
    "system_prompt": "systemPromptPath",
    "summary_prompt": "summaryPromptPath",
    "clarification_prompt": "clarificationPromptPath",
}
"""Mapping from Moot's field names to those in configuration files of the debate program `dialectic`."""

DEFAULT_ROUNDS = 3
DEFAULT_QUESTIONS = 5
CHARS_PER_TOKEN = 3
"""Estimated number of characters per token. The value is low for English, so that budgets from character
counts are large enough."""


@dataclass(frozen=True)
class Converted:
    """Result of converting a configuration of the debate program `dialectic` to Moot's format."""

    data: JsonObject
    """Configuration data to pass to `make_config`. `@FILE` names a prompt file in the configuration's
    folder."""
    warnings: list[str]
    agents: list[int]
    """Index of each debater in the original configuration file's `agents` list. Agents that are not
    enabled have no debater."""

    def original_keys(self, errors: str) -> str:
        """Replace Moot's setting names in validation errors with those of the original configuration file."""
        return "\n".join(
            f"{self._original_key(key)}{colon}{why}"
            for key, colon, why in (line.partition(": ") for line in errors.splitlines())
        )

    def _original_key(self, key: str) -> str:
        for moot_key, dialectic_key in SECTIONS.items():
            if key == moot_key or key.startswith(f"{moot_key}."):
                return _renamed(dialectic_key, key.removeprefix(moot_key))
        if match := re.match(r"debaters\.(\d+)", key):
            return _renamed(f"agents.{self.agents[int(match[1])]}", key[match.end() :])
        return _renamed("", key)


def _renamed(start: str, fields: str) -> str:
    return start + ".".join(FIELDS.get(field, field) for field in fields.split("."))


def is_dialectic(data: Mapping[str, Any]) -> bool:
    """Return True if a configuration was written for `dialectic`, another debate program."""
    return "agents" in data or "debate" in data


def from_dialectic(data: Mapping[str, Any], folder: Path) -> Converted:
    """Convert a configuration of the debate program `dialectic` to a Moot configuration.

    Paths in the file are relative to `folder`.

    Raises:
        ConfigError: A part has the wrong type, or names an unknown provider.
    """
    agents, judge, file = data.get("agents") or [], data.get("judge"), _DialecticFile(folder)
    debate = _DialecticSection(data.get("debate") or {}, "debate")
    if not isinstance(agents, list):
        raise ConfigError("agents: give a list of agents")
    sections = [_DialecticSection(each, f"agents.{number}") for number, each in enumerate(agents)]
    enabled = {
        number: debater for number, each in enumerate(sections) if (debater := file.debater(each)) is not None
    }
    debaters = list(enabled.values())
    settings: JsonObject = {"protocol": "council", **file.debate(debate)}
    if debaters:
        settings["debaters"] = debaters
    else:
        file.warn("agents: no agent is enabled, so Moot's default council debates")
    settings["judge"] = {} if judge is None else file.judge(_DialecticSection(judge, "judge"))
    model_names = [each["model"] for each in (*debaters, settings["judge"]) if each.get("model")]
    if model_names:
        settings["model"] = settings["judge"].get("model") or model_names[0]
    settings["models"] = file.models
    settings["memory"] = {**settings.get("memory", {}), **file.budget()}
    if any(FILE_TOOLS & set(each["tools"]) for each in debaters):
        settings["context"] = str(folder.absolute())
        file.warn(f"tools read files in {str(folder)!r} only: choose another folder with --context")
    file.warn_of_ignored(sorted(data.keys() - {"agents", "judge", "debate"}))
    return Converted(
        {key: value for key, value in settings.items() if value not in ({}, [])}, file.warnings, list(enabled)
    )


class _DialecticSection:
    """Part of a configuration file, with a record of which keys were read.

    The configuration belongs to the debate program `dialectic`.
    """

    def __init__(self, data: Any, path: str) -> None:
        if not isinstance(data, Mapping):
            raise ConfigError(f"{path}: {data!r} is not a mapping: give keys and values")
        self.left = dict(data)
        """Keys that were not read."""
        self.path = path

    def take(self, key: str, default: Any = None) -> Any:
        """Return the value of a key in this section, and mark the key as read."""
        value = self.left.pop(key, None)
        return default if value is None else value

    def section(self, key: str) -> "_DialecticSection | None":
        """Return the nested section under a key, or `None` if the key is missing."""
        value = self.take(key)
        return None if value is None else _DialecticSection(value, f"{self.path}.{key}")


class _DialecticFile:
    """Converter for the sections in a configuration file of the debate program `dialectic`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.warnings: list[str] = []
        self._ignored: list[str] = []
        self.models: dict[str, JsonObject] = {}
        self._providers: dict[str, str] = {}
        self._perspectives: list[Mapping[str, Any]] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def _done(self, section: _DialecticSection) -> None:
        self._ignored += [f"{section.path}.{key}" for key in section.left]

    def warn_of_ignored(self, others: Sequence[str]) -> None:
        """Warn about all settings that Moot ignores.

        The warning names what to use instead.
        """
        if not (keys := [*self._ignored, *others]):
            return
        known = {end: key for key in keys if (end := key.rpartition(".")[2]) in INSTEAD}
        advice = "".join(f". Instead of {end}, use {INSTEAD[end]}" for end in known)
        self.warn(
            f"Moot has no setting for {', '.join(keys)}, so {'it is' if len(keys) == 1 else 'they are'} "
            f"ignored{advice}"
        )

    def debater(self, section: _DialecticSection) -> JsonObject | None:
        enabled = section.take("enabled", True)
        tools = self._tools(section)
        name = str(section.take("name", "") or section.path)
        role = str(section.take("role", ""))
        if participants.slug(role) not in ROLE_NAMES:
            self.warn(
                f"{section.path}.role: {role!r} is not a built-in role, so a generalist's prompts are used. "
                f"Use one of {', '.join(sorted(ROLE_NAMES))}, or set systemPromptPath to your own prompt"
            )
        debater = {
            "id": self._id(section, name),
            "name": name[: participants.NAME_CHARS],
            "role": role,
            "model": self._model(section),
            "temperature": section.take("temperature"),
            "system_prompt": self._file(section.take("systemPromptPath")) or section.take("systemPrompt", ""),
            "summary_prompt": self._file(section.take("summaryPromptPath")),
            "clarification_prompt": self._file(section.take("clarificationPromptPath")),
            "tools": tools,
            "tool_call_limit": section.take("toolCallLimit", 10),
        }
        summarization = section.section("summarization")
        if summarization is not None:
            debater["perspective"] = self._summarization(summarization)
        self._done(section)
        return debater if enabled else None

    def _id(self, section: _DialecticSection, name: str) -> str:
        own_id = str(section.take("id", ""))
        raw_id = own_id or name
        valid_id = raw_id if participants.SLUG.fullmatch(raw_id) else participants.slug(raw_id)
        valid_id = f"{valid_id}-agent" if valid_id in participants.RESERVED_IDS else valid_id
        if own_id and valid_id != own_id:
            self.warn(
                f"{section.path}.id: {raw_id!r} becomes {valid_id!r}, because an id has only lower-case "
                "letters, digits and hyphens, and no reserved name"
            )
        return valid_id

    def _file(self, path: Any) -> str:
        return f"@{path}" if path else ""

    def _model(self, section: _DialecticSection) -> str | None:
        model, provider = section.take("model"), str(section.take("provider", "openai")).lower()
        if provider not in PROVIDERS:
            raise ConfigError(
                f"{section.path}.provider: {provider!r} is not a supported provider: use one of "
                f"{', '.join(PROVIDERS)}"
            )
        if model is None:
            return None
        first_provider = self._providers.setdefault(str(model), provider)
        if first_provider != provider:
            self.warn(
                f"{section.path}.provider: {provider!r} is ignored, because another agent uses the model "
                f"{model!r} through {first_provider}. Use the same provider for both, or another model name"
            )
        if PROVIDERS[first_provider]:
            self.models[str(model)] = dict(PROVIDERS[first_provider])
        return str(model)

    def _tools(self, section: _DialecticSection) -> list[str]:
        tools = []
        for tool in section.take("tools", []):
            name = str(tool.get("name", "")) if isinstance(tool, Mapping) else str(tool)
            if name in TOOLS:
                tools.append(TOOLS[name])
            else:
                self.warn(
                    f"{section.path}.tools: {name!r} is ignored, because Moot has no such tool. Use "
                    f"{', '.join(TOOLS)}, or connect the tool as an MCP server with `mcp_servers`"
                )
        return list(dict.fromkeys(tools))

    def judge(self, section: _DialecticSection) -> JsonObject:
        model, instruction = self._model(section), ""
        temperature = section.take("temperature")
        paths = {key: section.take(key) for key in ("systemPromptPath", "promptPath")}
        key, path = next(((key, path) for key, path in paths.items() if path), ("", ""))
        if path:
            try:
                instruction = (self._folder / str(path)).read_text(encoding="utf-8").strip()
            except (OSError, ValueError) as error:
                reason = file_error_reason(error)
                self.warn(
                    f"judge.{key}: cannot read {path!r} ({reason}), so the built-in prompt is used. The path "
                    "is relative to the configuration's folder"
                )
        summarization, prompt = (
            section.section("summarization"),
            self._file(section.take("summaryPromptPath")),
        )
        summary = {
            **(self._summarization(summarization) if summarization else {}),
            **({"prompt": prompt} if prompt else {}),
        }
        judge: JsonObject = {
            "enabled": section.take("enabled", True),
            "model": model,
            "instruction": instruction or section.take("systemPrompt", ""),
            "panel": [{"id": self._id(section, "judge")}],
            **({} if temperature is None else {"temperature": temperature}),
            **({"summary": summary} if summary else {}),
        }
        for label in ("name", "role"):  # neither changes what a judge does
            section.take(label)
        self._done(section)
        return judge

    def debate(self, section: _DialecticSection) -> JsonObject:
        rounds = section.take("rounds", DEFAULT_ROUNDS)
        settings: JsonObject = {"rounds": rounds, "termination": self._termination(section)}
        method = section.take("synthesisMethod", "judge")
        if method != "judge":
            self.warn(
                f"debate.synthesisMethod: {method!r} is ignored, because the judge always writes the "
                "solution. Use 'judge'"
            )
        if not section.take("includeFullHistory", True):
            self.warn(
                "debate.includeFullHistory: false is ignored, because each debater always sees its own part "
                "of the history. Use debate.summarization to shorten it"
            )
        timeout = section.take("timeoutPerRound")
        if timeout is not None:
            if not isinstance(timeout, int | float) or not isinstance(rounds, int):
                raise ConfigError(f"debate.timeoutPerRound: give milliseconds, not {timeout!r}")
            seconds = rounds * timeout / 1000
            settings["limits"] = {"wall_clock_s": seconds}
            self.warn(
                f"debate.timeoutPerRound: Moot limits all rounds together, here to {seconds:g} s. Change the "
                "limit with `limits.wall_clock_s` in a Moot configuration"
            )
        settings["clarifications"] = {
            "enabled": bool(section.take("interactiveClarifications", False)),
            "max_per_debater": section.take("clarificationsMaxPerAgent", DEFAULT_QUESTIONS),
        }
        summarization = section.section("summarization")
        if summarization is not None:
            settings["memory"] = {"perspectives": self._summarization(summarization)}
        self._done(section)
        return settings

    def _termination(self, section: _DialecticSection) -> JsonObject:
        condition = section.section("terminationCondition")
        if condition is None:
            return {"type": "fixed"}
        kind, threshold = condition.take("type", "fixed"), condition.take("threshold")
        self._done(condition)
        if kind not in ("fixed", "convergence"):
            self.warn(
                f"debate.terminationCondition.type: {kind!r} is ignored, so all rounds are run. Use "
                "'fixed' or 'convergence'"
            )
            return {"type": "fixed"}
        if kind == "fixed" or threshold is None:
            return {"type": kind}
        share = threshold / 100 if isinstance(threshold, int | float) and threshold > 1 else threshold
        return {"type": kind, "threshold": share}

    def _summarization(self, section: _DialecticSection) -> JsonObject:
        method = section.take("method")
        if method == "semantic":
            self.warn(
                f"{section.path}.method: 'semantic' becomes Moot's hierarchical summarizer. Use "
                "'length-based' for summaries of a limited length"
            )
        all_settings = {
            "enabled": section.take("enabled"),
            "threshold_chars": section.take("threshold"),
            "max_chars": section.take("maxLength"),
            "method": METHODS.get(method, method),
            "prompt": self._file(section.take("promptPath")) or None,
        }
        self._done(section)
        settings = {key: value for key, value in all_settings.items() if value is not None}
        self._perspectives.append(settings)
        return settings

    def budget(self) -> JsonObject:
        """Return the token budget that the configured summaries need.

        Return `{}` if the default budget is enough.
        """
        usual = Budget()
        summary, messages = usual.summary, usual.messages
        for each in self._perspectives:
            summary = max(summary, _tokens(each.get("max_chars")) + 100)
            messages = max(messages, _tokens(each.get("threshold_chars")) + usual.messages // 2)
        if (summary, messages) == (usual.summary, usual.messages):
            return {}
        total = usual.system + summary + messages
        return {"budget": {"total": total, "system": usual.system, "summary": summary, "messages": messages}}


def _tokens(chars: Any) -> int:
    return chars // CHARS_PER_TOKEN if isinstance(chars, int) else 0


STDIN = Path("-")
"""Path that means "read the configuration from stdin"."""
LEFT_OUT = object()
"""Marker for a setting to remove from the configuration."""

Warn = Callable[[str], object]
"""Function that is called with a warning for each ignored configuration value."""
log: Warn = logging.getLogger(__name__).warning


def file_data(path: Path | None, warn: Warn = log) -> JsonObject:
    """Return the settings in a configuration file, including the text of its prompt files.

    Args:
        path: Value of `--config`; if `None`, `MOOT_CONFIG` is used.
        warn: Function called with a warning for every configuration value that is ignored.

    Raises:
        ConfigError: The file cannot be read, or it is a dialectic file with an invalid value.
    """
    config_path = path or variable("MOOT_CONFIG")
    if config_path is None:
        return {}
    data, folder = load_config(config_path), Path(config_path).parent
    if is_dialectic(data):
        converted = from_dialectic(data, folder)
        for warning in converted.warnings:
            warn(f"warning: {warning}")
        data = converted.data
        try:
            validate(data)
        except ConfigError as error:
            raise ConfigError(converted.original_keys(str(error))) from error
    elif isinstance(context := data.get("context"), str):
        data["context"] = str((folder / context).absolute())
    elif isinstance(context, list) and all(isinstance(each, str) for each in context):
        data["context"] = [str((folder / each).absolute()) for each in context]
    return with_files(data, folder, warn)


def read_text(path: Path, what: str) -> str:
    """Return the text of a UTF-8 file without its byte order mark. The path `-` means stdin.

    Raises:
        InputError: The file cannot be read, or is not UTF-8 text.
    """
    try:
        return read_bytes(path, what).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {what} from {str(path)!r}: {file_error_reason(error)}") from error


def read_bytes(path: Path, what: str) -> bytes:
    """Return the content of a file as bytes. The path `-` means stdin.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {what} from {str(path)!r}: {file_error_reason(error)}") from error


def read_rubric(name_or_path: str, folder: Path) -> str | JsonObject:
    """Return the rubric in a file as JSON data. Return the name of a built-in rubric unchanged.

    Raises:
        ConfigError: There is no such rubric.
    """
    if name_or_path in rubric_names():
        return name_or_path
    path = folder / name_or_path
    return load_rubric(path if path.exists() else Path(name_or_path)).model_dump(mode="json")


PROMPTS = (
    "debaters.*.system_prompt",
    "debaters.*.summary_prompt",
    "debaters.*.clarification_prompt",
    "debaters.*.perspective.prompt",
    "judge.summary.prompt",
    "memory.summary_prompt",
    "memory.perspectives.prompt",
)
"""Dotted names of all settings that can name a prompt file. `*` matches every item of a list."""


def with_files(data: JsonObject, folder: Path, warn: Warn = log) -> JsonObject:
    """Replace references to files in configuration data with the contents of the files.

    Raises:
        ConfigError: A rubric, persona or reference document cannot be read. A prompt that cannot be read is
            replaced by the built-in one, with a warning.
    """
    readers: dict[str, Callable[[str, object], object]] = {
        **dict.fromkeys(PROMPTS, partial(_prompt, folder, warn)),
        "debaters.*.persona": partial(_persona, folder),
        "debaters.*.reference_documents.*": partial(_reference_document, folder),
    }
    filled: object = with_rubrics(data, folder)
    for place, read in readers.items():
        *_, key = keys = place.split(".")
        filled = _replace(filled, keys, partial(read, key))
    return cast(JsonObject, filled)


def with_rubrics(data: JsonObject, folder: Path) -> JsonObject:
    """Replace each rubric file's name in configuration data with the file's contents.

    Raises:
        ConfigError: A rubric file cannot be read.
    """
    filled: object = data
    for place in ("judge.rubric", "judge.panel.*.rubric"):
        filled = _replace(filled, place.split("."), partial(_rubric, folder))
    return cast(JsonObject, filled)


def _rubric(folder: Path, value: object) -> object:
    return read_rubric(value, folder) if isinstance(value, str) else value


def _text(folder: Path, key: str, value: object) -> object:
    """Return the text of the file that an `@FILE` reference names. Return any other value unchanged."""
    if not isinstance(value, str) or not value.startswith("@"):
        return value
    try:
        return read_text(folder / value[1:], key)
    except InputError as error:
        raise ConfigError(str(error)) from error


def _persona(folder: Path, key: str, value: object) -> object:
    """Replace each file reference such as `@FILE` in a persona with the file's text."""
    if isinstance(value, Mapping):
        return {title: _text(folder, f"{key}.{title}", text) for title, text in value.items()}
    return _text(folder, key, value)


def _prompt(folder: Path, warn: Warn, key: str, value: object) -> object:
    try:
        return _text(folder, key, value)
    except ConfigError as error:
        warn(f"{error}: the built-in prompt is used")
        return LEFT_OUT


def _reference_document(folder: Path, _: str, value: object) -> object:
    """Replace the `@FILE` reference of a reference document with the file's text.

    The document's default name is that of the file. Any other value is returned unchanged.
    """
    document = {"text": value} if isinstance(value, str) else value
    raw_text = document.get("text") if isinstance(document, Mapping) else None
    text = _text(folder, "reference_documents", raw_text)
    if not isinstance(document, Mapping) or text is raw_text:
        return value
    return {"name": Path(str(raw_text)[1:]).stem, **document, "text": text}


def _replace(data: object, keys: Sequence[str], read: Callable[[object], object]) -> object:
    """Return a copy of configuration data in which one value is replaced.

    `keys` is the path of the value, and `read` returns the new value for the old one.
    """
    if not keys:
        return read(data)
    key, *rest = keys
    if key == "*":
        return [_replace(each, rest, read) for each in data] if isinstance(data, list) else data
    if not isinstance(data, Mapping) or key not in data:
        return data
    value = _replace(data[key], rest, read)
    if value is LEFT_OUT:
        return {name: each for name, each in data.items() if name != key}
    return {**data, key: value}


def read(
    file: Path | None = None, options: Mapping[str, object] | None = None, warn: Warn = log
) -> list[JsonObject]:
    """Return the settings of each configuration source, without merging or validating them.

    Options override the file, and the file overrides the environment.

    Args:
        file: Value of `--config`; if `None`, the file of `MOOT_CONFIG` is used, if any.
        options: Values by dotted key; `None` counts as missing.
        warn: Function called with a warning for every configuration value that is ignored.

    Raises:
        ConfigError: A file cannot be read.
    """
    model = variable("MOOT_MODEL")
    environment = {"model": model} if model else {}
    return [environment, file_data(file, warn), nested_settings(options or {})]


def merge(*layers: Mapping[str, Any]) -> JsonObject:
    """Merge layers of nested settings recursively, letting later layers override earlier ones."""
    return merge_settings(*layers)


def validate(data: Mapping[str, object]) -> DebateConfig:
    """Validate configuration data, and add the protocol's defaults.

    Raises:
        ConfigError: One line for each error, with the key as the user writes it.
    """
    return make_config(data, registry)


def check_names(config: DebateConfig) -> None:
    """Check that the protocol, the summarizers and the rubrics that a configuration names exist.

    Raises:
        ConfigError: A name is unknown, or the protocol cannot run the configuration.
    """
    protocol = registry.protocol_named(config.protocol)
    protocol.check(config)
    check_summarizers(config)
    for judge in config.judge.judges():
        rubric_for(judge, config, protocol.judge_spec.rubric)


def authorize(
    config: DebateConfig,
    operator: DebateConfig | None = None,
    granted: Collection[boundary.Capability] = (),
    safe: Collection[boundary.CapabilityKind | boundary.Capability] = (),
) -> boundary.Permissions:
    """Return the permissions of a debate, limited to what the operator allows.

    Args:
        config: Validated configuration of a request, an import or a stored state.
        operator: Configuration that the operator gave this run or server, in addition to `MOOT_CONFIG`.
        granted: Capabilities granted to this debate before.
        safe: Capabilities that need no permission because the program supplies them itself.
    """
    operators = [each for each in (operators_config(), operator) if each is not None]
    allowed = {*granted, *(capability for each in operators for capability in boundary.capabilities_of(each))}
    return boundary.Permissions(boundary.within_ceilings(config, operators, allowed), allowed, safe)


def operators_limits(config: DebateConfig, operator: DebateConfig | None = None) -> DebateConfig:
    """Return a configuration with only the operator's limits.

    A limit that the operator raised for this debate is left out.
    """
    operators = [each for each in (operators_config(), operator) if each is not None]
    return boundary.only_ceilings(config, operators)


def authorize_operator(config: DebateConfig) -> boundary.Permissions:
    """Return permissions for everything that the operator's own configuration uses.

    A limit in `MOOT_CONFIG` applies unless the configuration explicitly sets a higher number.
    """
    operators = [operators_config()]
    granted = {*boundary.capabilities_of(config), *boundary.raised_limit_capabilities(config, operators)}
    return boundary.Permissions(boundary.within_ceilings(config, operators, granted), granted)


def freeze(config: DebateConfig) -> JsonObject:
    """Convert a configuration, including its defaults, to JSON data for the debate's state."""
    return config.to_json()


def read_config(
    file: Path | None = None, options: Mapping[str, object] | None = None, warn: Warn = log
) -> DebateConfig:
    """Read and validate the operator's configuration from all of its sources.

    Raises:
        ConfigError: The configuration is not valid.
    """
    return validate(merge(*read(file, options, warn)))


def requested_config(operator: DebateConfig, *requests: Mapping[str, object]) -> DebateConfig:
    """Return the configuration for a request, within the operator's limits.

    The requested settings override those of the operator. Without debaters in any layer, those of the
    protocol are used. Requests cannot change the settings of the operator's models and MCP servers.

    Args:
        operator: Configuration with the defaults.
        requests: Layers; later ones override earlier ones, and `None` counts as missing.

    Raises:
        ConfigError: The result is not valid.
    """
    base = freeze(operator)
    if operator.debaters == validate({"protocol": operator.protocol}).debaters:
        del base["debaters"]
    return boundary.within_ceilings(
        validate(merge(base, *(_allowed_settings(each, operator) for each in requests))), [operator], ()
    )


def operators_config() -> DebateConfig:
    """Return the operator's configuration, as set by `MOOT_CONFIG` and `MOOT_MODEL`.

    The result is cached.

    Raises:
        ConfigError: The file is not valid.
    """
    return _operators_config(variable("MOOT_CONFIG"), variable("MOOT_MODEL"))


@lru_cache(maxsize=4)
def _operators_config(file: str | None, model: str | None) -> DebateConfig:
    return read_config()


def _allowed_settings(request: Mapping[str, object], operator: DebateConfig) -> JsonObject:
    """Return the settings of a request that the operator allows.

    Values of `None` are left out, and so are the operator's models and MCP servers.
    """
    if not isinstance(request, Mapping):
        raise ConfigError(
            f"settings: {request!r:.60} is not a mapping: give keys and values, such as `{{turns: 4}}`"
        )
    settings = _without_none(request)
    if (
        isinstance(debaters := settings.get("debaters"), list | tuple)
        and len(debaters) > participants.MAX_REQUESTED_DEBATERS
    ):
        raise ConfigError(
            f"debaters: the request names {len(debaters)} debaters, but at most "
            f"{participants.MAX_REQUESTED_DEBATERS} are allowed"
        )
    panel = judge.get("panel") if isinstance(judge := settings.get("judge"), Mapping) else None
    if isinstance(panel, list | tuple) and len(panel) > participants.MAX_REQUESTED_JUDGES:
        raise ConfigError(
            f"judge.panel: the request has {len(panel)} judges, but at most "
            f"{participants.MAX_REQUESTED_JUDGES} are allowed"
        )
    for key, operator_settings in (("models", operator.models), ("mcp_servers", operator.mcp_servers)):
        if isinstance(requested_settings := settings.get(key), dict):
            settings[key] = {
                name: each for name, each in requested_settings.items() if name not in operator_settings
            }
    return settings


def _without_none(settings: Mapping[str, object]) -> JsonObject:
    return {
        key: _without_none(value) if isinstance(value, Mapping) else value
        for key, value in settings.items()
        if value is not None
    }
