"""JSON Schemas of the configuration, of the graph's input and output, and of the document `moot.debate/1`.

The schemas are generated from the types. A field's docstring becomes its description. Docstrings are read
from the source code only when a schema is requested, because that is slow.

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

from moot.config import DebateConfig, memory_config, section
from moot.documents import FORMAT, DebateDocument
from moot.memory.summarizers.registry import summarizer_names
from moot.protocols import registry
from moot.state.conversation import ConversationInput, ConversationOutput
from moot.state.entries import JsonObject

if TYPE_CHECKING:
    from moot.graph.runnable import DebateGraph

DIALECT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
UNDOCUMENTED = frozenset({"builtins", "pydantic", "typing", "typing_extensions"})
"""Packages whose classes have no field docstrings. Their source is not searched."""


def document_schema() -> JsonObject:
    """Return the schema of an exported document. Unknown keys are allowed, for later versions."""
    schema = TypeAdapter(DebateDocument).json_schema()
    describe(schema, DebateDocument)
    return {**DIALECT, "$id": FORMAT, **schema}


def whole_config() -> type[DebateConfig]:
    """Return a configuration class with the settings of all protocols, plug-ins included."""
    registry.load_plugins()
    sections: JsonObject = {
        key: (settings, Field(default_factory=settings, description=inspect.getdoc(settings)))
        for key, settings in section.protocol_sections(registry.PROTOCOLS).items()
    }
    first_words = str(DebateConfig.__doc__).partition("\n")[0]
    return create_model(
        "DebateConfig", __base__=DebateConfig, __doc__=first_words, __module__="protocols", **sections
    )


def config_schema() -> JsonObject:
    """Return the JSON Schema of debate configuration files, with a description of each key."""
    config_type = whole_config()
    schema = config_type.model_json_schema() | {"additionalProperties": False}
    describe(schema, config_type)
    schema["properties"]["protocol"]["enum"] = sorted(registry.PROTOCOLS)
    schema["$defs"]["MemoryConfig"]["properties"]["summarizer"]["examples"] = [
        memory_config.NO_SUMMARY,
        *summarizer_names(),
    ]
    return {**DIALECT, **schema}


def graph_schemas(graph: DebateGraph) -> dict[str, JsonObject]:
    """Return the JSON Schemas of the graph's context, input and output."""
    input_schema, output_schema = graph.get_input_jsonschema(), graph.get_output_jsonschema()
    describe(input_schema, ConversationInput)
    describe(output_schema, ConversationOutput)
    return {"context": config_schema(), "input": input_schema, "output": output_schema}


@lru_cache
def field_docs(kind: type) -> dict[str, str]:
    """Return the field docstrings of a Pydantic model or typed dict, keyed by field name.

    Fields of base classes are included. A typed dict lists its direct bases only, in `__orig_bases__`.
    """
    docs: dict[str, str] = {}
    for base in (*reversed(kind.__mro__[1:]), *getattr(kind, "__orig_bases__", ())):
        if isinstance(base, type):
            docs |= field_docs(base)
    if kind.__module__ not in sys.modules or kind.__module__.partition(".")[0] in UNDOCUMENTED:
        return docs
    try:
        source = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except OSError:  # a functional definition has no source
        return docs
    for pair in pairwise(cast(ast.ClassDef, source.body[0]).body):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(docstring))):
                docs[name] = " ".join(docstring.split())
    return docs


def describe(schema: JsonObject, kind: type) -> None:
    """Add field docstrings to a JSON Schema, or else the descriptions of the fields' types."""
    kinds: dict[str, type] = {}
    pending_types: list[Any] = [kind]
    for each in pending_types:  # the loop extends the list
        if not is_typeddict(each) and not (isinstance(each, type) and issubclass(each, BaseModel)):
            pending_types += get_args(each)
        elif each.__name__ not in kinds:
            kinds[each.__name__] = each
            pending_types += get_type_hints(each, include_extras=True).values()

    defs = schema.get("$defs", {})
    for name, part in {**defs, kind.__name__: schema}.items():
        docs = field_docs(kinds[name]) if name in kinds else {}
        for key, each in part.get("properties", {}).items():
            default = defs.get(str(each.get("$ref")).removeprefix("#/$defs/"), {}).get("description", "")
            if text := docs.get(key) or str(default).partition("\n")[0]:
                each.setdefault("description", text)


if __name__ == "__main__":
    print(json.dumps(document_schema(), indent=2, ensure_ascii=False))
