"""The docstring under each field of a class, read from its source: pydantic models and typed dicts alike.

Reading the source takes time that an import must not take, so this is done where a schema is wanted.
"""

import ast
import inspect
import sys
import textwrap
from functools import lru_cache
from itertools import pairwise
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel
from typing_extensions import is_typeddict

from moot.state.entries import JsonObject

FOREIGN = frozenset({"builtins", "pydantic", "typing", "typing_extensions"})
"""Packages whose fields are not documented this way; plugged-in ones are like our own."""


@lru_cache
def field_docs(kind: type) -> dict[str, str]:
    """Return the fields' docstrings on one line each, those of bases included."""
    bases = [*reversed(kind.__mro__[1:]), *getattr(kind, "__orig_bases__", ())]
    docs: dict[str, str] = {}
    for base in (*bases, kind):
        module = getattr(base, "__module__", "")
        if isinstance(base, type) and module in sys.modules and module.split(".")[0] not in FOREIGN:
            # A typed dict names the bases it was written with, and none of theirs.
            docs |= _own_docs(base) if base is kind else field_docs(base)
    return docs


def _own_docs(kind: type) -> dict[str, str]:
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    except OSError:  # made by a call, since its keys are no names: nothing can be written under them
        return {}
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


def describe(schema: JsonObject, kind: type) -> None:
    """Put the docstrings of a type, and of all types in its fields, into its JSON Schema as descriptions.

    A field without one has that of the type that it refers to.
    """
    kinds, defs = _kinds_in(kind), schema.get("$defs", {})
    for name, part in {**defs, kind.__name__: schema}.items():
        docs = field_docs(kinds[name]) if name in kinds else {}
        for key, each in part.get("properties", {}).items():
            meant = defs.get(str(each.get("$ref")).removeprefix("#/$defs/"), {}).get("description", "")
            if text := docs.get(key) or str(meant).partition("\n")[0]:
                each.setdefault("description", text)


def _kinds_in(kind: type) -> dict[str, type]:
    kinds: dict[str, type] = {}
    waiting: list[Any] = [kind]
    for each in waiting:  # which grows
        if is_typeddict(each) or (isinstance(each, type) and issubclass(each, BaseModel)):
            if each.__name__ not in kinds:
                kinds[each.__name__] = each
                waiting += get_type_hints(each, include_extras=True).values()
        else:
            waiting += get_args(each)
    return kinds
