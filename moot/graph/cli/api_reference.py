"""The reference pages of configuration and Python, made from the types and the docstrings.

`python -m moot.graph.cli.api_reference` writes them into a folder, `docs` by default.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from moot.graph.cli.config_template import template

_PACKAGE = sys.modules["moot"]  # which is imported before any part of it
_MADE = "<!-- Written by `python -m moot.graph.cli.api_reference`; a test keeps it true. -->"


def pages() -> Mapping[str, str]:
    """Return the pages, Markdown, by file name."""
    configuration = f"""# Configuration

{_MADE}

Every setting with its meaning and its default, as `moot config init` writes it; TOML and JSON have the same
keys, `moot config schema` is the JSON Schema, and `moot config check FILE` says what is wrong with a file.

```yaml
{template()}```
"""
    names = "\n".join(part for name in sorted(_PACKAGE.__all__) for part in _entry(name))
    python = f"""# Python

{_MADE}

What `from moot import …` offers; [Embedding](embedding.md) shows it at work.

"""
    return {"configuration.md": configuration, "python.md": python + names}


def _entry(name: str) -> Iterator[str]:
    """Yield what is said of a name: of a class with its public methods, but for those of a configuration."""
    thing = getattr(_PACKAGE, name)
    yield f"## {name}\n"
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        yield f"`{thing}`\n"
        return
    if inspect.isfunction(thing):
        yield f"```text\n{name}{_signature(thing)}\n```\n"
    yield f"{_text(thing)}\n"
    own = vars(thing) if inspect.isclass(thing) and not hasattr(thing, "model_fields") else {}
    for key, method in own.items():
        if inspect.isfunction(method) and not key.startswith("_"):
            yield f"### {name}.{key}\n\n```text\n{key}{_signature(method)}\n```\n\n{_text(method)}\n"


def _signature(function: Callable[..., object]) -> str:
    return re.sub("'([^']+)'", r"\1", str(inspect.signature(function)))  # annotations are quoted


def _text(thing: object) -> str:
    """Return a docstring with its indented parts as they stand."""
    return "\n".join(
        f"- {line.strip()}" if line.startswith("    ") and not line.startswith("     ") else line
        for line in (inspect.getdoc(thing) or "").splitlines()
    ).replace("\n- ", "\n\n- ")


if __name__ == "__main__":
    for file_name, text in pages().items():
        (Path(sys.argv[1] if len(sys.argv) > 1 else "docs") / file_name).write_text(text, encoding="utf-8")
