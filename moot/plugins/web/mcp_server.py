"""MCP server with tools, resources and prompts for debates, as `moot mcp` runs it.

A `DebateHost` runs the debates, so a debate continues if its client disconnects. The versions 1 and 2 of the
`mcp` package both work. They differ in the names of a few classes and in the place of the HTTP settings.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated

import pydantic
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from moot import embedding
from moot.api import Debate, DebateConfig, Event, aopen_debates
from moot.calls.concurrency import run_in_thread
from moot.config.participants import MAX_REQUESTED_DEBATERS
from moot.debates.dry_run import with_plan
from moot.people import MAX_MESSAGE_CHARS
from moot.plugins.evals.statistics import MAX_COMPARED, compare_debates, render_comparison
from moot.plugins.web.auth_middleware import OPERATOR, AuthMiddleware
from moot.plugins.web.debate_host import DebateHost
from moot.plugins.web.mcp_stdio import serve_stdio
from moot.plugins.web.mcp_tool import MCP_1, DebateOutcome, reporting_errors, tool_of
from moot.protocols.registry import turns_planned
from moot.protocols.result import result_text
from moot.reports.markdown import render_brief, render_markdown
from moot.runtime.environment import Environment
from moot.state.entries import JsonObject
from moot.state.errors import InputError
from moot.state.langgraph_internals import set_server_version
from moot.state.verdict import TIE
from moot.text.plain_text import show_reordering
from moot.text.tokens import counter, truncate_end

if TYPE_CHECKING or not MCP_1:
    from mcp.server.mcpserver import Context, MCPServer
else:
    from mcp.server.fastmcp import Context, FastMCP as MCPServer

INSTRUCTIONS = (
    "Moot has language models argue a question, a design or a decision, and a judge decide it. `debate` "
    "waits for the verdict. For a debate of more than a minute, use `start` and then `result`."
)
MAX_TOKENS = 400
"""Maximum number of tokens in the result of an MCP tool. Tokens are counted with the o200k encoding. Agents
read longer texts as resources."""
LATEST_TOKENS = 60
"""Maximum number of tokens for each message, question or error in an MCP tool's result."""
MAX_WAIT_S = 600.0
"""Maximum time in seconds to wait for the result of a running debate."""

_REQUEST_FIELDS = embedding.DebateRequest.model_fields
Question = Annotated[
    str,
    pydantic.Field(
        max_length=embedding.MAX_QUESTION_CHARS,
        description=_REQUEST_FIELDS["question"].description,
        examples=["Should our 12 services move into one repository?"],
    ),
]
ProtocolName = Annotated[
    str,
    pydantic.Field(
        max_length=embedding.MAX_REQUESTED_NAME,
        description=_REQUEST_FIELDS["protocol"].description,
        examples=["council", "round-robin"],
    ),
]
TurnsWanted = Annotated[
    int, pydantic.Field(ge=0, le=200, description=_REQUEST_FIELDS["turns"].description, examples=[6])
]
ModelName = Annotated[
    str,
    pydantic.Field(
        max_length=embedding.MAX_REQUESTED_NAME,
        description="Model for all debaters and the judge. If omitted, the server's default is used.",
        examples=["anthropic:claude-sonnet-5"],
    ),
]
DebateId = Annotated[
    str,
    pydantic.Field(
        description="Id of a debate, as returned by the other tools.",
        examples=["5c5a9dd3"],
    ),
]
DebaterList = Annotated[
    Sequence[embedding.DebaterRequest],
    pydantic.Field(
        max_length=MAX_REQUESTED_DEBATERS,
        description="Two or more debaters who argue the question. Omit them to use the default debaters.",
        examples=[[{"name": "Ada", "stance": "Yes."}, {"name": "Ben", "role": "operator"}]],
    ),
]


