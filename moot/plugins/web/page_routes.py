"""Routes of the live page for files, debates, event streams and actions."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import get_args

from anyio import Event
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from moot.api import Debate, DebateConfig, Debates, open_debates
from moot.calls.concurrency import run_in_thread
from moot.claims.ledger_rendering import why_no_claims
from moot.config.model_settings import ModelSettings, is_built_in
from moot.config.participants import MAX_REQUESTED_DEBATERS
from moot.debates import dry_run, lifecycle, prompt_reconstruction, proposed_debaters
from moot.documents import DebateDocument, extracts_claims
from moot.embedding import MAX_REQUESTED_NAME, DebateRequest, DebaterRequest
from moot.importers import converted_suffixes
from moot.models import endpoints, offline, registry
from moot.plugins.evals.report_pages import evaluation_page
from moot.plugins.evals.results import Evaluations
from moot.plugins.evals.statistics import MAX_COMPARED, answer_text, compare_debates, render_comparison
from moot.plugins.web import auth_middleware, debate_host, page_actions, page_estimates, page_uploads
from moot.prompts.templates import ROLES
from moot.protocols.registry import PROTOCOLS, load_plugins
from moot.reports import render_brief, render_brief_html, render_html, render_markdown
from moot.reports.html import TEMPLATES, ReportPart, render_messages, render_part
from moot.reports.markdown import plain
from moot.reports.markdown_html import Prose
from moot.reports.positions import SECTIONS
from moot.runtime.environment import Environment
from moot.state import settings as environment
from moot.state.entries import JsonObject
from moot.state.errors import DebateNotFound, InputError, MootError, advice_for
from moot.state.settings import redact
from moot.text.terms import question_in

STATIC = Path(__file__).parent / "static"
MAX_ENTRIES = 100
"""Maximum number of transcript entries in one response."""
MAX_ROWS = 500
"""Maximum number of debates that the live page lists. Its search also finds all other debates."""
FILES: dict[str, tuple[str, Callable[[JsonObject], str]]] = {
    "json": ("application/json", lambda document: json.dumps(document, ensure_ascii=False, indent=2)),
    "html": ("text/html", render_html),
    "md": ("text/markdown", render_markdown),
    "brief.html": ("text/html", render_brief_html),
    "brief.md": ("text/markdown", render_brief),
    "adr.md": ("text/markdown", lambda document: render_brief(document, "adr")),
}
"""Media type and render function for each downloadable file, keyed by file name suffix."""


Endpoint = Callable[[Request], Awaitable[Response]]
"""Function that handles requests to one route of the live page."""
MAX_DOCUMENTS = 20
"""Maximum number of background documents for a debate started from the live page."""


class EmptyBody(BaseModel):
    """Request body that contains no fields."""

    model_config = ConfigDict(extra="forbid")


class EndpointRequest(BaseModel):
    """Address of a model endpoint and the name of the environment variable that holds its API key."""

    model_config = ConfigDict(extra="forbid")

    base_url: str = ""
    api_key_env: str = ""


class Document(BaseModel):
    """Background document for a new debate."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=page_uploads.MAX_NAME_CHARS)
    content: str


class NewDebate(DebateRequest):
    """Body of a request that creates a new debate.

    All other settings come from the operator's configuration.
    """

    model_config = ConfigDict(extra="forbid")

    debaters: Sequence[DebaterRequest] = Field((), max_length=MAX_REQUESTED_DEBATERS)
    turns: int = Field(0, ge=0, le=1000)
    model: str = Field("", max_length=MAX_REQUESTED_NAME)
    models: dict[str, EndpointRequest] = Field(default_factory=dict)
    """Each model's endpoint address and API key environment variable, keyed by model name. Only the
    operator may set them."""
    documents: Sequence[Document] = Field((), max_length=MAX_DOCUMENTS)
    """Background documents for all debaters."""

    def parts(self) -> tuple[str, JsonObject, list[JsonObject]]:
        """Return the question, the settings and the documents of the new debate.

        Settings with their default values are left out.
        """
        settings = self.model_dump(exclude_defaults=True)
        question, documents = settings.pop("question", ""), settings.pop("documents", [])
        return question, settings, documents


