"""JSON Schemas of configurations, of what a server is asked, and of `moot.debate/1`, made from the types.

Every field has the docstring under it as its description. Reading those from the source takes time that an
import must not take, so this is done where a schema is wanted.

`python -m moot.graph.json_schemas > docs/debate.schema.json` writes the copy in the documentation.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import textwrap
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast, get_args, get_type_hints

from pydantic import BaseModel, Field, TypeAdapter, create_model
from typing_extensions import is_typeddict

from moot.graph.documents import FORMAT, DebateDocument
from moot.nodes.memory.summarizers.summarizer_table import SUMMARIZERS
from moot.state.config import DebateConfig
from moot.state.config.memory_config import NO_SUMMARY
from moot.state.config.section import protocol_sections, terms_table
from moot.state.conversation import ConversationInput, ConversationOutput
from moot.state.entries import JsonObject

if TYPE_CHECKING:
    from moot.graph.debate import DebateGraph

DIALECT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
FOREIGN = frozenset({"builtins", "pydantic", "typing", "typing_extensions"})
"""Packages whose fields are not documented this way; plugged-in ones are like our own."""


def document_schema() -> JsonObject:
    """Return the schema of documents; keys that it does not know are allowed, so that they can grow."""
    schema = TypeAdapter(DebateDocument).json_schema()
    describe(schema, DebateDocument)
    return {**DIALECT, "$id": FORMAT, **schema}


def whole_config() -> type[DebateConfig]:
    """Return the configuration with the sections of all protocols, plugged-in ones too, as fields."""
    terms_table().load_plugged()
    sections: JsonObject = {
        key: (settings, Field(default_factory=settings, description=settings.__doc__))
        for key, settings in protocol_sections().items()
    }
    first_words = str(DebateConfig.__doc__).partition("\n")[0]
    return create_model(
        "DebateConfig", __base__=DebateConfig, __doc__=first_words, __module__="protocols", **sections
    )


def config_schema() -> JsonObject:
    """Return the schema of configuration files, each key with its meaning."""
    whole = whole_config()
    schema = whole.model_json_schema() | {"additionalProperties": False}
    describe(schema, whole)
    schema["properties"]["protocol"]["enum"] = sorted(terms_table().PROTOCOLS)
    schema["$defs"]["MemoryConfig"]["properties"]["summarizer"]["examples"] = [NO_SUMMARY, *SUMMARIZERS]
    return {**DIALECT, **schema}


def graph_schemas(graph: DebateGraph) -> dict[str, JsonObject]:
    """Return what a server tells of the graph: its configuration, input and output, each with its meaning."""
    given, output = graph.get_input_jsonschema(), graph.get_output_jsonschema()
    describe(given, ConversationInput)
    describe(output, ConversationOutput)
    return {"context": config_schema(), "input": given, "output": output}


@lru_cache
def field_docs(kind: type) -> dict[str, str]:
    """Return the docstrings under a pydantic model's or typed dict's fields, on one line each.

    Those of bases are included: a typed dict names the bases that it was written with, and none of theirs.
    """
    docs: dict[str, str] = {}
    for base in (*reversed(kind.__mro__[1:]), *getattr(kind, "__orig_bases__", ())):
        if isinstance(base, type):
            docs |= field_docs(base)
    if kind.__module__ not in sys.modules or kind.__module__.partition(".")[0] in FOREIGN:
        return docs
    try:
        source = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except OSError:  # made by a call, since its keys are no names: nothing can be written under them
        return docs
    for pair in pairwise(cast(ast.ClassDef, source.body[0]).body):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                docs[name] = " ".join(said.split())
    return docs


def describe(schema: JsonObject, kind: type) -> None:
    """Put the docstrings of a type, and of all types in its fields, into its JSON Schema as descriptions.

    A field without one has that of the type that it refers to.
    """
    kinds: dict[str, type] = {}
    waiting: list[Any] = [kind]
    for each in waiting:  # which grows
        if not is_typeddict(each) and not (isinstance(each, type) and issubclass(each, BaseModel)):
            waiting += get_args(each)
        elif each.__name__ not in kinds:
            kinds[each.__name__] = each
            waiting += get_type_hints(each, include_extras=True).values()

    defs = schema.get("$defs", {})
    for name, part in {**defs, kind.__name__: schema}.items():
        docs = field_docs(kinds[name]) if name in kinds else {}
        for key, each in part.get("properties", {}).items():
            meant = defs.get(str(each.get("$ref")).removeprefix("#/$defs/"), {}).get("description", "")
            if text := docs.get(key) or str(meant).partition("\n")[0]:
                each.setdefault("description", text)


if __name__ == "__main__":
    print(json.dumps(document_schema(), indent=2, ensure_ascii=False))
