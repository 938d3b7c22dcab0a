"""Files that visitors of the live page upload: documents to convert to text, and transcripts to import."""

import asyncio
from functools import partial

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from moot.calls.concurrency import run_in_thread
from moot.importers import SeveralConversations, parse_transcript, read_upload
from moot.plugins.web import auth_middleware
from moot.plugins.web.debate_host import DebateHost
from moot.state.entries import JsonObject
from moot.text.plain_text import clip

MAX_NAME_CHARS = 200
"""Maximum number of characters in the name of an uploaded file or a background document."""
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


class Uploads:
    """Handlers of uploaded files. A few files are read at the same time."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(UPLOADS_AT_ONCE)

    async def convert(self, request: Request, _: DebateHost) -> Response:
        """Convert an uploaded document to text, and return the text to the page.

        The page sends the text back when it creates a debate, so the text is returned unchanged.
        """
        name = request.path_params["name"][:MAX_NAME_CHARS]
        data = await auth_middleware.bytes_of(request, "application/octet-stream", MAX_UPLOAD_BYTES)
        async with self._slots:
            text = await run_in_thread(read_upload, name, data)
        if len(text.encode()) > MAX_DOCUMENT_BYTES:
            raise HTTPException(
                413, f"{name!r} has more than {MAX_DOCUMENT_BYTES // 1000} kB of text: use a part of it"
            )
        return auth_middleware.RedactedJson({"name": name, "content": text})

    async def import_transcript(self, request: Request, host: DebateHost) -> JsonObject:
        """Read an uploaded transcript, and return a preview of it, or store it as a debate.

        The query contains `conversation`, `topic`, and `store` if the debate is to be stored. For a file with
        several conversations, the preview contains only their titles.
        """
        query, by_operator = request.query_params, bool(request.scope.get(auth_middleware.OPERATOR))
        name = request.path_params["name"][:MAX_NAME_CHARS]
        data = await auth_middleware.bytes_of(request, "application/octet-stream", MAX_TRANSCRIPT_BYTES)

        try:
            async with self._slots:
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
