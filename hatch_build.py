"""Build hook: a package index shows the README without the repository, so its links need whole addresses."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def with_whole_addresses(readme: str, repository: str) -> str:
    """Return the README with the addresses of its pictures and links in the repository."""
    files = repository.replace("://github.com/", "://raw.githubusercontent.com/")
    readme = re.sub(r"!\[([^]]*)\]\((?!https?:)([^)]+)\)", rf"![\1]({files}/main/\2)", readme)
    return re.sub(r"(?<!!)\[([^]]*)\]\((?!https?:|#)([^)]+)\)", rf"[\1]({repository}/blob/main/\2)", readme)


class Hook(MetadataHookInterface):
    """Sets the field `readme` of the package's metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Read the README, and store it with whole addresses."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = with_whole_addresses(text, metadata["urls"]["Source"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