class LivePage:
    """Live web page that shows debates, and the API that provides its data.

    The first request opens the database.

    Args:
        debates: function that opens the database.
        default_config: function that returns the operator's configuration, the default of new debates.
    """

    def __init__(self, debates: Callable[[], Debates], default_config: Callable[[], DebateConfig]) -> None:
        self._debates, self._default_config = debates, default_config
        self._host: debate_host.DebateHost | None = None
        self._opening, self._estimates = asyncio.Lock(), page_estimates.Estimates()
        self._proposing = asyncio.Lock()
        self._last_overview: tuple[object, str] = (None, "")
        """Overview that was last sent to a follower, and its JSON text."""

    def routes(self) -> list[BaseRoute]:
        """Return all routes of the live page."""
        debate, read, act = "/api/debates/{debate}", self._reading, self._answering
        uploads = page_uploads.Uploads()
        inner: list[BaseRoute] = [
            Route("/api/setup", read(self._setup)),
            Route("/api/logout", act(self._log_out), methods=["POST"]),
            Route("/api/compare", read(self._compare)),
            Route("/api/models", act(self._models)),
            Route("/api/plan", act(self._plan), methods=["POST"]),
            Route("/api/propose", act(self._propose), methods=["POST"]),
            Route("/api/documents/{name}", act(uploads.convert), methods=["POST"]),
            Route("/api/imports/{name}", act(uploads.import_transcript), methods=["POST"]),
            Route("/api/samples/{sample}", act(self._play), methods=["POST"]),
            Route("/api/debates", read(self._list)),
            Route("/api/debates", act(self._start), methods=["POST"]),
            Route(debate, read(self._debate)),
            Route(f"{debate}/events", act(self._events)),
            Route(f"{debate}/entries", read(self._entries)),
            Route(f"{debate}/find", read(self._find)),
            Route(f"{debate}/parts/{{part}}", read(self._part)),
            Route(f"{debate}/ledger", read(self._ledger)),
            Route(f"{debate}/claims", act(self._cost_of_claims)),
            Route(f"{debate}/receipts", read(self._receipts)),
            Route(f"{debate}/prompts/{{what}}", read(self._prompt)),
            Route(f"{debate}/files/{{form}}", read(self._file)),
            Route(f"{debate}/{{action}}", act(self._act), methods=["POST"]),
            Route("/api/evals", read(list_evaluations)),
            Route("/api/evals/{evaluation:path}", read(show_evaluation)),
            Route("/static/report.css", lambda _: FileResponse(TEMPLATES / "report.css")),
            Mount("/static", StaticFiles(directory=STATIC)),
            Route("/", self._page),
            Route("/compare", self._page),
            Route("/evals", self._page),
            Route("/evals/{evaluation:path}", self._page),
            Route("/d/{debate}", self._page),
        ]
        handlers = dict.fromkeys((MootError, ValidationError, HTTPException), auth_middleware.error_response)
        headers = [Middleware(auth_middleware.HeadersMiddleware)]
        app = Starlette(routes=inner, exception_handlers=handlers, middleware=headers)
        return [Route(auth_middleware.PAGE, self._page, middleware=headers), Mount(auth_middleware.PAGE, app)]

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Stop running debates and close the database when the server shuts down."""
        try:
            yield
        finally:
            if self._host:
                await self._host.close()
                await run_in_thread(self._host.debates.close)

    async def open(self) -> debate_host.DebateHost:
        """Open the database if necessary, and return the host that runs its debates."""
        async with self._opening:
            if not self._host:
                default_config = await run_in_thread(self._default_config)
                debates = await run_in_thread(self._debates)
                self._host = debate_host.DebateHost(debates, default_config, tokens=True)
                self._reader = debate_host.DebateReader(self._host)
        return self._host

    def _answering(self, answer: Callable[[Request, debate_host.DebateHost], Awaitable[object]]) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            with advice_for("command"):  # who reads the page also runs its server, or asks whoever does
                result = await answer(request, await self.open())
            return result if isinstance(result, Response) else auth_middleware.EscapedJson(result)

        return endpoint

    def _reading(self, read: Callable[[Request, debate_host.DebateHost], object]) -> Endpoint:
        """Return a route handler that calls `read`, which reads the database, on a thread for reads."""
        return self._answering(lambda request, host: host.threads.read(read, request, host))

    async def _page(self, request: Request) -> Response:
        if request.query_params.get("token"):
            answer = RedirectResponse(auth_middleware.PAGE, status_code=303)
            if request.scope.get(auth_middleware.KNOWN):  # a wrong token must not end the operator's session
                auth_middleware.begin_session(request, answer)
            return answer
        return FileResponse(STATIC / "index.html")

    async def _log_out(self, request: Request, _: debate_host.DebateHost) -> Response:
        """End the browser's session."""
        await auth_middleware.body_of(request, EmptyBody)
        answer = auth_middleware.EscapedJson({})
        auth_middleware.end_session(request, answer)
        return answer

    def _setup(self, request: Request, host: debate_host.DebateHost) -> JsonObject:
        allowed_models = environment.names_in("MOOT_ALLOW_MODELS")
        model_names = (
            *host.default_config.model_names(),
            environment.variable("MOOT_MODEL") or "",
            *allowed_models,
        )
        graph = host.debates.graph.get_graph()
        load_plugins()
        return {
            "protocols": {name: (each.__doc__ or "").partition("\n")[0] for name, each in PROTOCOLS.items()},
            "protocol": host.default_config.protocol,
            "proposing": _proposing_protocols(host.default_config),
            "model": "" if host.default_config.lacks_model() else host.default_config.model,
            "models": [
                name for name in dict.fromkeys(model_names) if name and not {"*", "?", "["} & set(name)
            ],
            "sections": SECTIONS,
            "nodes": [name for name in graph.nodes if not name.startswith("__")],
            "edges": [[edge.source, edge.target] for edge in graph.edges],
            "files": list(FILES),
            "roles": ROLES,
            "converted": [*converted_suffixes()],
            "max_upload_bytes": page_uploads.MAX_UPLOAD_BYTES,
            "max_document_bytes": page_uploads.MAX_DOCUMENT_BYTES,
            "samples": [_sample(name) for name in offline.recordings()],
            "operator": bool(request.scope.get(auth_middleware.OPERATOR)),
        }

    async def _models(self, request: Request, host: debate_host.DebateHost) -> JsonObject:
        """Return the names of the models that the configured endpoint offers.

        Only the operator may use all of them.
        """
        if not request.scope.get(auth_middleware.OPERATOR):
            raise HTTPException(403, "only the operator, who sends the server's token, may list the models")
        return {"models": await endpoints.offered_models(registry.access_to("", ModelSettings()))}

    async def _plan(self, request: Request, host: debate_host.DebateHost) -> JsonObject:
        """Return an estimate of the calls, tokens and cost of the requested debate."""
        _, settings, documents = (await auth_middleware.body_of(request, NewDebate)).parts()
        by_operator = bool(request.scope.get(auth_middleware.OPERATOR))
        config = await run_in_thread(partial(host.apply_client_settings, settings, by_operator=by_operator))
        host.check_model(config)
        return await self._estimates.plan(config, documents, request.is_disconnected)

    async def _propose(self, request: Request, host: debate_host.DebateHost) -> JsonObject:
        """Return two debaters that a model proposes for a question. Only the operator may ask for them.

        The model proposes others than the debaters in the request.
        """
        if not request.scope.get(auth_middleware.OPERATOR):
            raise HTTPException(403, "only the operator, who sends the server's token, may ask for proposals")
        question, settings, _ = (await auth_middleware.body_of(request, NewDebate)).parts()

        def propose() -> JsonObject:
            config = host.apply_client_settings({**settings, "debaters": ()}, by_operator=True)
            present = host.apply_client_settings(settings, by_operator=True).debaters
            if is_built_in(config.model):
                raise InputError(
                    "the built-in model cannot propose debaters: choose another model, or run `moot setup`"
                )
            bare_environment = Environment(host.debates.environment.factory, host.debates.environment.models)
            rejected = present if settings.get("debaters") else ()
            debaters, spent = proposed_debaters.propose_debaters(question, config, bare_environment, rejected)
            proposed = [each.model_dump(include={"name", "role", "stance"}) for each in debaters]
            return {"debaters": proposed, "cost_usd": spent}

        async with self._proposing:
            return await host.threads.call_models(propose)

    async def _play(self, request: Request, host: debate_host.DebateHost) -> JsonObject:
        """Start the replay of a recorded sample debate."""
        await auth_middleware.body_of(request, EmptyBody)
        sample = request.path_params["sample"]
        if sample not in offline.recordings():
            raise HTTPException(404, f"there is no sample debate {sample!r}")

        def play() -> Debate:
            settings = offline.recording_config(sample)
            topic, name = settings.pop("topic"), lifecycle.unused_name(host.debates.records, sample)
            config = DebateConfig(**settings)
            return host.debates.start(topic, config, name=name, operator=host.default_config)

        debate = await run_in_thread(play)
        host.run(debate)
        return {"id": debate.id}

    def _list(self, request: Request, host: debate_host.DebateHost) -> JsonObject:
        query, status = request.query_params.get("q", "").casefold(), request.query_params.get("status")
        outcomes = host.debates.records.results.all()
        rows = [
            {**asdict(row), **(asdict(outcomes[row.id]) if row.id in outcomes else {})}
            for row in host.debates.rows()
        ]
        keys = ("name", "topic", "question", "model", "winner", "decision")
        matches = [
            row
            for row in rows
            if status in (None, "", row["status"])
            and query in "\n".join(str(row.get(key, "")) for key in keys).casefold()
        ]
        return {"debates": matches[:MAX_ROWS], "found": len(matches), "all": len(rows)}

    async def _start(self, request: Request, host: debate_host.DebateHost) -> JsonObject:
        question, settings, documents = (await auth_middleware.body_of(request, NewDebate)).parts()
        by_operator = bool(request.scope.get(auth_middleware.OPERATOR))
        debate = await host.make(question, settings, documents, by_operator=by_operator)
        host.run(debate)
        return {"id": debate.id}

    def _debate(self, request: Request, host: debate_host.DebateHost) -> JsonObject:
        return self._reader.overview(_debate_of(request, host))

    async def _events(self, request: Request, host: debate_host.DebateHost) -> Response:
        debate, ending = await host.threads.read(_debate_of, request, host), Event()

        async def events() -> AsyncIterator[dict[str, str]]:
            # A client whose debate was deleted asks again, and is told that there is no such debate.
            with suppress(DebateNotFound):
                async for message in debate_host.follow(host, self._reader, debate, ending.is_set):
                    yield {"data": self._event_data(message)}
                    if "debate" in message and not (message["debate"]["running"] or host.running(debate.id)):
                        yield {
                            "data": '{"idle": true}'
                        }  # the page reconnects later, because browsers allow few connections
                        break

        return EventSourceResponse(events(), shutdown_event=ending, shutdown_grace_period=1.0)

    def _event_data(self, message: JsonObject) -> str:
        """Return the JSON text of an update. All followers of a debate share the text of an overview."""
        overview = message.get("debate")
        if overview is not None and overview is self._last_overview[0]:
            return self._last_overview[1]
        text = bytes(auth_middleware.EscapedJson(message).body).decode()
        if overview is not None:
            self._last_overview = overview, text
        return text

    def _document(self, request: Request, host: debate_host.DebateHost) -> DebateDocument:
        return self._reader.read(_debate_of(request, host)).document

    def _entries(self, request: Request, host: debate_host.DebateHost) -> object:
        document, first = self._document(request, host), _number(request, "from")
        transcript = document["transcript"]
        if ids := request.query_params.getlist("id"):
            entries = [entry for entry in transcript if entry["id"] in ids]
        else:
            entries = transcript[first : min(first + MAX_ENTRIES, _number(request, "to", len(transcript)))]
        return [
            {
                **_some(each.entry, "id", "seq", "speaker", "kind", "phase", "room"),
                "tone": each.person.tone,
                "new_phase": each.new_phase,
                "prompt": bool(each.view),
                "html": html,
            }
            for each, html in render_messages(entries, document)
        ]

    def _find(self, request: Request, host: debate_host.DebateHost) -> object:
        words, document = request.query_params.get("q", "").casefold(), self._document(request, host)
        return [each["seq"] for each in document["transcript"] if words in each["content"].casefold()]

    def _part(self, request: Request, host: debate_host.DebateHost) -> JsonObject:
        part = request.path_params["part"]
        if part not in get_args(ReportPart):
            raise HTTPException(404, f"the report has no part {part!r}")
        return {"html": render_part(self._document(request, host), part)}

    def _ledger(self, request: Request, host: debate_host.DebateHost) -> JsonObject:
        document = self._document(request, host)
        rooms = document["state"].get("crux_rooms", {})
        standing = document["blackboard"]["standing"]
        missing = why_no_claims(document["blackboard"]["claim_events"], extracts=extracts_claims(document))
        return {"claims": standing["claims"], "rooms": list(rooms.values()), "missing": missing}

    async def _cost_of_claims(self, request: Request, host: debate_host.DebateHost) -> JsonObject:
        debate = await host.threads.read(_debate_of, request, host)
        return await self._estimates.claims(debate, request.is_disconnected)

    def _receipts(self, request: Request, host: debate_host.DebateHost) -> JsonObject:
        document, keys = self._document(request, host), ("sections", "total_tokens", "budget")
        return {
            "prompts": [
                _some(each, "entry_id", "seq", "speaker", "step", "round", *keys)
                for each in document["receipts"]
            ],
            "calls": [_some(each, "id", "purpose", "memory_kind", *keys) for each in document["calls"]],
        }

    def _prompt(self, request: Request, host: debate_host.DebateHost) -> JsonObject:
        what = request.path_params["what"]
        session = _debate_of(request, host).session
        return prompt_reconstruction.reconstruct_prompt(
            session, what if what.startswith("c") else auth_middleware.number_in(what, "prompt")
        ).to_json()

    def _file(self, request: Request, host: debate_host.DebateHost) -> Response:
        form, document = request.path_params["form"], self._document(request, host)
        if form not in FILES:
            raise HTTPException(404, f"there is no file format {form!r}: use {', '.join(FILES)}")
        media_type, render = FILES[form]
        text = redact(render(dry_run.with_plan(document))).encode("utf-8", "replace")
        headers = {"Content-Disposition": f'attachment; filename="debate-{document["id"][:8]}.{form}"'}
        return Response(text, media_type=media_type, headers=headers)

    def _compare(self, request: Request, host: debate_host.DebateHost) -> JsonObject:
        names = request.query_params.getlist("debate")
        if not 2 <= len(names) <= MAX_COMPARED:
            raise HTTPException(400, f"choose 2 to {MAX_COMPARED} debates")
        documents = [self._reader.read(host.debates.get(name)).document for name in names]
        compared, prose = compare_debates(documents), Prose({})
        rows = compared["debates"]
        table = render_comparison(
            {**compared, "debates": [{**row, "final_answer": "", "details": ""} for row in rows]}
        )
        answers = (prose.block(f"# {plain(row['name'])}\n\n{answer_text(row)}", base=2) for row in rows)
        columns = "".join(f"<section>{answer}</section>" for answer in answers)
        return {"html": f'{prose.block(table, base=1)}<div class="columns">{columns}</div>'}

    async def _act(self, request: Request, host: debate_host.DebateHost) -> JsonObject | Response:
        kind = page_actions.ACTIONS.get(request.path_params["action"])
        if kind is None:
            raise HTTPException(404, f"there is no action {request.path_params['action']!r}")
        action = await auth_middleware.body_of(request, kind)
        debate = await host.threads.read(_debate_of, request, host)
        if isinstance(action, page_actions.AskQuestion) and action.stream:
            parts = action.parts(host, debate)
            lines = (bytes(auth_middleware.EscapedJson(part).body) + b"\n" async for part in parts)
            return StreamingResponse(lines, media_type="application/x-ndjson")
        return await action.perform(
            host, debate, by_operator=bool(request.scope.get(auth_middleware.OPERATOR))
        )


