"""Stream of an answer's text while a model writes the structured answer."""

from collections.abc import Callable
from dataclasses import replace

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables.config import RunnableConfig, merge_configs
from langchain_core.utils.json import parse_partial_json
from typing_extensions import override

from moot.calls.model_calls import ModelCall, Reply, StreamAs
from moot.models.registry import Models
from moot.runtime.environment import Complete
from moot.state.settings import StreamRedactor

OnText = Callable[[str], object]
"""Function that receives the text of an answer so far, without secrets."""


class AnswerStream(BaseCallbackHandler):
    """LangChain callback handler that reads the field `answer` of a structured reply while it is streamed."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text, self._json, self._seen, self._text = on_text, "", 0, ""
        self._redactor = StreamRedactor()

    # LangChain streams a call if a handler has these two methods.
    def tap_output_aiter(self, run_id: object, output: object) -> object:
        """Return the stream unchanged."""
        return output

    def tap_output_iter(self, run_id: object, output: object) -> object:
        """Return the stream unchanged."""
        return output

    @override
    def on_llm_new_token(self, token: object, *, chunk: object = None, **_: object) -> None:
        """Pass on the answer's text if the new part of the reply makes it longer."""
        calls = getattr(getattr(chunk, "message", None), "tool_call_chunks", ())
        self._json += "".join([str(token), *(each["args"] or "" for each in calls)])
        try:
            data = parse_partial_json(self._json[max(0, self._json.find("{")) :])
        except ValueError:
            return
        answer = data.get("answer") if isinstance(data, dict) else None
        if isinstance(answer, str) and len(answer) > self._seen:
            self._text += self._redactor.feed(answer[self._seen :])
            self._seen = len(answer)
            self._on_text(self._text)


def with_answer_stream(complete: Complete, on_text: OnText) -> Complete:
    """Return a function that makes model calls like `complete`, and streams the answers in their replies."""

    async def stream(call: ModelCall, models: Models, *, config: RunnableConfig | None = None) -> Reply:
        callbacks = RunnableConfig(callbacks=[AnswerStream(on_text)])
        streamed_call = replace(call, stream_as=StreamAs("answer", call.purpose))
        return await complete(streamed_call, models, config=merge_configs(config, callbacks))

    return stream
