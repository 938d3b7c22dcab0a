"""The JSON Schema of `moot.debate/1`, made from the types that a debate is stored in.

`python -m moot.graph.document_schema > docs/debate.schema.json` writes the copy in the documentation.
"""

import json

from pydantic import TypeAdapter

from moot.graph.documents import FORMAT, DebateDocument
from moot.graph.field_docs import describe
from moot.state.entries import JsonObject


def document_schema() -> JsonObject:
    """Return the schema; keys that it does not know are allowed, so that documents can grow."""
    schema = TypeAdapter(DebateDocument).json_schema()
    describe(schema, DebateDocument)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": FORMAT, **schema}


if __name__ == "__main__":
    print(json.dumps(document_schema(), indent=2, ensure_ascii=False))
