"""A model that says again what a capable one said once: the debates that ship, to be seen without a key.

A recording is a folder beside this module: `debate.yaml`, the configuration, and `replies.yaml`, a list of
`{when, says}` or `{when, answers}`. A reply is found by what it was asked for, by whom and where in the
debate (`when` against the call's hints), never by the prompt's words: a better prompt breaks no recording.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from importlib.resources import files
from typing import Any

import yaml
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from pydantic import PrivateAttr

from moot.nodes.models.local import LocalModel
from moot.state.config.model_settings import RECORDED
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, ModelError

_PLACE = ("purpose", "phase", "speaker", "round")
_FOLDER = files("moot.nodes.models") / "recordings"


def recordings() -> list[str]:
    """Return the names of the debates that ship, sorted."""
    return sorted(each.name for each in _FOLDER.iterdir() if each.is_dir())


def recording_config(name: str) -> JsonObject:
    """Return a recording's configuration, as a user would write it, with the model that plays it.

    Raises:
        ConfigError: there is no such recording.
    """
    settings: JsonObject = yaml.safe_load(_text(name, "debate.yaml"))
    return {**settings, "model": RECORDED + name}


def _text(name: str, file: str) -> str:
    if name not in recordings():
        raise ConfigError(f"there is no sample debate {name!r}: choose one of {', '.join(recordings())}")
    return (_FOLDER / name / file).read_text(encoding="utf-8")


class RecordedModel(LocalModel):
    """Answers as the recorded debate went, streamed at reading speed where a pace is given.

    Raises:
        ModelError: on a call that the recording has no reply to.
    """

    recording: str
    """Name of the recording."""
    pace_s: float = 0.0
    """Seconds between two words of a speech that is streamed."""

    _replies: list[JsonObject] = PrivateAttr(default_factory=list)

    def model_post_init(self, context: Any, /) -> None:
        """Read the recording: here, since a client is made on a thread that may block."""
        self._replies = yaml.safe_load(_text(self.recording, "replies.yaml"))

    @property
    def _llm_type(self) -> str:
        return "recorded"

    def respond(self, messages: list[BaseMessage], **kwargs: Any) -> AIMessage:
        """Return the reply that was recorded at this place."""
        hints: Mapping[str, Any] = kwargs["hints"]
        for reply in self._replies:
            if all(hints.get(key) == value for key, value in reply["when"].items()):
                said = reply.get("says")
                return AIMessage(json.dumps(reply["answers"], ensure_ascii=False) if said is None else said)
        place = ", ".join(str(hints[key]) for key in _PLACE if hints.get(key))
        raise ModelError(
            f"the sample debate {self.recording!r} holds no reply for this ({place}): "
            "to go on from here, name a model of your own with --model",
            retryable=False,
        )

    async def _astream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        async for chunk in super()._astream(messages, stop, **kwargs):
            if self.pace_s and chunk.text:
                await asyncio.sleep(self.pace_s)
            yield chunk
