"""Routes of the live page for files, debates, event streams and actions."""

import asyncio
import json
import time
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
from moot.debates.dry_run import estimate, expected_cost, with_plan
from moot.debates.lifecycle import unused_name
from moot.debates.prompt_reconstruction import reconstruct_prompt
from moot.debates.proposed_debaters import propose_debaters
from moot.documents import DebateDocument, extracts_claims
from moot.embedding import MAX_REQUESTED_NAME, DebateRequest, DebaterRequest
from moot.importers import SeveralConversations, converted_suffixes, parse_transcript, read_upload
from moot.models.endpoints import offered_models
from moot.models.offline import recording_config, recordings
from moot.models.registry import access_to
from moot.plugins.evals.statistics import MAX_COMPARED, answer_text, compare_debates, render_comparison
from moot.plugins.web import auth_middleware, debate_host
from moot.prompts.templates import ROLES
from moot.protocols.registry import PROTOCOLS, load_plugins, turns_planned
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
from moot.text.plain_text import clip
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
MAX_NAME_CHARS = 200
"""Maximum number of characters in a debate's name or id in a URL."""
MAX_DOCUMENTS = 20
"""Maximum number of background documents for a debate started from the live page."""


MAX_UPLOAD_BYTES = 20_000_000
"""Maximum size in bytes of a document that is uploaded on the live page."""
MAX_DOCUMENT_BYTES = 900_000
"""Maximum size in bytes of the text of an uploaded document."""
UPLOADS_AT_ONCE = 2
"""Maximum number of uploaded documents and transcripts to read at the same time."""
MAX_TRANSCRIPT_BYTES = 5_000_000
"""Maximum size in bytes of an uploaded transcript. This process reads it, which takes up to 6 s."""
MAX_TITLES = 200
"""Maximum number of conversations in a file from which the page lets the visitor choose."""
PREVIEW_CHARS = 300
"""Number of characters of each message in a preview of a transcript."""


PLAN_TIME_S = 20.0
"""Maximum time in seconds to spend on estimating one debate's cost."""
PLAN_WAIT_S = 5.0
"""Maximum time in seconds that an estimate waits for other estimates."""
LONG_PLAN = 1000
"""Size from which an estimate counts as long, measured as debaters times turns. On one core, 10 debaters with
60 turns take 2.5 s, and 2 debaters with 1,000 turns 5.4 s."""
DISCONNECT_POLL_S = 0.25
"""Seconds between checks whether the client that asked for an estimate is still connected."""


class PlanCheck:
    """Check that stops a slow or abandoned estimate.

    An estimate is abandoned if its client has disconnected.
    """

    def __init__(self) -> None:
        self.gone = False
        """True if nobody waits for the estimate any more."""
        self._until = time.monotonic() + PLAN_TIME_S

    def __call__(self) -> None:
        """Raise an error if the estimate must stop.

        Raises:
            InputError: The client has disconnected, or the time is up.
        """
        if self.gone:
            raise InputError("the estimate was stopped because the client disconnected")
        if time.monotonic() > self._until:
            raise InputError(
                f"the cost of this debate cannot be estimated within {PLAN_TIME_S:g} s: use fewer debaters "
                "or turns, or run `moot plan`"
            )


