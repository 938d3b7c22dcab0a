"""Makes stored debates known to a LangGraph server, which shows those threads that it was told of."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence

import httpx

from moot.state.settings import server_token

EVERY_S = 3.0
"""Between looks at the catalogue: debates that the command line starts meanwhile appear too."""


@contextlib.contextmanager
def registering(server: str, debates: Callable[[], Sequence[str]]) -> Iterator[None]:
    """Register debates at a server, from a thread of its own, for the length of a `with` block."""
    over = threading.Event()
    worker = threading.Thread(target=_keep_registering, args=(server, debates, over), daemon=True)
    worker.start()
    try:
        yield
    finally:
        over.set()
        worker.join(timeout=EVERY_S)


def _keep_registering(server: str, debates: Callable[[], Sequence[str]], over: threading.Event) -> None:
    known: set[str] = set()
    key = {"x-api-key": token} if (token := server_token()) else None
    with httpx.Client(base_url=server, timeout=EVERY_S, trust_env=False, headers=key) as client:
        while not over.wait(EVERY_S if known else EVERY_S / 6):
            with contextlib.suppress(httpx.HTTPError):  # not up yet, or busy: the next look tries again
                known |= register(client, [each for each in debates() if each not in known])


def register(client: httpx.Client, debates: Sequence[str]) -> set[str]:
    """Register debates and return those that the server now knows."""
    registered = set()
    for debate in debates:
        thread = {"thread_id": debate, "if_exists": "do_nothing", "metadata": {"graph_id": "debate"}}
        if client.post("/threads", json=thread).is_success:
            registered.add(debate)
    return registered