def _proposing_protocols(config: DebateConfig) -> list[str]:
    """Return the protocols whose two default debaters the form replaces with two proposed debaters."""
    defaults = {name: DebateConfig(protocol=name).debaters for name in PROTOCOLS}
    if config.debaters != defaults[config.protocol]:
        return []  # the operator has chosen the debaters
    return [name for name, debaters in defaults.items() if len(debaters) == 2]


def _sample(name: str) -> JsonObject:
    """Return the name, question, protocol and debater names of a recorded sample debate."""
    recorded = offline.recording_config(name)
    return {
        "name": name,
        "question": question_in(recorded["topic"]),
        "protocol": recorded["protocol"],
        "debaters": [each["name"] for each in recorded["debaters"]],
    }


def _debate_of(request: Request, host: debate_host.DebateHost) -> Debate:
    return host.debates.get(request.path_params["debate"])


def _number(request: Request, name: str, default: int = 0) -> int:
    value = request.query_params.get(name)
    return auth_middleware.number_in(value, name) if value else default


def _some(record: Mapping[str, object], *keys: str) -> JsonObject:
    return {key: record[key] for key in keys}


def list_evaluations(request: Request, host: debate_host.DebateHost) -> JsonObject:
    """Return one row for each evaluation in the database, newest first."""
    return {"evaluations": Evaluations(host.debates.records.sql).overview()[::-1]}


