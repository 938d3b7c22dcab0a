"""Debates for agents over the Model Context Protocol, as `moot mcp` serves them. Imported lazily.

Its debates are a `DebateHost`'s, so that a call that is cut off, or a client that comes back, loses nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from typing import Annotated, ParamSpec, TypeVar

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field
from starlette.types import Receive, Scope, Send

from moot.graph.api import Debate, DebateConfig, aopen_debates
from moot.graph.compare import compare_debates, render_comparison
from moot.graph.debate_host import DebateHost
from moot.graph.embedding import VERDICT_SHARE, DebateRequest, DebaterRequest
from moot.graph.reports.markdown import render_markdown
from moot.nodes.close import outcome_text
from moot.nodes.protocols.stand_in import forecast
from moot.nodes.text.tokens import counter, cut_end
from moot.state.entries import JsonObject
from moot.state.errors import MootError
from moot.state.event_loop import in_thread
from moot.state.verdict import TIE

INSTRUCTIONS = (
    "Moot has language models argue a question, a design or a decision, and a judge decide it. `debate` "
    "waits for the verdict; where that may take more than a minute, `start` it and wait with `result`."
)
MOST_TOKENS = 400
"""What an agent's context spares for an outcome, o200k; the rest are resources."""
LATEST_TOKENS = 60
LONGEST_WAIT_S = 600.0

_SAID = DebateRequest.model_fields
Question = Annotated[str, Field(description=_SAID["question"].description)]
ProtocolName = Annotated[str, Field(description=_SAID["protocol"].description)]
TurnsWanted = Annotated[int, Field(ge=0, le=200, description=_SAID["turns"].description)]
ModelName = Annotated[str, Field(description="Model of everybody; leave it out for the server's own.")]
DebateId = Annotated[str, Field(description="A debate's id, as the other tools return it.")]


Line = Annotated[Sequence[DebaterRequest], Field(description="Who argues; leave it out for the usual ones.")]


class DebateOutcome(BaseModel):
    """Where a debate stands and, once it is over, what it came to."""

    debate: str = Field(description="Id, for the other tools and moot://debates/ID/report.")
    status: str = Field(description="done, limit, running, waiting (for `answer`), paused (see `start`).")
    turns: int
    cost_usd: float
    winner: str | None = None
    verdict: str = Field("", description="Markdown: decision, why, what stays open. Empty until it is over.")
    latest: str = Field("", description="The last words, while it is not over.")
    questions: dict[str, str] = Field(default_factory=dict, description="What `answer` is to answer, by id.")
    error: str = Field("", description="Why it stopped.")


P = ParamSpec("P")
T = TypeVar("T")


def _telling(tool: Callable[P, Coroutine[object, None, T]]) -> Callable[P, Coroutine[object, None, T]]:
    """Let an agent read what is its own or the operator's to mend."""

    @wraps(tool)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await tool(*args, **kwargs)
        except MootError as error:
            raise ResourceError(str(error)) from error

    return call


