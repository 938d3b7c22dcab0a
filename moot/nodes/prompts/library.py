"""Loads prompts: Markdown files beside this module, `{name}` for each placeholder.

Values are put in as they are and never read as templates themselves, so text of a debater is data.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Prompt:
    """One prompt with its placeholders."""

    name: str
    template: str
    placeholders: frozenset[str]

    @property
    def sha256(self) -> str:
        """SHA-256 of the template, for `prompt_sources`."""
        return hashlib.sha256(self.template.encode()).hexdigest()

    def render(self, **values: str) -> str:
        """Put the values in; blank lines that empty values leave are folded.

        Raises:
            KeyError: a placeholder without a value.
        """
        text = _PLACEHOLDER.sub(lambda match: values[match[1]], self.template)
        return re.sub(r"\n{3,}", "\n\n", text).strip() if "" in values.values() else text.strip()


LOADED: dict[str, Prompt] = {}
"""Every prompt file that this process has loaded, by name."""


def make_prompt(name: str, template: str, *placeholders: str) -> Prompt:
    """Check a template against the placeholders that its node fills.

    Raises:
        ValueError: the template has others, or lacks one.
    """
    found = frozenset(_PLACEHOLDER.findall(template))
    if found != frozenset(placeholders):
        raise ValueError(f"prompt {name!r} has placeholders {sorted(found)}, not {sorted(placeholders)}")
    return Prompt(name, template, found)


def load_prompt(name: str, *placeholders: str) -> Prompt:
    """Load the Markdown file of this name and check its placeholders; call it at import.

    Raises:
        ValueError: the file has other placeholders.
    """
    template = (files("moot.nodes.prompts") / f"{name}.md").read_text(encoding="utf-8")
    LOADED[name] = make_prompt(name, template, *placeholders)
    return LOADED[name]
