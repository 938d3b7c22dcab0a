"""Converter from the file `debate-config.json` of the program dialectic to a council's configuration.

Every field is converted or named in a warning. Thresholds stay in characters. The token budget of prompts is
raised if they need it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moot.prompts.templates import ROLE_NAMES
from moot.state.config.memory_config import Budget
from moot.state.config.participants import NAME_CHARS, RESERVED_IDS, SLUG, slug
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, file_error_reason

OPENROUTER = {"base_url": "https://openrouter.ai/api/v1", "api_key_env": "OPENROUTER_API_KEY"}
PROVIDERS: Mapping[str, Mapping[str, str]] = {"openai": {}, "openrouter": OPENROUTER}
TOOLS = {"context_search": "search_debate", "file_read": "read_file", "list_files": "list_files"}
FILE_TOOLS = frozenset({"read_file", "list_files"})
METHODS = {"length-based": "llm", "semantic": "hierarchical"}
"""Mapping from summarization methods of the program called dialectic to Moot's summarizers."""

INSTEAD = {
    "maxTokens": "`memory.budget.reply` in a Moot configuration",
    "trace": "the environment variable MOOT_OTEL=1",
}
"""Moot's replacements for settings of the debate program dialectic. Each key is the last component of a
setting's dotted name."""

SECTIONS = {
    "rounds": "debate.rounds",
    "termination": "debate.terminationCondition",
    "limits.wall_clock_s": "debate.timeoutPerRound",
    "clarifications.enabled": "debate.interactiveClarifications",
    "clarifications.max_per_debater": "debate.clarificationsMaxPerAgent",
    "memory.perspectives": "debate.summarization",
}
"""Mapping from Moot's setting paths to the setting paths in configuration files of the program called
dialectic. Other paths differ only in `FIELDS`."""
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
"""Mapping from Moot's field names to the field names in configuration files of the program called
dialectic."""

DEFAULT_ROUNDS = 3
DEFAULT_QUESTIONS = 5
CHARS_PER_TOKEN = 3
"""Estimated number of characters per token. The value is low for English, so that budgets from character
counts are large enough."""


@dataclass(frozen=True)
class Converted:
    """Result of converting a configuration of the dialectic program to a Moot configuration."""

    data: JsonObject
    """Configuration data to pass to `make_config`. `@FILE` names a prompt file in the configuration's
    folder."""
    warnings: list[str]
    agents: list[int]
    """Index of each debater in the `agents` list of the original configuration file. Agents that are not
    enabled have no debater."""

    def original_keys(self, errors: str) -> str:
        """Return validation errors that use the setting names from the original configuration file."""
        return "\n".join(
            f"{self._original_key(key)}{colon}{why}"
            for key, colon, why in (line.partition(": ") for line in errors.splitlines())
        )

    def _original_key(self, key: str) -> str:
        for ours, original in SECTIONS.items():
            if key == ours or key.startswith(f"{ours}."):
                return _renamed(original, key.removeprefix(ours))
        if found := re.match(r"debaters\.(\d+)", key):
            return _renamed(f"agents.{self.agents[int(found[1])]}", key[found.end() :])
        return _renamed("", key)


def _renamed(start: str, fields: str) -> str:
    return start + ".".join(FIELDS.get(field, field) for field in fields.split("."))


def is_dialectic(data: Mapping[str, Any]) -> bool:
    """Return True if a configuration file has the format of the debate program dialectic."""
    return "agents" in data or "debate" in data


def from_dialectic(data: Mapping[str, Any], folder: Path) -> Converted:
    """Convert a configuration of the dialectic program to a Moot configuration.

    Paths in the file are relative to `folder`.

    Raises:
        ConfigError: A part has the wrong type, or names an unknown provider.
    """
    agents, judge, file = data.get("agents") or [], data.get("judge"), _DialecticFile(folder)
    debate = _DialecticSection(data.get("debate") or {}, "debate")
    if not isinstance(agents, list):
        raise ConfigError("agents: the value must be a list")
    sections = [_DialecticSection(each, f"agents.{number}") for number, each in enumerate(agents)]
    enabled = {
        number: made for number, each in enumerate(sections) if (made := file.debater(each)) is not None
    }
    debaters = list(enabled.values())
    ours: JsonObject = {"protocol": "council", **file.debate(debate)}
    if debaters:
        ours["debaters"] = debaters
    else:
        file.warn("agents: no agent is enabled, so Moot's default council debates")
    ours["judge"] = {} if judge is None else file.judge(_DialecticSection(judge, "judge"))
    named = [each["model"] for each in (*debaters, ours["judge"]) if each.get("model")]
    if named:
        ours["model"] = ours["judge"].get("model") or named[0]
    ours["models"] = file.models
    ours["memory"] = {**ours.get("memory", {}), **file.budget()}
    if any(FILE_TOOLS & set(each["tools"]) for each in debaters):
        ours["context"] = str(folder.absolute())
        file.warn(f"tools read files in {str(folder)!r} only: choose another folder with --context")
    file.warn_of_ignored(sorted(data.keys() - {"agents", "judge", "debate"}))
    return Converted(
        {key: value for key, value in ours.items() if value not in ({}, [])}, file.warnings, list(enabled)
    )