class McpDebates:
    """The debates of a database, as an MCP server offers them."""

    def __init__(self, host: DebateHost) -> None:
        self._debates, self._host = host.debates, host

    def server(self) -> MCPServer[object]:
        """Return a server with the tools, resources and prompts."""
        server: MCPServer[object] = MCPServer("moot", instructions=INSTRUCTIONS, log_level="WARNING")
        reading = ToolAnnotations(read_only_hint=True)
        writing = (self.debate, self.start, self.say, self.answer)
        for tool in (*writing, self.status, self.result, self.ask, self.compare):
            server.add_tool(_telling(tool), annotations=None if tool in writing else reading)
        server.resource("moot://debates", mime_type="application/json")(_telling(self.debates))
        markdown, place = "text/markdown", "moot://debates/{debate}"
        server.resource(f"{place}/report", mime_type=markdown)(_telling(self.report))
        server.resource(f"{place}/transcript", mime_type=markdown)(_telling(self.transcript))
        server.prompt()(argue_design)
        server.prompt()(second_opinion)
        return server

    async def debate(
        self,
        question: Question,
        ctx: Context[object, object],
        protocol: ProtocolName = "",
        debaters: Line = (),
        turns: TurnsWanted = 0,
        model: ModelName = "",
    ) -> DebateOutcome:
        """Have language models argue a question and a judge decide it, and wait for the verdict: minutes.

        Cancelling the call pauses the debate after the step under way; for a long one there is `start`.
        """
        made = await self._make(question, protocol, debaters, turns, model)
        planned = await in_thread(forecast, made.config())
        said: asyncio.Queue[JsonObject] = asyncio.Queue()
        run, done = self._host.run(made), 0
        with self._host.hearing(made.id, said.put_nowait):
            try:
                while not run.done() or not said.empty():
                    event = asyncio.ensure_future(said.get())
                    await asyncio.wait({run, event}, return_when=asyncio.FIRST_COMPLETED)
                    if event.cancel() or event.result()["event"] != "entry":
                        continue
                    done, entry = done + 1, event.result()["entry"]
                    words = f"{entry['speaker']}: {entry['content'][:80]}"
                    await ctx.report_progress(done, planned.turns if planned else None, words)
            except BaseException:
                if done:  # what is paid already comes in; before that, nobody would hear it
                    made.pause()
                else:
                    run.cancel()
                raise
        return await self._outcome(made)

    async def start(
        self,
        question: Question = "",
        protocol: ProtocolName = "",
        debaters: Line = (),
        turns: TurnsWanted = 0,
        model: ModelName = "",
        debate: Annotated[
            str, Field(description="Instead of a question: a paused debate to go on with.")
        ] = "",
    ) -> DebateOutcome:
        """Begin a debate, or go on with a paused one, and return at once: see `status` and `result`."""
        made = await (self._get(debate) if debate else self._make(question, protocol, debaters, turns, model))
        self._host.run(made)
        return await self._outcome(made)

    async def status(self, debate: DebateId) -> DebateOutcome:
        """Tell where a debate stands: turns, cost, last words, what it asks, why it stopped."""
        return await self._outcome(await self._get(debate))

    async def result(
        self, debate: DebateId, wait_s: Annotated[float, Field(ge=0, le=LONGEST_WAIT_S)] = 0
    ) -> DebateOutcome:
        """Return a debate's verdict; where it is running still, wait for it so many seconds at most."""
        found = await self._get(debate)
        if run := self._host.running(found.id):
            await asyncio.wait({run}, timeout=wait_s)
        return await self._outcome(found)

    async def say(self, debate: DebateId, text: str) -> str:
        """Say something to a running debate, from the floor: everybody hears it at the next step."""
        number = await in_thread((await self._get(debate)).say, text)
        return f"It will be heard at the next step, as remark {number}."

    async def answer(self, debate: DebateId, answers: str | dict[str, str]) -> DebateOutcome:
        """Answer what a waiting debate asks, by the questions' ids or in one text, and let it go on."""
        found = await self._get(debate)
        run = self._host.run(found, answer=answers)
        await asyncio.wait({run}, timeout=1.0)  # a refused answer is told here
        return await self._outcome(found)

    async def ask(self, debate: DebateId, question: str) -> dict[str, object]:
        """Answer a question about a debate from its record, citing messages; the debate stays as it is."""
        found = await self._get(debate)
        answer = (await asyncio.to_thread(found.ask, question)).to_json()
        return {key: answer[key] for key in ("answer", "citations", "not_found")}

    async def compare(self, debates: Annotated[list[str], Field(min_length=2)]) -> str:
        """Set debates side by side: results, models, tokens, cost, time and answers, as Markdown."""
        documents = [await in_thread((await self._get(each)).document) for each in debates]
        return render_comparison(compare_debates(documents))

    async def debates(self) -> str:
        """All debates, the most recently active first: id, name, topic, status, turns."""
        rows = await in_thread(self._debates.rows)
        keys = ("id", "name", "topic", "protocol", "status", "turns", "updated_at")
        return json.dumps([{key: getattr(row, key) for key in keys} for row in rows], ensure_ascii=False)

    async def report(self, debate: str) -> str:
        """A debate's report: question, verdict, positions, transcript, spending."""
        return render_markdown(await in_thread((await self._get(debate)).document))

    async def transcript(self, debate: str) -> str:
        """Everything that was said in a debate, each entry under its speaker's name and its id."""
        document = await in_thread((await self._get(debate)).document)
        return "\n\n".join(
            f"**{each['speaker']}** [{each['id']}]\n{each['content']}" for each in document["transcript"]
        )

    async def _get(self, debate: str) -> Debate:
        return await in_thread(self._debates.get, debate)

    async def _make(
        self, question: str, protocol: str, debaters: Sequence[DebaterRequest], turns: int, model: str
    ) -> Debate:
        line = [each.model_dump(exclude_defaults=True) for each in debaters]
        return await self._host.make(
            question, {"protocol": protocol, "debaters": line, "turns": turns, "model": model}
        )

    async def _outcome(self, debate: Debate) -> DebateOutcome:
        """Return where a debate stands in `MOST_TOKENS` tokens of JSON."""
        snapshot, row = await in_thread(debate.state), await in_thread(lambda: debate.row)
        values, over, count = snapshot.values, await in_thread(debate.is_over), counter()
        spoken = values["full_transcript"]
        winner = (values.get("verdict") or {}).get("winner")
        outcome = DebateOutcome(
            debate=debate.id,
            status="running" if self._host.running(debate.id) else row.status,
            turns=row.turns,
            cost_usd=round(row.cost_usd, 4),
            winner=winner if over and winner != TIE else None,
            latest="" if over else cut_end(spoken[-1]["content"], LATEST_TOKENS, count),
            questions={
                each["id"]: cut_end(each["question"], LATEST_TOKENS, count) for each in debate.questions()[:3]
            },
            error=cut_end(self._host.errors.get(debate.id, ""), LATEST_TOKENS, count),
        )
        if not over:
            return outcome
        text = outcome_text(values, VERDICT_SHARE)
        room = MOST_TOKENS - count(outcome.model_dump_json())
        while count(json.dumps(text, ensure_ascii=False)) > room:
            text = cut_end(text, int(count(text) * 0.9), count)
        return outcome.model_copy(update={"verdict": text})


