"""Embedding model of static word vectors, which the extra `moot[semantic]` installs.

The vectors are those of WordLlama (MIT licence). A text's vector is the mean of the vectors of its tokens. No
service and no download are needed: the package contains the vectors and their tokenizer, 18 MB together.
"""

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from langchain_core.embeddings import Embeddings

from moot.state.errors import ConfigError

PACKAGE = "wordllama"
VECTORS, TOKENIZER = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"


class StaticVectors(Embeddings):
    """Model that averages static word vectors of 256 dimensions, from the folder of `wordllama`."""

    is_local = True
    """True because no service is asked, so that prompts are assembled without a job for the embeddings."""

    def __init__(self, folder: Path) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        (self._vectors,) = load_file(folder / VECTORS).values()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the mean of the tokens' vectors for each text. A text without tokens has a zero vector."""
        return [
            self._vectors[each.ids].mean(axis=0, dtype=np.float32).tolist()
            if each.ids
            else [0.0] * self._vectors.shape[1]
            for each in self._tokenizer.encode_batch(texts, add_special_tokens=False)
        ]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question."""
        return self.embed_documents([text])[0]


def static_vectors() -> StaticVectors | None:
    """Return the model of static word vectors, or `None` if `moot[semantic]` is not installed.

    The package itself is not imported, because it would load more than its vectors.

    Raises:
        ConfigError: the package is installed, but its files cannot be read.
    """
    spec = find_spec(PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    return _read(Path(folders[0])) if folders else None


@lru_cache(maxsize=1)
def _read(folder: Path) -> StaticVectors:
    try:
        return StaticVectors(folder)
    except Exception as error:  # the libraries raise several types of exceptions
        raise ConfigError(
            f"the word vectors of moot[semantic] cannot be read ({type(error).__name__}: {error}). "
            "Install `moot[semantic]` again, or set `memory.retrieval.embeddings: words`."
        ) from error
