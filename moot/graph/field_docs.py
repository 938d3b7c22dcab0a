"""The docstring under each field of a class, read from its source: pydantic models and typed dicts alike.

Reading the source takes time that an import must not take, so this is done where a schema is wanted.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import lru_cache
from itertools import pairwise
from typing import Any

OURS = ("moot", "__main__")
"""Packages whose fields are documented this way."""


@lru_cache(maxsize=128)
def field_docs(kind: type) -> dict[str, str]:
    """Return the fields' docstrings on one line each, those of bases included."""
    bases = [*reversed(kind.__mro__[1:]), *getattr(kind, "__orig_bases__", ())]
    docs: dict[str, str] = {}
    for base in (*bases, kind):
        if isinstance(base, type) and base.__module__.split(".")[0] in OURS:
            docs |= _own_docs(base)
    return docs


def _own_docs(kind: type) -> dict[str, str]:
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    statements = body.body if isinstance(body, ast.ClassDef) else []
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(statements)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def describe(schema: dict[str, Any], kinds: dict[str, type]) -> dict[str, Any]:
    """Put the docstrings into a JSON Schema as descriptions, in place, and return it.

    Args:
        schema: what pydantic makes of the type named in its `title`.
        kinds: the types by name, of the schema itself and of its `$defs`.
    """
    for name, part in {**schema.get("$defs", {}), str(schema.get("title")): schema}.items():
        for key, text in field_docs(kinds[name]).items() if name in kinds else ():
            if key in part.get("properties", {}):
                part["properties"][key].setdefault("description", text)
    return schema
