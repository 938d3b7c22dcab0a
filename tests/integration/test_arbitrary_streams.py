"""Arbitrary event streams of a model server: each call returns a reply or an error."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tests.support.json_values import json_paths, json_values, replace_values
from tests.support.model_bench import TURN_CALL, ModelBench
from tests.support.openai_answers import stream_events
from tests.support.openai_server import OpenAIServer, ServerReply

REQUEST = {"model": "test-model", "messages": [], "stream_options": {"include_usage": True}}
VALID_EVENTS = list(stream_events(REQUEST, ServerReply(text="Trams are cheap.", reasoning="Let me see.")))
PLACES = json_paths(VALID_EVENTS)[1:]
corrupted_events = st.lists(st.tuples(st.sampled_from(PLACES), json_values), min_size=1, max_size=3).map(
    lambda bad_value: [json.dumps(event) for event in replace_values(copy.deepcopy(VALID_EVENTS), bad_value)]
)
junk = st.text(st.characters(codec="utf-8"), max_size=30) | json_values.map(json.dumps) | st.just("[DONE]")


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(sent=corrupted_events, more=st.lists(st.tuples(st.integers(0, 8), junk), max_size=2))
def test_any_stream_returns_a_reply_or_an_error(sent: list[str], more: list[tuple[int, str]]) -> None:
    for place, event in more:
        sent.insert(place, event)
    with OpenAIServer(lambda request, number: ServerReply(raw_events=sent)) as server:
        reply, chunks = ModelBench(server, max_attempts=2).stream(TURN_CALL)
    assert isinstance(reply.text, str)
    assert reply.ok or reply.error
    assert not reply.ok or reply.text.strip()
    streamed: list[Any] = [chunk.content for chunk in chunks]
    assert all(isinstance(each, str) for each in streamed)
    assert all(isinstance(count, int) and count >= 0 for count in reply.usage.values())