class McpDebates:
    """MCP tools, resources and prompts that give agents access to debates."""

    def __init__(self, host: DebateHost) -> None:
        self._debates, self._host = host.debates, host

    def server(self) -> MCPServer[object]:
        """Return an MCP server with Moot's tools, resources and prompts."""
        tools = [
            tool_of(self.debate, "Run a debate", asks_model=True),
            tool_of(self.start, "Start or continue a debate", asks_model=True),
            tool_of(self.say, "Send a message to a debate"),
            tool_of(self.answer, "Answer a debate's questions", asks_model=True),
            tool_of(self.status, "Status of a debate", reads=True),
            tool_of(self.result, "Result of a debate", reads=True),
            tool_of(self.ask, "Ask about a debate", reads=True, asks_model=True),
            tool_of(self.compare, "Compare debates", reads=True),
        ]
        options: JsonObject = {"instructions": INSTRUCTIONS, "log_level": "WARNING", "tools": tools}
        if MCP_1:
            server: MCPServer[object] = MCPServer("moot", **options)
            set_server_version(server, version("moot"))
        else:
            server = MCPServer("moot", version=version("moot"), **options)
        server.resource("moot://debates", mime_type="application/json")(reporting_errors(self.debates))
        markdown, place = "text/markdown", "moot://debates/{debate}"
        server.resource(f"{place}/brief", mime_type=markdown)(reporting_errors(self.brief))
        server.resource(f"{place}/report", mime_type=markdown)(reporting_errors(self.report))
        server.resource(f"{place}/transcript", mime_type=markdown)(reporting_errors(self.transcript))
        server.prompt()(argue_design)
        server.prompt()(second_opinion)
        return server

    async def debate(
        self,
        question: Question,
        ctx: Context[object, object],
        protocol: ProtocolName = "",
        debaters: DebaterList = (),
        turns: TurnsWanted = 0,
        model: ModelName = "",
    ) -> DebateOutcome:
        """Let language models debate a question, and let a judge decide it. A debate takes minutes.

        Returns the verdict. Cancelling the call pauses the debate at the end of its current step. For a long
        debate use `start`.
        """
        new_debate = await self._make(ctx, question, protocol, debaters, turns, model)
        planned_turns = turns_planned(new_debate.config())
        events: asyncio.Queue[Event] = asyncio.Queue()
        run, entry_count = self._host.run(new_debate), 0
        with self._host.subscribe(new_debate.id, events.put_nowait):
            try:
                while not run.done() or not events.empty():
                    event_task = asyncio.ensure_future(events.get())
                    await asyncio.wait({run, event_task}, return_when=asyncio.FIRST_COMPLETED)
                    if event_task.cancel() or (event := event_task.result())["event"] != "entry":
                        continue
                    entry_count, entry = entry_count + 1, event["entry"]
                    message = f"{entry['speaker']}: {entry['content'][:80]}"
                    await ctx.report_progress(entry_count, planned_turns, message)
            except BaseException:
                if entry_count:  # running calls are charged already, so the step is finished
                    new_debate.pause()
                else:
                    run.cancel()
                raise
        return await self._outcome(new_debate)

    async def start(
        self,
        ctx: Context[object, object],
        question: Question = "",
        protocol: ProtocolName = "",
        debaters: DebaterList = (),
        turns: TurnsWanted = 0,
        model: ModelName = "",
        debate: Annotated[
            str,
            pydantic.Field(
                description="Id of a paused debate to continue. If you give an id, omit the question.",
                examples=["5c5a9dd3"],
            ),
        ] = "",
    ) -> DebateOutcome:
        """Start a new debate or continue a paused debate, and return at once.

        Then call `status` or `result`.
        """
        stored_debate = await (
            self._get(debate) if debate else self._make(ctx, question, protocol, debaters, turns, model)
        )
        self._host.run(stored_debate)
        return await self._outcome(stored_debate)

    async def status(self, debate: DebateId) -> DebateOutcome:
        """Return a debate's status, including its turns, cost, latest message, questions and error."""
        return await self._outcome(await self._get(debate))

    async def result(
        self,
        debate: DebateId,
        wait_s: Annotated[
            float,
            pydantic.Field(
                ge=0,
                le=MAX_WAIT_S,
                description="Maximum time in seconds to wait for a running debate.",
                examples=[45],
            ),
        ] = 0,
    ) -> DebateOutcome:
        """Return the verdict of a debate, or its status if it is still running.

        If the debate is running, wait at most `wait_s` seconds.
        """
        stored_debate = await self._get(debate)
        if run := self._host.running(stored_debate.id):
            await asyncio.wait({run}, timeout=wait_s)
        return await self._outcome(stored_debate)

    async def say(
        self,
        debate: DebateId,
        text: Annotated[
            str,
            pydantic.Field(
                max_length=MAX_MESSAGE_CHARS,
                description="Message that the debaters will read.",
                examples=["The migration must end by May."],
            ),
        ],
    ) -> str:
        """Send a message to a debate. The debate reads it at the start of its next step."""
        number = await run_in_thread((await self._get(debate)).say, text)
        return f"Sent as message {number}. The debate reads it at the start of its next step."

    async def answer(
        self,
        debate: DebateId,
        answers: Annotated[
            str | dict[str, str],
            pydantic.Field(
                description="Answers keyed by question id, or the answer alone as text if there is only one "
                "question.",
                examples=[{"ada.1": "We have 40 engineers."}],
            ),
        ],
    ) -> DebateOutcome:
        """Answer the questions that a debate is waiting on, and continue the debate.

        Give the answers by question id or in one text.
        """
        stored_debate = await self._get(debate)
        run = self._host.run(stored_debate, answer=answers)
        await asyncio.wait({run}, timeout=1.0)  # long enough to report an invalid answer
        return await self._outcome(stored_debate)

    async def ask(
        self,
        debate: DebateId,
        question: Annotated[
            str,
            pydantic.Field(
                max_length=MAX_MESSAGE_CHARS,
                description="Question about the debate.",
                examples=["What did Ben concede, and why?"],
            ),
        ],
    ) -> dict[str, object]:
        """Answer a question about a debate, citing messages from the debate.

        The transcript does not change.
        """
        stored_debate = await self._get(debate)
        answer = (await self._host.threads.call_models(self._host.ask, stored_debate, question)).to_json()
        return {key: answer[key] for key in ("answer", "citations", "not_found")}

    async def compare(
        self,
        debates: Annotated[
            list[str],
            pydantic.Field(
                min_length=2,
                max_length=MAX_COMPARED,
                description="Ids of the debates to compare.",
                examples=[["5c5a9dd3", "0f2b7c11"]],
            ),
        ],
    ) -> str:
        """Compare the results, costs and answers of several debates, and return Markdown.

        Models, tokens and times are included.
        """
        documents = [await run_in_thread((await self._get(each)).document) for each in debates]
        return render_comparison(compare_debates(documents))

    async def debates(self) -> str:
        """List all debates, most recently active first."""
        rows = await run_in_thread(self._debates.rows)
        keys = ("id", "name", "topic", "protocol", "status", "turns", "updated_at")
        listing = [{key: getattr(row, key) for key in keys} for row in rows]
        return show_reordering(json.dumps(listing, ensure_ascii=False), separator='"')

    async def brief(self, debate: str) -> str:
        """Return a one-page brief of a debate, with the decision, its reasons and its risks."""
        return render_brief(await run_in_thread((await self._get(debate)).document))

    async def report(self, debate: str) -> str:
        """Return a debate's report, including the question, verdict, positions, transcript and cost."""
        document = await run_in_thread((await self._get(debate)).document)
        return render_markdown(await run_in_thread(with_plan, document))

    async def transcript(self, debate: str) -> str:
        """Return the transcript of a debate, with the speaker and id of each message."""
        document = await run_in_thread((await self._get(debate)).document)
        return show_reordering(
            "\n\n".join(
                f"**{each['speaker']}** [{each['id']}]\n{each['content']}" for each in document["transcript"]
            )
        )

    async def _get(self, debate: str) -> Debate:
        return await run_in_thread(self._debates.get, debate)

    async def _make(
        self,
        ctx: Context[object, object],
        question: str,
        protocol: str,
        debaters: Sequence[embedding.DebaterRequest],
        turns: int,
        model: str,
    ) -> Debate:
        line = [each.model_dump(exclude_defaults=True) for each in debaters]
        name = protocol or self._host.default_config.protocol
        if len(line) == 1 and len(DebateConfig.model_validate({"protocol": name}).debaters) > 1:
            raise InputError(
                f"debaters: protocol {name!r} needs at least two debaters: name two or more, omit "
                "`debaters` to use the default debaters, or use protocol 'single' for one answer"
            )
        settings = {"protocol": protocol, "debaters": line, "turns": turns, "model": model}
        return await self._host.make(question, settings, by_operator=_is_operators(ctx))

    async def _outcome(self, debate: Debate) -> DebateOutcome:
        """Return the status and result of a debate, shortened to at most `MAX_TOKENS` tokens."""
        snapshot, row = await run_in_thread(debate.state), await run_in_thread(lambda: debate.row)
        values, is_over, count = snapshot.values, await run_in_thread(debate.is_over), counter()
        transcript = values["full_transcript"]
        winner = (values.get("verdict") or {}).get("winner")
        outcome = DebateOutcome(
            debate=debate.id,
            status="running" if self._host.running(debate.id) else row.status,
            turns=row.turns,
            cost_usd=round(row.cost_usd, 4),
            winner=winner if is_over and winner != TIE else None,
            latest="" if is_over else truncate_end(transcript[-1]["content"], LATEST_TOKENS, count),
            questions={
                each["id"]: truncate_end(each["question"], LATEST_TOKENS, count)
                for each in debate.questions()[:3]
            },
            error=truncate_end(self._host.errors.get(debate.id, ""), LATEST_TOKENS, count),
        )
        if not is_over:
            return outcome
        text = result_text(values, embedding.VERDICT_SHARE)
        decision = (values.get("verdict") or {}).get("decision") or text.partition("\n")[0].strip("*")
        outcome.decision = truncate_end(decision, LATEST_TOKENS, count)
        remaining = MAX_TOKENS - count(outcome.model_dump_json())
        while count(json.dumps(text, ensure_ascii=False)) > remaining:
            text = truncate_end(text, int(count(text) * 0.9), count)
        return outcome.model_copy(update={"verdict": text})