class _DialecticSection:
    """Configuration section that keeps track of which of its keys were read.

    The file belongs to the debate program dialectic.
    """

    def __init__(self, data: Any, path: str) -> None:
        if not isinstance(data, Mapping):
            raise ConfigError(f"{path}: {data!r} is not a mapping: give keys and values")
        self.left = dict(data)
        """Keys that were not read."""
        self.path = path

    def take(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, and mark the key as read."""
        value = self.left.pop(key, None)
        return default if value is None else value

    def section(self, key: str) -> _DialecticSection | None:
        """Return the nested section under a key, or `None` if the key is missing."""
        value = self.take(key)
        return None if value is None else _DialecticSection(value, f"{self.path}.{key}")


class _DialecticFile:
    """Configuration file of the debate program dialectic, for conversion to Moot's format."""

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
        """Warn of all keys that Moot has no setting for, with the settings to use instead."""
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
        if slug(role) not in ROLE_NAMES:
            self.warn(
                f"{section.path}.role: {role!r} is not a built-in role, so a generalist's prompts are used. "
                f"Use one of {', '.join(sorted(ROLE_NAMES))}, or set systemPromptPath to your own prompt"
            )
        debater = {
            "id": self._id(section, name),
            "name": name[:NAME_CHARS],
            "role": role,
            "model": self._model(section),
            "temperature": section.take("temperature"),
            "system_prompt": self._file(section.take("systemPromptPath")) or section.take("systemPrompt", ""),
            "summary_prompt": self._file(section.take("summaryPromptPath")),
            "clarification_prompt": self._file(section.take("clarificationPromptPath")),
            "tools": tools,
            "tool_call_limit": section.take("toolCallLimit", 10),
        }
        own = section.section("summarization")
        if own is not None:
            debater["perspective"] = self._summarization(own)
        self._done(section)
        return debater if enabled else None

    def _id(self, section: _DialecticSection, name: str) -> str:
        own = str(section.take("id", ""))
        given = own or name
        made = given if SLUG.fullmatch(given) else slug(given)
        made = f"{made}-agent" if made in RESERVED_IDS else made
        if own and made != own:
            self.warn(
                f"{section.path}.id: {given!r} becomes {made!r}, because an id has only lower-case letters, "
                "digits and hyphens, and no reserved name"
            )
        return made

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
        former = self._providers.setdefault(str(model), provider)
        if former != provider:
            self.warn(
                f"{section.path}.provider: {provider!r} is ignored, because another agent uses the model "
                f"{model!r} through {former}. Use the same provider for both, or another model name"
            )
        if PROVIDERS[former]:
            self.models[str(model)] = dict(PROVIDERS[former])
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
        own, prompt = section.section("summarization"), self._file(section.take("summaryPromptPath"))
        summary = {**(self._summarization(own) if own else {}), **({"prompt": prompt} if prompt else {})}
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
        ours: JsonObject = {"rounds": rounds, "termination": self._termination(section)}
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
            ours["limits"] = {"wall_clock_s": seconds}
            self.warn(
                f"debate.timeoutPerRound: Moot limits all rounds together, here to {seconds:g} s. Change the "
                "limit with `limits.wall_clock_s` in a Moot configuration"
            )
        ours["clarifications"] = {
            "enabled": bool(section.take("interactiveClarifications", False)),
            "max_per_debater": section.take("clarificationsMaxPerAgent", DEFAULT_QUESTIONS),
        }
        summarization = section.section("summarization")
        if summarization is not None:
            ours["memory"] = {"perspectives": self._summarization(summarization)}
        self._done(section)
        return ours

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
        known = {
            "enabled": section.take("enabled"),
            "threshold_chars": section.take("threshold"),
            "max_chars": section.take("maxLength"),
            "method": METHODS.get(method, method),
            "prompt": self._file(section.take("promptPath")) or None,
        }
        self._done(section)
        given = {key: value for key, value in known.items() if value is not None}
        self._perspectives.append(given)
        return given

    def budget(self) -> JsonObject:
        """Return a token budget large enough for the longest configured summaries."""
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
