"""The live page's routes: static files, debates as JSON and as parts of the report, events, and actions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import cast, get_args

from anyio import Event
from pydantic import ConfigDict, Field, ValidationError
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from moot.graph.api import Debate, DebateConfig, Debates, open_debates
from moot.graph.compare import compare_debates, render_comparison
from moot.graph.debate_host import DebateHost
from moot.graph.documents import DebateDocument
from moot.graph.embedding import DebateRequest, DebaterRequest
from moot.graph.live.debate_feed import DebateReader, follow
from moot.graph.live.doorkeeper import COOKIE, PAGE, Doorkeeper, PlainJson, WithHeaders, body_of, mistake
from moot.graph.live.page_actions import ACTIONS
from moot.graph.lookback import look_back
from moot.graph.reports import render_brief, render_brief_html, render_html, render_markdown
from moot.graph.reports.charts import SECTIONS
from moot.graph.reports.html import TEMPLATES, ReportPart, render_messages, render_part
from moot.graph.reports.prose import Prose
from moot.nodes.protocols.protocol_table import PROTOCOLS, load_plugged
from moot.state import settings as environment
from moot.state.entries import JsonObject
from moot.state.errors import MootError
from moot.state.event_loop import in_thread
from moot.state.redaction import redact

STATIC = Path(__file__).parent / "static"
MOST_ENTRIES = 100
"""Entries that one answer holds."""
MOST_ROWS = 500
"""Debates that the list holds at once; the search looks at all."""
FILES: dict[str, tuple[str, Callable[[JsonObject], str]]] = {
    "json": ("application/json", lambda document: json.dumps(document, ensure_ascii=False, indent=2)),
    "html": ("text/html", render_html),
    "md": ("text/markdown", render_markdown),
    "brief.html": ("text/html", render_brief_html),
    "brief.md": ("text/markdown", render_brief),
    "adr.md": ("text/markdown", lambda document: render_brief(document, "adr")),
}
"""What can be downloaded of a debate, by the file's ending."""


Endpoint = Callable[[Request], Awaitable[Response]]


class NewDebate(DebateRequest):
    """A debate that is asked for: data alone, everything else is the operator's."""

    model_config = ConfigDict(extra="forbid")

    debaters: Sequence[DebaterRequest] = ()
    turns: int = Field(0, ge=0, le=1000)
    model: str = ""


