"""Loads prompts: Markdown files beside the code that uses them, `{name}` for each placeholder.

Values are put in as they are and never read as templates themselves, so text of a debater is data.
"""

import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Prompt:
    """One prompt with its placeholders."""

    name: str
    template: str

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
    return Prompt(name, template)


def load_prompt(name: str, *placeholders: str, home: str | Path | None = None) -> Prompt:
    """Load the Markdown file of this name and check its placeholders; call it at import.

    `home` is the package or folder that holds it, whose own name is put before the prompt's; `None` for the
    prompts that all share.

    Raises:
        ValueError: the file has other placeholders.
    """
    folder = home if isinstance(home, Path) else files(home or __package__)
    known_as = f"{folder.name}/{name}" if home else name
    template = (folder / f"{name}.md").read_text(encoding="utf-8")
    LOADED[known_as] = make_prompt(known_as, template, *placeholders)
    return LOADED[known_as]