@asynccontextmanager
async def _slot(slots: asyncio.Semaphore) -> AsyncIterator[None]:
    """Limit how many estimates run at the same time.

    A slot is held during an `async with` block.

    Raises:
        HTTPException: No slot becomes free in time.
    """
    try:
        await asyncio.wait_for(slots.acquire(), PLAN_WAIT_S)
    except TimeoutError:
        raise HTTPException(503, "the server is busy with other estimates: try again later") from None
    try:
        yield
    finally:
        slots.release()


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

    name: str = Field(min_length=1, max_length=MAX_NAME_CHARS)
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
        self._opening, self._converting = asyncio.Lock(), asyncio.Semaphore(UPLOADS_AT_ONCE)
        self._planning = {True: asyncio.Semaphore(1), False: asyncio.Semaphore(1)}
        """Held while a debate is estimated, by whether the debate is long. Long estimates cannot delay short
        ones."""
        self._proposing = asyncio.Lock()
        self._last_overview: tuple[object, str] = (None, "")
        """Overview that was last sent to a follower, and its JSON text."""

    def routes(self) -> list[BaseRoute]:
        """Return all routes of the live page."""
        debate, read, act = "/api/debates/{debate}", self._reading, self._answering
        inner: list[BaseRoute] = [
            Route("/api/setup", read(self._setup)),
            Route("/api/logout", act(self._log_out), methods=["POST"]),
            Route("/api/compare", read(self._compare)),
            Route("/api/models", act(self._models)),
            Route("/api/plan", act(self._plan), methods=["POST"]),
            Route("/api/propose", act(self._propose), methods=["POST"]),
            Route("/api/documents/{name}", act(self._convert), methods=["POST"]),
            Route("/api/imports/{name}", act(self._import), methods=["POST"]),
            Route("/api/samples/{sample}", act(self._play), methods=["POST"]),
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
            Route("/api/evals", read(debate_host.list_evaluations)),
            Route("/api/evals/{evaluation:path}", read(debate_host.show_evaluation)),
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
            "max_upload_bytes": MAX_UPLOAD_BYTES,
            "max_document_bytes": MAX_DOCUMENT_BYTES,
            "samples": [_sample(name) for name in recordings()],
            "operator": bool(request.scope.get(auth_middleware.OPERATOR)),
        }

    async def _models(self, request: Request, host: debate_host.DebateHost) -> JsonObject:
        """Return the names of the models that the configured endpoint offers.

        Only the operator may use all of them.
        """
        if not request.scope.get(auth_middleware.OPERATOR):
            raise HTTPException(403, "only the operator, who sends the server's token, may list the models")
        return {"models": await offered_models(access_to("", ModelSettings()))}

    async def _plan(self, request: Request, host: debate_host.DebateHost) -> JsonObject:
        """Return an estimate of the calls, tokens and cost of the requested debate."""
        _, settings, documents = (await auth_middleware.body_of(request, NewDebate)).parts()
        by_operator = bool(request.scope.get(auth_middleware.OPERATOR))

        config = await run_in_thread(partial(host.apply_client_settings, settings, by_operator=by_operator))
        host.check_model(config)
        is_long = len(config.debaters) * (turns_planned(config) or LONG_PLAN) >= LONG_PLAN

        def plan() -> JsonObject:
            planned = estimate(config, check, documents=documents)
            if planned is None:
                raise InputError(
                    f"the cost of a debate with protocol {config.protocol!r} cannot be estimated"
                )
            cost = expected_cost(planned, config)
            return {"calls": planned.calls, **({"unpriced": cost} if isinstance(cost, list) else cost)}

        async with _slot(self._planning[is_long]):
            check = PlanCheck()
            planning = asyncio.create_task(run_in_thread(plan))
            try:
                while not (await asyncio.wait({planning}, timeout=DISCONNECT_POLL_S))[0]:
                    check.gone = check.gone or await request.is_disconnected()
            finally:
                check.gone = True  # ends the estimate if the server stops
            return await planning

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
            debaters, spent = propose_debaters(question, config, bare_environment, rejected)
            proposed = [each.model_dump(include={"name", "role", "stance"}) for each in debaters]
            return {"debaters": proposed, "cost_usd": spent}

        async with self._proposing:
            return await host.threads.call_models(propose)

    async def _convert(self, request: Request, _: debate_host.DebateHost) -> Response:
        """Convert an uploaded document to text, and return the text to the page.

        The page sends the text back when it creates a debate, so the text is returned unchanged.
        """
        name = request.path_params["name"][:MAX_NAME_CHARS]
        data = await auth_middleware.bytes_of(request, "application/octet-stream", MAX_UPLOAD_BYTES)
        async with self._converting:
            text = await run_in_thread(read_upload, name, data)
        if len(text.encode()) > MAX_DOCUMENT_BYTES:
            raise HTTPException(
                413, f"{name!r} has more than {MAX_DOCUMENT_BYTES // 1000} kB of text: use a part of it"
            )
        return auth_middleware.RedactedJson({"name": name, "content": text})

    async def _import(self, request: Request, host: debate_host.DebateHost) -> JsonObject:
        """Read an uploaded transcript, and return a preview of it, or store it as a debate.

        The query contains `conversation`, `topic`, and `store` if the debate is to be stored. For a file with
        several conversations, the preview contains only their titles.
        """
        query, by_operator = request.query_params, bool(request.scope.get(auth_middleware.OPERATOR))
        name = request.path_params["name"][:MAX_NAME_CHARS]
        data = await auth_middleware.bytes_of(request, "application/octet-stream", MAX_TRANSCRIPT_BYTES)

        try:
            async with self._converting:
                conversation = query.get("conversation", "")
                imported = await run_in_thread(
                    partial(parse_transcript, data, filename=name, conversation=conversation)
                )
        except SeveralConversations as error:
            return {"conversations": list(error.titles[:MAX_TITLES])}
        if query.get("store"):
            store = partial(host.store_transcript, imported, query.get("topic", ""), by_operator=by_operator)
            return {"id": (await host.threads.call_models(store)).id}
        preview = imported.preview()
        for message in preview["first_messages"]:
            message["content"] = clip(message["content"], PREVIEW_CHARS)
        return {**preview, "is_document": imported.document is not None}

    async def _play(self, request: Request, host: debate_host.DebateHost) -> JsonObject:
        """Start the replay of a recorded sample debate."""
        await auth_middleware.body_of(request, EmptyBody)
        sample = request.path_params["sample"]
        if sample not in recordings():
            raise HTTPException(404, f"there is no sample debate {sample!r}")

        def play() -> Debate:
            settings = recording_config(sample)
            topic, name = settings.pop("topic"), unused_name(host.debates.records, sample)
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
        return reconstruct_prompt(
            session, what if what.startswith("c") else auth_middleware.number_in(what, "prompt")
        ).to_json()

    def _file(self, request: Request, host: debate_host.DebateHost) -> Response:
        form, document = request.path_params["form"], self._document(request, host)
        if form not in FILES:
            raise HTTPException(404, f"there is no file format {form!r}: use {', '.join(FILES)}")
        media_type, render = FILES[form]
        text = redact(render(with_plan(document))).encode("utf-8", "replace")
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
        kind = debate_host.ACTIONS.get(request.path_params["action"])
        if kind is None:
            raise HTTPException(404, f"there is no action {request.path_params['action']!r}")
        action = await auth_middleware.body_of(request, kind)
        debate = await host.threads.read(_debate_of, request, host)
        if isinstance(action, debate_host.AskQuestion) and action.stream:
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
    recorded = recording_config(name)
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