def show_evaluation(request: Request, host: debate_host.DebateHost) -> JsonObject:
    """Return the report of an evaluation for the live page.

    Raises:
        DebateNotFound: There is no evaluation with this name.
        InputError: The baseline in the query is no arm.
    """
    store = Evaluations(host.debates.records.sql)
    evaluation = store.find(request.path_params["evaluation"])
    baseline = request.query_params.get("baseline", "")
    return evaluation_page(evaluation, store.outcomes(evaluation.name), baseline)


def page_app(
    debates: Callable[[], Debates],
    default_config: DebateConfig,
    visitor_token: str | None = None,
    launch_token: str | None = None,
) -> Starlette:
    """Return a web application that serves the live page and authenticates its users.

    Args:
        debates: function that opens the database.
        default_config: default configuration of new debates.
        visitor_token: token that gives access without the operator's rights. Without it and without
            `MOOT_TOKEN`, clients on this machine need no token.
        launch_token: token that makes its client the operator, as the value of `MOOT_TOKEN` does.
    """
    page = LivePage(debates, lambda: default_config)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with page.lifespan(app):
            await page.open()  # reports a database that cannot be opened at the start
            yield

    return Starlette(
        routes=[Route("/", lambda _: RedirectResponse(auth_middleware.PAGE)), *page.routes()],
        lifespan=lifespan,
        middleware=[
            Middleware(auth_middleware.AuthMiddleware, visitor_token=visitor_token, launch_token=launch_token)
        ],
    )


def serve_page(
    database: str,
    default_config: DebateConfig,
    host: str,
    port: int,
    visitor_token: str | None,
    launch_token: str,
) -> None:
    """Serve the live page until the process is stopped."""
    from moot.plugins.web.http_connections import run_server  # not needed under LangGraph's server

    environment_of_operator = Environment(default_config=lambda: default_config)
    app = page_app(
        lambda: open_debates(database, environment=environment_of_operator),
        default_config,
        visitor_token,
        launch_token,
    )
    run_server(app, host, port)