def _is_operators(ctx: Context[object, object]) -> bool:
    """Return True if a request over HTTP contains the operator's token."""
    request = ctx.request_context.request
    return isinstance(request, Request) and bool(request.scope.get(OPERATOR))


def argue_design(
    design: Annotated[
        str, pydantic.Field(description="Design to review, including its requirements and constraints.")
    ],
) -> str:
    """Let a council of debaters discuss a design before you build it."""
    return (
        'Call the tool `debate` with protocol "council". The question is the design below, with all '
        "requirements, constraints, figures and alternatives that you know. Then report what the verdict "
        f"changes in the design, what it leaves open, and the debate's id.\n\n{design}"
    )


def second_opinion(
    decision: Annotated[
        str,
        pydantic.Field(
            description="The decision that you want challenged, together with the facts behind it."
        ),
    ],
) -> str:
    """Have one debater defend a decision and another oppose it before you act on it."""
    return (
        "Call the tool `debate` with two debaters: one defends the decision below, the other one opposes it. "
        "Put the facts into the question. Then follow the verdict, or explain why you do not, and give the "
        f"debate's id.\n\n{decision}"
    )


def _http_app(server: MCPServer[object], security: TransportSecuritySettings | None = None) -> Starlette:
    """Return the HTTP application of an MCP server."""
    if not MCP_1:
        return server.streamable_http_app(transport_security=security)
    if security is not None:
        server.settings.transport_security = security  # type: ignore[attr-defined]
    app: Starlette = server.streamable_http_app()
    return app


class McpEndpoint:
    """ASGI application of the MCP server, without authentication."""

    @asynccontextmanager
    async def open(self, host: DebateHost) -> AsyncIterator[None]:
        """Run the MCP server during an `async with` block."""
        server = McpDebates(host).server()
        unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._app = _http_app(server, unguarded)
        async with server.session_manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        await self._app(scope, receive, send)


async def _serve_http(server: MCPServer[object], port: int) -> None:
    from moot.plugins.web.http_connections import http_server  # the `mcp` package depends on uvicorn

    await http_server(AuthMiddleware(_http_app(server)), "127.0.0.1", port).serve()


async def serve(database: str, default_config: DebateConfig, port: int | None) -> None:
    """Run an MCP server for the debates in a database.

    Clients connect through stdio, or through local HTTP if `port` is given.
    """
    environment = Environment(default_config=lambda: default_config)
    async with aopen_debates(database, environment=environment) as debates:
        host = DebateHost(debates, default_config)
        server = McpDebates(host).server()
        try:
            if port is None:
                await serve_stdio(server)
            else:
                await _serve_http(server, port)
        finally:
            await host.close()
