"""The JSON Schema of configurations, of files and of what a server's requests say, made from the types."""

from functools import lru_cache

from pydantic import Field, create_model

from moot.graph.field_docs import describe
from moot.nodes.memory.summarizers.summarizer_table import SUMMARIZERS
from moot.state.config import DebateConfig
from moot.state.config.memory_config import NO_SUMMARY
from moot.state.config.section import protocol_sections, terms_table
from moot.state.entries import JsonObject


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
    """Return the JSON Schema of configuration files, each key with its meaning."""
    whole = whole_config()
    schema = whole.model_json_schema() | {"additionalProperties": False}
    describe(schema, whole)
    schema["properties"]["protocol"]["enum"] = sorted(terms_table().PROTOCOLS)
    schema["$defs"]["MemoryConfig"]["properties"]["summarizer"]["examples"] = [NO_SUMMARY, *SUMMARIZERS]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


@lru_cache(maxsize=1)
def context_schema() -> JsonObject:
    """Return it for the graph, which a server asks for in every run: made once, since that reads sources."""
    return config_schema()
