"""Reads roles: Markdown files beside this module, a `## section` for each part.

A role says who a debater is (`system`), what it minds in each phase, what its summaries keep, and what it
would ask before it begins. The configuration can replace its system, summary and clarification prompts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from moot.state.config import DebaterConfig, slug

SECTIONS = ("system", "propose", "critique", "refine", "summary", "clarify")
ROLES = ("architect", "data-modeling", "generalist", "performance", "security", "simplicity", "testing")
"""Roles that ship, by name."""

GENERALIST = "generalist"
"""Whose prompts a role that does not ship gets."""

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
"""All that a role which ships is called."""
_HEADING = re.compile(r"^## (\w+)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Role:
    """What one role says, section by section."""

    name: str
    sections: Mapping[str, str]

    def says(self, section: str) -> str:
        """Return a section's text, `""` where it has none."""
        return self.sections.get(section, "")


@lru_cache(maxsize=1)
def shipped_roles() -> dict[str, Role]:
    """Return the roles that ship, by name."""
    roles = {}
    for name in ROLES:
        text = (files("moot.nodes.roles") / f"{name}.md").read_text(encoding="utf-8")
        parts = _HEADING.split(text)[1:]
        sections = zip(parts[::2], map(str.strip, parts[1::2]), strict=True)
        roles[name] = Role(name, dict(sections))
    return roles


def shipped_role(debater: DebaterConfig) -> Role | None:
    """Return the role that a debater's `role` or id names, `None` where none of that name ships."""
    for named in (slug(debater.role), debater.id):
        name = _ALIASES.get(named, named)
        if name in shipped_roles():
            return shipped_roles()[name]
    return None


def role_of(debater: DebaterConfig) -> Role:
    """Return a debater's role: a shipped one, else the generalist."""
    return shipped_role(debater) or shipped_roles()[GENERALIST]
