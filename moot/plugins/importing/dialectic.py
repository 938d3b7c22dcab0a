"""Converter of configuration files of the debate program `dialectic`.

Every field is converted or named in a warning. Thresholds stay in characters, and the token budget of prompts
is raised if they need it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moot.config import memory_config, participants
from moot.prompts.templates import ROLE_NAMES
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, file_error_reason

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
    "clarifications.rounds": "debate.clarificationsMaxIterations",
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
DEFAULT_THRESHOLD_CHARS = 5000
"""Number of characters above which dialectic summarises a history by default."""
DEFAULT_ROUNDS = 3
DEFAULT_QUESTIONS = 5
DEFAULT_QUESTION_ROUNDS = 3
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
    defaults: Mapping[str, str]
    """Warnings about settings that the file does not state, by dotted key."""
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


def is_dialectic(data: Mapping[str, object]) -> bool:
    """Return True if a configuration was written for `dialectic`, another debate program."""
    return "agents" in data or "debate" in data


def convert(data: JsonObject, folder: Path) -> Converted | None:
    """Convert a configuration of the debate program `dialectic`. Return `None` for any other one.

    Raises:
        ConfigError: A part has the wrong type, or names an unknown provider.
    """
    return from_dialectic(data, folder) if is_dialectic(data) else None


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
    protocol = "single" if len(debaters) == 1 else "council"
    settings: JsonObject = {"protocol": protocol, **file.debate(debate)}
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
    defaults: dict[str, str] = {}
    if protocol == "single":
        defaults["protocol"] = (
            "agents: only one agent is enabled, so it answers once, and nobody criticises or judges it. "
            "Enable another agent for a council"
        )
    if any(FILE_TOOLS & set(each["tools"]) for each in debaters):
        settings["context"] = str(folder.absolute())
        defaults["context"] = (
            f"tools read files in {str(folder)!r} only: choose another folder with --context"
        )
    file.warn_of_ignored(sorted(data.keys() - {"agents", "judge", "debate"}))
    return Converted(
        {key: value for key, value in settings.items() if value not in ({}, [])},
        file.warnings,
        defaults,
        list(enabled),
    )


class _DialecticSection:
    """Part of a configuration file, with a record of which keys were read.

    The configuration belongs to the debate program `dialectic`.
    """

    def __init__(self, data: object, path: str) -> None:
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
        self._perspectives: list[Mapping[str, object]] = []

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

    def _file(self, path: object) -> str:
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
            if not isinstance(timeout, int | float):
                raise ConfigError(f"debate.timeoutPerRound: give milliseconds, not {timeout!r}")
            if not isinstance(rounds, int):
                raise ConfigError(f"debate.rounds: give a number of rounds, not {rounds!r}")
            seconds = rounds * timeout / 1000
            settings["limits"] = {"wall_clock_s": seconds}
            self.warn(
                f"debate.timeoutPerRound: Moot limits all rounds together, here to {seconds:g} s. Change the "
                "limit with `limits.wall_clock_s` in a Moot configuration"
            )
        settings["clarifications"] = {
            "enabled": bool(section.take("interactiveClarifications", False)),
            "max_per_debater": section.take("clarificationsMaxPerAgent", DEFAULT_QUESTIONS),
            "rounds": section.take("clarificationsMaxIterations", DEFAULT_QUESTION_ROUNDS),
        }
        summarization = section.section("summarization") or _DialecticSection({}, "debate.summarization")
        perspectives = self._summarization(summarization)
        self._perspectives[-1] = {"threshold_chars": DEFAULT_THRESHOLD_CHARS, **perspectives}
        settings["memory"] = {"perspectives": self._perspectives[-1]}
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
        if method is not None and method not in METHODS:
            raise ConfigError(
                f"{section.path}.method: {method!r} is not a summarization method: use one of "
                f"{', '.join(METHODS)}"
            )
        if method == "semantic":
            self.warn(
                f"{section.path}.method: 'semantic' becomes Moot's hierarchical summarizer. Use "
                "'length-based' for summaries of a limited length"
            )
        all_settings = {
            "enabled": section.take("enabled"),
            "threshold_chars": section.take("threshold"),
            "max_chars": section.take("maxLength"),
            "method": METHODS.get(method),
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
        usual = memory_config.Budget()
        summary, messages = usual.summary, usual.messages
        for each in self._perspectives:
            summary = max(summary, _tokens(each.get("max_chars")) + 100)
            messages = max(messages, _tokens(each.get("threshold_chars")) + usual.messages // 2)
        if (summary, messages) == (usual.summary, usual.messages):
            return {}
        total = usual.system + summary + messages
        return {"budget": {"total": total, "system": usual.system, "summary": summary, "messages": messages}}


def _tokens(chars: object) -> int:
    return chars // CHARS_PER_TOKEN if isinstance(chars, int) else 0
