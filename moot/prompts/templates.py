"""Prompt templates: Markdown files with `{name}` placeholders, beside the code that uses them.

Values are inserted verbatim and never parsed as templates, so text of a debater stays data.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from moot.state.config import DebaterConfig, slug

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class PromptTemplate:
    """Prompt template with placeholders of the form `{name}`."""

    name: str
    template: str
    path: str = ""
    """Path of the template file in the package, such as `moot/prompts/rules.md`. Empty without a file."""

    @property
    def sha256(self) -> str:
        """Return the SHA-256 hash of the template text. Debates record it in `prompt_sources`."""
        return hashlib.sha256(self.template.encode()).hexdigest()

    def render(self, **values: str) -> str:
        """Return the template's text with the placeholders replaced by `values`.

        Blank lines of empty values are removed.

        Raises:
            KeyError: a placeholder has no value.
        """
        text = _PLACEHOLDER.sub(lambda match: values[match[1]], self.template)
        return re.sub(r"\n{3,}", "\n\n", text).strip() if "" in values.values() else text.strip()


LOADED_TEMPLATES: dict[str, PromptTemplate] = {}
"""All prompt templates that this process has loaded, keyed by template name."""


def make_prompt_template(name: str, template: str, *placeholders: str) -> PromptTemplate:
    """Create a prompt template that contains exactly the given placeholders.

    Raises:
        ValueError: the template has unknown placeholders, or lacks one.
    """
    found = frozenset(_PLACEHOLDER.findall(template))
    if found != frozenset(placeholders):
        raise ValueError(
            f"prompt {name!r} must have the placeholders {sorted(placeholders)}, but has {sorted(found)}"
        )
    return PromptTemplate(name, template)


def load_prompt_template(name: str, *placeholders: str, home: str | Path | None = None) -> PromptTemplate:
    """Load a prompt template from a Markdown file, and check its placeholders.

    Call it at import.

    `home` is the package or folder of the file; its name becomes a prefix of the prompt's name. `None`: the
    shared prompts of this package.

    Raises:
        ValueError: the file has other placeholders.
    """
    folder = home if isinstance(home, Path) else files(home or __package__)
    known_as = f"{folder.name}/{name}" if home else name
    template = (folder / f"{name}.md").read_text(encoding="utf-8")
    made = make_prompt_template(known_as, template, *placeholders)
    path = f"{(home if isinstance(home, str) else __package__).replace('.', '/')}/{name}.md"
    LOADED_TEMPLATES[known_as] = replace(made, path=str(folder / f"{name}.md") if home is folder else path)
    return LOADED_TEMPLATES[known_as]


SECTIONS = ("system", "propose", "critique", "refine", "summary", "clarify")
ROLES = ("architect", "data-modeling", "generalist", "performance", "security", "simplicity", "testing")
"""Names of all built-in debater roles."""

MEMBER = "member"
"""Name of the role for debaters that have no built-in role. No configuration names this role."""

_ALIASES = {
    "kiss": "simplicity",
    "software-architect": "architect",
    "data-modeler": "data-modeling",
    "data-modeller": "data-modeling",
    "data-modelling": "data-modeling",
    "datamodeling": "data-modeling",
    "tester": "testing",
    "test-engineer": "testing",
    "performance-engineer": "performance",
    "security-engineer": "security",
}

ROLE_NAMES = frozenset({*ROLES, *_ALIASES})
"""All names by which a built-in role can be selected, including aliases."""
_HEADING = re.compile(r"^## (\w+)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Role:
    """Role of a debater, with its prompt texts keyed by section name."""

    name: str
    sections: Mapping[str, str]

    def says(self, section: str) -> str:
        """Return the text of one section of the role, or `""` if the role lacks this section."""
        return self.sections.get(section, "")


@lru_cache(maxsize=1)
def shipped_roles() -> dict[str, Role]:
    """Return all built-in roles, keyed by role name."""
    return {name: _read_role(name) for name in ROLES}


@cache
def _read_role(name: str) -> Role:
    text = (files("moot.prompts.roles") / f"{name}.md").read_text(encoding="utf-8")
    parts = _HEADING.split(text)[1:]
    sections = zip(parts[::2], map(str.strip, parts[1::2]), strict=True)
    return Role(name, dict(sections))


def shipped_role(debater: DebaterConfig) -> Role | None:
    """Return a debater's built-in role, or `None` if there is none."""
    for named in (slug(debater.role), debater.id):
        name = _ALIASES.get(named, named)
        if name in shipped_roles():
            return shipped_roles()[name]
    return None


def role_of(debater: DebaterConfig) -> Role:
    """Return a debater's built-in role, or the general role `member` if there is none."""
    return shipped_role(debater) or _read_role(MEMBER)