class LivePage:
    """The page and its data; the database is opened by who comes first.

    Args:
        debates: opens the database.
        usual: makes the operator's configuration, which debates have where their makers say nothing.
    """

    def __init__(self, debates: Callable[[], Debates], usual: Callable[[], DebateConfig]) -> None:
        self._debates, self._usual = debates, usual
        self._host: DebateHost | None = None
        self._opening = asyncio.Lock()

    def routes(self) -> list[BaseRoute]:
        """Return the routes, all under `/moot`."""
        debate, read, act = "/api/debates/{debate}", self._reading, self._answering
        inner: list[BaseRoute] = [
            Route("/api/setup", read(self._setup)),
            Route("/api/compare", read(self._compare)),
            Route("/api/debates", read(self._list)),
            Route("/api/debates", act(self._start), methods=["POST"]),
            Route(debate, read(self._debate)),
            Route(f"{debate}/events", act(self._events)),
            Route(f"{debate}/entries", read(self._entries)),
            Route(f"{debate}/find", read(self._find)),
            Route(f"{debate}/parts/{{part}}", read(self._part)),
            Route(f"{debate}/ledger", read(self._ledger)),
            Route(f"{debate}/receipts", read(self._receipts)),
            Route(f"{debate}/prompts/{{what}}", read(self._prompt)),
            Route(f"{debate}/files/{{form}}", read(self._file)),
            Route(f"{debate}/{{action}}", act(self._act), methods=["POST"]),
            Route("/static/report.css", lambda _: FileResponse(TEMPLATES / "report.css")),
            Mount("/static", StaticFiles(directory=STATIC)),
            Route("/", self._page),
            Route("/compare", self._page),
            Route("/d/{debate}", self._page),
        ]
        told = dict.fromkeys((MootError, ValidationError, HTTPException), mistake)
        headers = [Middleware(WithHeaders)]
        app = Starlette(routes=inner, exception_handlers=told, middleware=headers)
        return [Route(PAGE, self._page, middleware=headers), Mount(PAGE, app)]

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Close what was opened, and pause what runs, as the server ends."""
        try:
            yield
        finally:
            if self._host:
                await self._host.close()
                await in_thread(self._host.debates.close)

    async def open(self) -> DebateHost:
        """Return the host of the debates, whose database is open."""
        async with self._opening:
            if not self._host:
                usual = await in_thread(self._usual)
                debates = await in_thread(self._debates)
                self._host = DebateHost(debates, usual, tokens=True)
                self._reader = DebateReader(self._host)
        return self._host

    def _answering(self, answer: Callable[[Request, DebateHost], Awaitable[object]]) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            told = await answer(request, await self.open())
            return told if isinstance(told, Response) else PlainJson(told)

        return endpoint

    def _reading(self, read: Callable[[Request, DebateHost], object]) -> Endpoint:
        """Answer from the database, on a worker thread."""
        return self._answering(lambda request, host: in_thread(read, request, host))

    async def _page(self, request: Request) -> Response:
        if token := request.query_params.get("token"):
            answer = RedirectResponse(PAGE, status_code=303)
            answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", path="/")
            return answer
        return FileResponse(STATIC / "index.html")

    def _setup(self, request: Request, host: DebateHost) -> JsonObject:
        allowed = environment.names_in("MOOT_ALLOW_MODELS")
        named = (*host.usual.model_names(), environment.variable("MOOT_MODEL") or "", *allowed)
        graph = host.debates.graph.get_graph()
        load_plugged()
        return {
            "protocols": {name: (each.__doc__ or "").partition("\n")[0] for name, each in PROTOCOLS.items()},
            "protocol": host.usual.protocol,
            "model": host.usual.model,
            "models": [name for name in dict.fromkeys(named) if name and not {"*", "?", "["} & set(name)],
            "sections": SECTIONS,
            "nodes": [name for name in graph.nodes if not name.startswith("__")],
            "edges": [[edge.source, edge.target] for edge in graph.edges],
            "files": list(FILES),
        }

    def _list(self, request: Request, host: DebateHost) -> JsonObject:
        words, status = request.query_params.get("q", "").casefold(), request.query_params.get("status")
        outcomes = host.debates.records.outcomes.all()
        known = [
            {**asdict(row), **(asdict(outcomes[row.id]) if row.id in outcomes else {})}
            for row in host.debates.rows()
        ]
        keys = ("name", "topic", "model", "winner")
        found = [
            row
            for row in known
            if status in (None, "", row["status"])
            and words in "\n".join(str(row.get(key, "")) for key in keys).casefold()
        ]
        return {"debates": found[:MOST_ROWS], "found": len(found), "all": len(known)}

    async def _start(self, request: Request, host: DebateHost) -> JsonObject:
        said = (await body_of(request, NewDebate)).model_dump(exclude_defaults=True)
        debate = await host.make(said.pop("question", ""), said)
        host.run(debate)
        return {"id": debate.id}

    def _debate(self, request: Request, host: DebateHost) -> JsonObject:
        return self._reader.overview(_debate_of(request, host))

    async def _events(self, request: Request, host: DebateHost) -> Response:
        debate, ending = await in_thread(_debate_of, request, host), Event()

        async def events() -> AsyncIterator[dict[str, str]]:
            async for told in follow(host, self._reader, debate, ending.is_set):
                yield {"data": bytes(PlainJson(told).body).decode()}
                if "debate" in told and not (told["debate"]["running"] or host.running(debate.id)):
                    yield {"data": '{"rest": true}'}  # its reader looks again: browsers have few lines
                    break

        return EventSourceResponse(events(), shutdown_event=ending, shutdown_grace_period=1.0)

    def _document(self, request: Request, host: DebateHost) -> JsonObject:
        return self._reader.read(_debate_of(request, host)).document

    def _entries(self, request: Request, host: DebateHost) -> object:
        document, first = self._document(request, host), _number(request, "from")
        transcript = document["transcript"]
        if ids := request.query_params.getlist("id"):
            wanted = [entry for entry in transcript if entry["id"] in ids]
        else:
            wanted = transcript[first : min(first + MOST_ENTRIES, _number(request, "to", len(transcript)))]
        return [
            {
                **_some(each.entry, "id", "seq", "speaker", "kind", "phase", "room"),
                "tone": each.person.tone,
                "new_phase": each.new_phase,
                "prompt": bool(each.view),
                "html": html,
            }
            for each, html in render_messages(wanted, cast(DebateDocument, document))
        ]

    def _find(self, request: Request, host: DebateHost) -> object:
        words, document = request.query_params.get("q", "").casefold(), self._document(request, host)
        return [each["seq"] for each in document["transcript"] if words in each["content"].casefold()]

    def _part(self, request: Request, host: DebateHost) -> JsonObject:
        part = request.path_params["part"]
        if part not in get_args(ReportPart):
            raise HTTPException(404, f"a report has no part {part!r}")
        return {"html": render_part(self._document(request, host), part)}

    def _ledger(self, request: Request, host: DebateHost) -> JsonObject:
        document = self._document(request, host)
        rooms = document["state"].get("crux_rooms", {})
        standing = document["blackboard"]["standing"]
        return {"propositions": standing["propositions"], "rooms": list(rooms.values())}

    def _receipts(self, request: Request, host: DebateHost) -> JsonObject:
        document, keys = self._document(request, host), ("sections", "total_tokens", "budget")
        return {
            "prompts": [_some(each, "entry_id", "seq", "speaker", *keys) for each in document["receipts"]],
            "calls": [_some(each, "id", "purpose", "makes", *keys) for each in document["calls"]],
        }

    def _prompt(self, request: Request, host: DebateHost) -> JsonObject:
        what = request.path_params["what"]
        session = _debate_of(request, host).session
        return look_back(session, int(what) if what.isdecimal() else what).to_json()

    def _file(self, request: Request, host: DebateHost) -> Response:
        form, document = request.path_params["form"], self._document(request, host)
        if form not in FILES:
            raise HTTPException(404, f"no file of a debate ends in {form!r}")
        kind, render = FILES[form]
        text = redact(render(document)).encode("utf-8", "replace")
        named = {"Content-Disposition": f'attachment; filename="debate-{document["id"][:8]}.{form}"'}
        return Response(text, media_type=kind, headers=named)

    def _compare(self, request: Request, host: DebateHost) -> JsonObject:
        names = request.query_params.getlist("debate")
        if len(names) < 2:
            raise HTTPException(400, "give two debates or more")
        documents = [self._reader.read(host.debates.get(name)).document for name in names]
        side_by_side = render_comparison(compare_debates(documents))
        return {"html": str(Prose({}).block(side_by_side, base=1))}

    async def _act(self, request: Request, host: DebateHost) -> JsonObject:
        kind = ACTIONS.get(request.path_params["action"])
        if kind is None:
            raise HTTPException(404, "no such action")
        action = await body_of(request, kind)
        return await action.carry_out(host, await in_thread(_debate_of, request, host))


def _debate_of(request: Request, host: DebateHost) -> Debate:
    return host.debates.get(request.path_params["debate"])


def _number(request: Request, name: str, default: int = 0) -> int:
    given = request.query_params.get(name, "")
    return int(given) if given.isdecimal() else default


def _some(record: Mapping[str, object], *keys: str) -> JsonObject:
    return {key: record[key] for key in keys}


def page_app(debates: Callable[[], Debates], usual: DebateConfig, token: str | None = None) -> Starlette:
    """Return the page as an app, behind a doorkeeper who asks for the token from elsewhere."""
    page = LivePage(debates, lambda: usual)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with page.lifespan(app):
            await page.open()  # a database that cannot be opened is told of before anybody comes
            yield

    return Starlette(
        routes=[Route("/", lambda _: RedirectResponse(PAGE)), *page.routes()],
        lifespan=lifespan,
        middleware=[Middleware(Doorkeeper, token=token)],
    )


def serve_page(database: str, usual: DebateConfig, host: str, port: int, token: str | None) -> None:
    """Serve the page until the process is stopped."""
    import uvicorn  # LangGraph's server brings its own

    app = page_app(lambda: open_debates(database), usual, token)
    uvicorn.run(app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=2)
