"""The embedding model that a configuration names, where it names one."""

from functools import lru_cache
from importlib import import_module
from typing import Any

from moot.state.config.boundary import Claim
from moot.state.errors import ConfigError


def embeddings_of(claim: Claim, given: Any = None) -> Any:
    """Return a LangChain `Embeddings`, `None` for lexical retrieval alone.

    Raises:
        ConfigError: the name leads nowhere, or it is not admitted.
    """
    if given is not None:
        return given
    name = claim.admitted("embeddings").memory.retrieval.embeddings
    return load_embeddings(name) if name else None


@lru_cache(maxsize=8)
def load_embeddings(name: str) -> Any:
    """Import `module:attribute`; what is no embedding model itself is called to make one.

    Raises:
        ConfigError: the name leads nowhere.
    """
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
        made = found if hasattr(found, "embed_query") and not isinstance(found, type) else found()
    except Exception as error:  # whatever another package raises as it is imported or made
        raise ConfigError(
            f"memory.retrieval.embeddings: cannot make {name!r}: {type(error).__name__}: {error}"
        ) from error
    if not hasattr(made, "embed_documents"):
        raise ConfigError(f"memory.retrieval.embeddings: {name!r} is no LangChain Embeddings")
    return made