def argue_design(design: str) -> str:
    """Have a design argued by a council before it is built."""
    return (
        'Call the tool `debate` with protocol "council". As the question give the design below, with the '
        "requirements, constraints, figures and alternatives that you know of. Then say what the verdict "
        f"changes in the design, what it leaves open, and the debate's id.\n\n{design}"
    )


def second_opinion(decision: str) -> str:
    """Have a decision of yours attacked and defended before you act on it."""
    return (
        "Call the tool `debate` with two debaters, one whose stance is the decision below and one who would "
        "do otherwise, and with the facts in the question. Then act on the verdict, or say why you do not, "
        f"and name the debate's id.\n\n{decision}"
    )


class AgentsDoor:
    """Debates for agents at an address of a server that has its own doorkeeper, an ASGI app."""

    @asynccontextmanager
    async def open(self, host: DebateHost) -> AsyncIterator[None]:
        """Let agents in for the length of an `async with` block."""
        server = McpDebates(host).server()
        unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._app = server.streamable_http_app(transport_security=unguarded)
        async with server.session_manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._app(scope, receive, send)


async def serve(database: str, usual: DebateConfig, port: int | None) -> None:
    """Serve a database's debates until the client goes, or over HTTP on this machine until it is stopped."""
    async with aopen_debates(database) as debates:
        host = DebateHost(debates, usual)
        server = McpDebates(host).server()
        try:
            if port is None:
                await server.run_stdio_async()
            else:
                await server.run_streamable_http_async(port=port)
        finally:
            await host.close()
