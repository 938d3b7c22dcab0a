"""Debates that a server runs for its clients, each in a task of its own: agents' and the live page's.

What a client says is data, which claims and is admitted like any other request's; what it leaves out is the
operator's configuration. Whoever is cut off or comes back loses nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from moot.graph.api import Debate, DebateConfig, Debates, Event
from moot.graph.preflight import shorten_debate
from moot.state.config.boundary import Claim, reaches, requested_config
from moot.state.errors import DebatePaused, MootError, WaitingForPerson
from moot.state.event_loop import cancel_all, in_thread

Hearer = Callable[[Event], object]


def add_words(speeches: dict[str, Event], token: Event) -> None:
    """Add a token to the speech that it is of, by the id of the entry that this will be."""
    speech = speeches.setdefault(token["id"], {"speaker": token["speaker"], "text": ""})
    speech["text"] += token["text"]


class DebateHost:
    """The debates of a database, and those of them that run here.

    Args:
        debates: the open database, which stays its owner's to close.
        usual: the operator's configuration, for all that a client does not say.
        tokens: whether what is said is heard word by word.
    """

    def __init__(self, debates: Debates, usual: DebateConfig, *, tokens: bool = False) -> None:
        self.debates, self.usual = debates, usual
        self.errors: dict[str, str] = {}
        """Why the last run here of a debate failed, by its id."""
        self.speeches: dict[str, dict[str, Event]] = {}
        """What is being said in debates that run here, by their ids and the entries' that it will be."""
        self._tokens = tokens
        self._runs: dict[str, asyncio.Task[None]] = {}
        self._hearers: dict[str, list[Hearer]] = {}

    async def make(self, question: str, said: Mapping[str, object]) -> Debate:
        """Make a debate of what a client says: a question, and settings over the operator's, unless empty.

        `turns` among them are the speeches at most, whatever bounds the protocol.

        Raises:
            ConfigError: it cannot be used, is longer, or reaches what the operator does not allow.
            InputError: there is no question.
        """

        def make() -> Debate:
            told = {key: value for key, value in said.items() if value}
            config, allowed = requested_config(self.usual, told), self.debates.environment.harmless
            if isinstance(turns := told.get("turns"), int):
                config = shorten_debate(config, turns)
            return self.debates.start(question, Claim(config, reaches(self.usual), allowed).admit())

        return await in_thread(make)

    def run(self, debate: Debate, *, turns: int | None = None, answer: object = None) -> asyncio.Task[None]:
        """Let a debate run on in a task, unless it does, and return that task."""
        if known := self.running(debate.id):
            return known

        async def run() -> None:
            try:
                async for event in debate.astream(turns=turns, answer=answer, tokens=self._tokens):
                    self.hear(debate.id, event)
            except (WaitingForPerson, DebatePaused):
                pass
            except MootError as error:
                self.errors[debate.id] = str(error)
            except Exception as error:
                self.errors[debate.id] = f"{type(error).__name__}: {error}"
                raise
            finally:
                self.speeches.pop(debate.id, None)

        self.errors.pop(debate.id, None)
        self._runs[debate.id] = asyncio.create_task(run())
        return self._runs[debate.id]

    def running(self, debate: str) -> asyncio.Task[None] | None:
        """Return the task in which a debate runs here at this moment."""
        run = self._runs.get(debate)
        return run if run and not run.done() else None

    @contextmanager
    def hearing(self, debate: str, hearer: Hearer) -> Iterator[None]:
        """Have a function called with everything that happens in a debate while it runs here."""
        hearers = self._hearers.setdefault(debate, [])
        hearers.append(hearer)
        try:
            yield
        finally:
            hearers.remove(hearer)

    def hear(self, debate: str, event: Event) -> None:
        """Tell whoever listens to a debate what has happened in it."""
        under_way = self.speeches.setdefault(debate, {})
        if event["event"] == "token":
            add_words(under_way, event)
        elif event["event"] == "entry":
            under_way.pop(event["entry"]["id"], None)
        elif event["event"] == "step":
            under_way.clear()
        for hearer in list(self._hearers.get(debate, ())):
            hearer(event)

    def forget_speech(self, debate: str, entry: str) -> None:
        """Keep no more of what was being said: it is over."""
        self.speeches.get(debate, {}).pop(entry, None)
        if not self.speeches.get(debate):
            self.speeches.pop(debate, None)

    async def close(self) -> None:
        """Pause what runs."""
        await cancel_all(self._runs.values())
