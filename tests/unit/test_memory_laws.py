"""Properties of memory in random debates: no message gets lost, and no prompt leaves out what fits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from langgraph.checkpoint.memory import InMemorySaver

from moot.calls.model_calls import ModelCall, Prompt, Reply
from moot.claims.blackboard import render_blackboard
from moot.config import DebateConfig
from moot.config.memory_config import MINIMUM
from moot.graph.debate import build_graph
from moot.memory.background import background_entries, select_background
from moot.memory.cross_debate_memory import retrieve_messages
from moot.memory.window import LOW_WATER, window_start
from moot.prompts.debate_context import DebateContext
from moot.prompts.request import prompt_budget
from moot.prompts.truncation import LABEL_TOKENS
from moot.protocols.long_form_prompt import window_limits
from moot.protocols.prompt_context import PromptContext, assemble_prompt, reserved_tokens
from moot.protocols.registry import protocol_named
from moot.runtime import run_turns
from moot.state.entries import traits_of
from moot.text.tokens import counter
from moot.tools.registry import most_functions_tokens
from moot.tools.tool import Tool, ToolContext
from tests.support.fakes import FakeModel, fake_reply

THREAD: Any = {"configurable": {"thread_id": "0d5a4b10-93cb-4d0c-9e26-41ad52b0c15c"}}
SIZES = st.sampled_from([5, 40, 40, 150, 150, 400, 7000])
"""Words of a message. One giant message among short ones used to break prompts."""
QUICK = settings(
    max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
DEBATERS: Any = st.sampled_from(
    [
        [{"name": "Ada", "tools": tools}, {"name": "Bo", "stance": "against"}]
        for tools in ([], [], ["look_up"], ["look_up", "calculator"])
    ]
)
REMARKS: Any = st.sampled_from(
    [
        [],
        *([{"after": 1, "text": "News: the budget is 4,711 crowns. " * times}] for times in (1, 300)),
        [{"after": n, "text": f"News: item {n} costs {n} crowns. " * 20} for n in (1, 2, 5)],
    ]
)
MANY = settings(QUICK, max_examples=200, derandomize=False)


@st.composite
def long_forms(draw: st.DrawFn) -> DebateConfig:
    memory: Any = {
        "budget": {"total": draw(st.sampled_from([1500, 3000, 8000]))},
        "keep_recent": draw(st.sampled_from([1, 3, 8, 50])),
        "summarize_every": draw(st.sampled_from([1, 2, 5, 50])),
        "summarizer": draw(st.sampled_from(["rule-based", "llm", "hierarchical"])),
    }
    return DebateConfig.model_validate(
        {
            "protocol": draw(st.sampled_from(["round-robin", "random", "moderated"])),
            "turns": draw(st.integers(2, 24)),
            "debaters": draw(DEBATERS),
            "interjections": draw(REMARKS),
            "memory": memory,
            "judge": {"enabled": False},
        }
    )


PROTOCOLS = ("council", "dialogue", "round-robin", "moderated", "single", "vote")


@st.composite
def debates_of(draw: st.DrawFn, among: Sequence[str]) -> DebateConfig:
    protocol = draw(st.sampled_from(among))
    own: Any = {
        "council": {"rounds": draw(st.integers(1, 2)), "debaters": [{"name": "Ada"}, {"name": "Bo"}]},
        "dialogue": {"dialogue": {"max_aspects": draw(st.integers(1, 2))}},
        "vote": {"vote": {"answers": 3}, "decide": "judge"},
    }
    return DebateConfig.model_validate(
        {
            "protocol": protocol,
            **({"turns": draw(st.integers(2, 12))} if protocol in ("round-robin", "moderated") else {}),
            **({} if protocol == "council" else {"debaters": draw(DEBATERS)}),
            **own.get(protocol, {}),
            "interjections": draw(REMARKS),
            "model": draw(st.sampled_from(["offline", "test", "test"])),  # `offline` extracts no claims
            "blackboard": {"extraction": draw(st.sampled_from(["auto", "llm"])), "verify_changes": False},
            "memory": {
                "budget": {"total": draw(st.sampled_from([5000, 8000, 16000]))},
                "layout": draw(st.sampled_from(["shared", "shared", "per-speaker"])),
                "perspectives": {"threshold_chars": draw(st.sampled_from([500, 5000]))},
                "summarizer": draw(st.sampled_from(["rule-based", "llm"])),
            },
        }
    )


DEBATER_MESSAGE = re.compile(r"\[(m\d{6})\][^\n]*\n(\w{6} point 0 costs 0\.)")
"""Id and first sentence of a debater's message in the prompt that extracts claims."""


class LookUp(Tool):
    """Tool that returns about as many words as its argument says."""

    name = "look_up"
    description = "Return words from a file. " * 3
    words: int

    def run(self, context: ToolContext) -> str:
        return "Found: " + " ".join(f"figure {n}." for n in range(1 + self.words // 2))


class Killed(Exception):
    """Error that simulates the death of the process."""


def claims_of(call: ModelCall) -> dict[str, Any]:
    """Return claims in which the debaters contradict each other on the main question."""
    matches = [DEBATER_MESSAGE.search(message["content"]) for message in call.messages[1:]]
    events = [
        {
            "message_id": match[1],
            "claim": "p000",
            "kind": ("asserts", "denies")[number % 2],
            "quote": match[2],
            "condition": "",
            "ground": False,
            "confidence": 0.9,
        }
        for number, match in enumerate(filter(None, matches))
    ]
    empty = ("claims", "evidence", "challenges", "questions", "answers", "gaps", "same", "retractions")
    return {"reasoning": "read", "events": events, **{name: [] for name in empty}}


def model_of(sizes: list[int], failing: list[bool], dies_at: int = 0) -> FakeModel:
    """Return a model that writes messages of these sizes, in words.

    `failing` says for each summary whether the model fails or echoes its prompt instead. The call with the
    number `dies_at` ends the run. 0: no call does.
    """
    summaries, numbers = iter(failing * 50), iter(range(1, 10**6))

    def reply(call: ModelCall) -> Reply:
        if next(numbers) == dies_at:
            raise Killed
        if call.purpose == "summary":
            echo = Reply(text=call.messages[-1]["content"])
            if next(summaries, False):
                return echo if len(echo.text) % 2 else Reply(error="HTTP 500")
            return Reply(text="Costs 5 of m000001.")
        if call.schema is not None and call.schema.__name__ == "ExtractedClaims":
            return Reply(data=claims_of(call), model=call.model)
        if call.schema is not None or (call.stream_as is None and not call.tools):
            return fake_reply(call)
        at = int(call.digest[:6], 16)
        if call.tools and at % 3:  # so a turn has two rounds of tool calls on average
            wanted = [{"words": sizes[(at + n) % len(sizes)]} for n in range(1 + at % 2)]
            asked = tuple({"id": f"c{n}", "name": "look_up", "args": args} for n, args in enumerate(wanted))
            return Reply(text="Let me see.", tool_calls=asked, model=call.model)
        if call.stream_as is None:
            return fake_reply(call)
        size = sizes[int(call.stream_as.entry_id[1:]) % len(sizes)]
        words = " ".join(f"{call.digest[:6]} point {n} costs {n * 7}." for n in range(1 + size // 4))
        return Reply(text=words, model=call.model)

    return FakeModel(reply)


def run_with_restart(graph: Any, graph_input: Any, config: DebateConfig | None, place: Any = THREAD) -> None:
    """Run a debate. Resume it if its process dies."""
    context = {"context": config} if config else {}
    try:
        graph.invoke(graph_input, place, **context)
    except Killed:
        graph.invoke(None if graph.get_state(THREAD).values else graph_input, THREAD, **context)


def check_tiers(
    config: DebateConfig,
    sizes: list[int],
    failing: list[bool],
    more: int,
    imported: int,
    dies_at: int,
    *,
    forks: bool,
) -> None:
    """Check that every message is in the window or in the summary in every checkpoint of a debate."""
    model = model_of(sizes, failing, dies_at)
    environment = replace(model.environment(), tools={"look_up": LookUp})
    graph: Any = build_graph(InMemorySaver(), environment=environment)
    imported_entries = [
        {"speaker": "advocate", "content": f"Item {n} costs {n} crowns. " * sizes[n % len(sizes)]}
        for n in range(imported)
    ]
    run_with_restart(graph, {"topic": "Should we?", "full_transcript": imported_entries}, config)
    if forks:
        earlier = [each for each in graph.get_state_history(THREAD) if each.next == ("plan",)]
        run_with_restart(graph, None, None, earlier[len(earlier) // 2].config)
    if more:
        turns = graph.get_state(THREAD).values["turn_count"] + more
        graph.update_state(THREAD, {"config": {**config.to_json(), "turns": turns}, "status": "running"})
        run_with_restart(graph, {}, None)
        assert graph.get_state(THREAD).values["turn_count"] == turns

    for snapshot in graph.get_state_history(THREAD):
        values = snapshot.values
        if not values.get("config"):
            continue
        covered = (values.get("rolling_summary") or {}).get("covers_through_seq", -1)
        neither = values["full_transcript"][covered + 1 : window_start(values)]
        assert not [entry["id"] for entry in neither if traits_of(entry).in_prompts], snapshot.metadata
    if not forks:  # a fork writes other messages under the same ids
        _check_windows(graph.get_state(THREAD).values, config, model)
        _check_prefixes(model)


def _check_windows(state: Any, config: DebateConfig, model: FakeModel) -> None:
    """Check that no prompt of a turn is half empty while it leaves messages out."""
    memory, transcript, names = config.memory, state["full_transcript"], config.names()
    apart = select_background(DebateContext(state, config, counter()))
    tools = most_functions_tokens(config, counter(), {"look_up": LookUp})
    for call in model.calls:
        if not call.stream_as:
            continue
        prompt, seq = call.prompt, int(call.stream_as.entry_id[1:])
        assert prompt
        assert prompt.total_tokens <= memory.budget.total
        before = [e for e in transcript[1:seq] if traits_of(e).in_prompts and e["id"] not in apart.ids]
        while before and prompt.sections.get("tools") and traits_of(before[-1]).tool:
            before.pop()  # a tool call of this turn, which the section `tools` shows
        is_independent = config.openings == "independent" and call.hints["phase"] == "opening"
        if not is_independent and len(prompt.shown_ids) < min(memory.keep_recent, len(before)):
            # People's messages before the window belong to the background and take tokens from the window.
            debaters = [
                int(key[1:]) for key in prompt.shown_ids if transcript[int(key[1:])]["speaker"] in names
            ]
            start = min(debaters, default=seq)
            then = select_background(DebateContext(state, config, counter()), start=start)
            limits = window_limits(state["topic"], config, counter(), reserved_tokens(then, config, tools))
            least = LOW_WATER * min(memory.budget.messages, limits.high_tokens)
            shown = prompt.sections["messages"] + prompt.sections.get("tools", 0)
            assert shown >= least, (call.stream_as.entry_id, prompt.shown_ids)


def _check_prefixes(model: FakeModel) -> None:
    """Check that prompts change only at their end between two compactions, so that they are cached.

    A turn whose tool results leave too few tokens for the messages before them is exempt.
    """
    before: tuple[Any, list[Any], int] | None = None
    for call in [call for call in model.calls if call.stream_as and call.prompt]:
        prompt = call.prompt
        assert prompt
        end = max((at for at, section in enumerate(prompt.layout) if section == "messages"), default=0)
        kept = [message["content"] for message in prompt.messages[: end + 1]]
        summary = next(
            (m["content"] for m in prompt.messages if "# Summary of the debate" in m["content"]), ""
        )
        compaction = (prompt.shown_ids[:1], summary)
        message_tokens = prompt.sections.get("messages", 0)
        if before and before[0] == compaction:
            fits = prompt.total_tokens - message_tokens + before[2] <= prompt.budget
            if fits or not prompt.sections.get("tools"):
                assert kept[: len(before[1])] == before[1], prompt.shown_ids
        before = (
            compaction,
            kept[:-1],
            message_tokens,
        )  # the newest message may be longer in the prompt that answers it


TIERS = st.tuples(
    long_forms(),
    st.lists(SIZES, min_size=1, max_size=6),
    st.lists(st.booleans(), min_size=1, max_size=4),
    st.integers(0, 4),
    st.integers(0, 30),
    st.sampled_from([0, 0, 2, 5, 9]),
)


@settings(QUICK, max_examples=5)
@given(TIERS, st.booleans())
def test_every_checkpoint_has_each_message_in_window_or_summary(drawn: Any, forks: bool) -> None:
    check_tiers(*drawn, forks=forks)


@pytest.mark.heavy
@pytest.mark.timeout(3600)
@MANY
@given(TIERS, st.booleans())
def test_checkpoints_of_many_debates_have_each_message_in_window_or_summary(drawn: Any, forks: bool) -> None:
    check_tiers(*drawn, forks=forks)


def _check_contents(ctx: PromptContext, prompt: Prompt) -> None:
    """Check that a prompt outside the long form leaves out nothing that matters and fits.

    That is the ledger of a dialogue, and every message above the minimum relevance.
    """
    protocol, phase = protocol_named(ctx.config.protocol), ctx.step["phase"]
    if not protocol.retrieves_transcript or phase in ("opening", "propose", "critique"):
        return
    transcript, limit = ctx.state["full_transcript"], ctx.token_budget + ctx.background.tokens
    if protocol.name == "dialogue" and not prompt.sections.get("blackboard"):
        board = render_blackboard(
            ctx.state, ctx.speaker.id, max_tokens=10_000, count=ctx.count, names=ctx.names
        )
        assert not board or prompt.total_tokens + ctx.count(board) + LABEL_TOKENS > limit, phase
    apart = {*prompt.shown_ids} - {*prompt.retrieved} | ctx.background.ids
    matching = retrieve_messages(
        ctx.state,
        ctx.memories,
        ctx.config.memory.retrieval,
        protocol.query(ctx),
        remaining=10**6,
        costs=lambda entry: entry["tokens"],
        names=ctx.names,
        exclude={e["seq"] for e in transcript if e["id"] in apart or not traits_of(e).argues},
    )
    for entry in matching:
        if (phase == "refine" and entry["kind"] != "critique") or entry["id"] in prompt.shown_ids:
            continue  # a refinement shows no replaced proposals
        assert prompt.total_tokens + entry["tokens"] + 2 * LABEL_TOKENS > limit, (phase, entry["id"])


def _check_free_tokens(call: ModelCall) -> None:
    """Check that a prompt with a tenth of its tokens free has cut and left out nothing."""
    prompt = call.prompt
    assert prompt
    # The budget of a prompt with tool results is that of its other messages.
    free = prompt.budget - prompt.total_tokens + prompt.sections.get("tools", 0)
    if free >= 0.1 * prompt.budget:
        assert not prompt.omitted, (call.purpose, call.hints.get("phase"), free, prompt.omitted)


def check_prompts(
    config: DebateConfig, sizes: list[int], failing: list[bool], documents: list[int], dies_at: int
) -> None:
    """Check the budget, the background and the judge's messages in all prompts of a debate."""
    model = model_of(sizes, failing, dies_at)
    environment = replace(model.environment(), tools={"look_up": LookUp})
    graph: Any = build_graph(InMemorySaver(), environment=environment)
    contents = [
        f"Item {n}: " + " ".join(f"word{n}x{i}." for i in range(words)) for n, words in enumerate(documents)
    ]
    texts = [{"name": f"d{n}.md", "content": text} for n, text in enumerate(contents)]

    def assemble(ctx: PromptContext, blocks: Any, query: Any, **options: Any) -> Prompt:
        prompt = assemble_prompt(ctx, blocks, query, **options)
        _check_contents(ctx, prompt)
        return prompt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_turns, "assemble_prompt", assemble)
        run_with_restart(graph, {"topic": "Should we?", "context_documents": texts}, config)
    state, total = graph.get_state(THREAD).values, config.memory.budget.total
    transcript, names, protocol = state["full_transcript"], config.names(), protocol_named(config.protocol)

    sent = sum(entry["tokens"] + LABEL_TOKENS + 6 for entry in transcript[: len(documents) + 1])
    fits = (
        sent
        + sum(
            e["tokens"] for e in background_entries(DebateContext(state, config, counter()))[len(documents) :]
        )
        <= total / 2
    )
    for call in model.calls:
        assert call.prompt
        budget = prompt_budget(total, call.schema, counter()) if call.schema else total
        assert call.prompt.total_tokens <= budget, (call.purpose, call.hints)
        _check_free_tokens(call)
        row = protocol.phases.get(call.hints["phase"])
        limit = (row and row.budget) or total if call.stream_as else total
        ground = sum(call.prompt.sections.get(section, 0) for section in ("background", "topic", "tools"))
        assert call.prompt.total_tokens <= limit + ground + 3, call.hints
        if not call.stream_as and call.purpose not in ("judge", "extract"):
            continue
        if protocol.name in ("single", "vote") and call.purpose == "extract":
            continue
        text = "\n".join(message["content"] for message in call.messages)
        # A judge's prompt that leaves out a part of the messages shows only passages of the documents.
        if fits and not (call.purpose == "judge" and call.prompt.omitted):
            assert all(content in text for content in contents), (call.purpose, call.hints)
        elif documents:
            assert "word" in text, (call.purpose, call.hints)

    if not protocol.judge_spec.interactive:
        return  # of independent answers, the judge reads only those that differ
    argued = [e for e in transcript if e["speaker"] in names and traits_of(e).argues]
    for call in model.calls:
        if (
            call.purpose == "judge"
            and call.prompt
            and not {e["id"] for e in argued} <= {*call.prompt.shown_ids}
        ):
            kept = ("system", "topic", "background", "pinned", "turn_suffix")
            fixed = sum(call.prompt.sections.get(section, 0) for section in kept)
            said = sum(entry["tokens"] + 2 * LABEL_TOKENS for entry in argued)
            assert fixed + said > call.prompt.budget, call.prompt.omitted


def prompt_cases(among: Sequence[str] = PROTOCOLS) -> st.SearchStrategy[Any]:
    """Return random arguments of `check_prompts` for debates of the given protocols."""
    return st.tuples(
        debates_of(among),
        st.lists(SIZES, min_size=1, max_size=6),
        st.lists(st.booleans(), min_size=1, max_size=4),
        st.lists(st.sampled_from([10, 300, 4000]), max_size=2),
        st.sampled_from([0, 0, 3, 8]),
    )


@pytest.mark.parametrize(
    "protocol",
    [pytest.param(each, marks=[pytest.mark.slow] if each == "moderated" else []) for each in PROTOCOLS],
)
@settings(QUICK, max_examples=3)
@given(data=st.data())
def test_no_prompt_of_any_protocol_leaves_out_what_fits(protocol: str, data: st.DataObject) -> None:
    check_prompts(*data.draw(prompt_cases([protocol])))


@pytest.mark.parametrize(
    ("protocol", "total"),
    [
        ("council", 4000),
        pytest.param("council", 5000, marks=pytest.mark.slow),
        pytest.param("dialogue", 4000, marks=pytest.mark.slow),
        pytest.param("dialogue", 5000, marks=pytest.mark.slow),
    ],
)
def test_a_giant_message_leaves_the_background_whole_in_extraction_prompts(protocol: str, total: int) -> None:
    word = {"after": 0, "text": "Keep to the facts.", "speaker": "moderator"}
    config: dict[str, Any] = {"protocol": protocol, "model": "test", "memory": {"budget": {"total": total}}}
    config |= {
        "interjections": [word],
        "debaters": [{"id": "ada", "name": "Ada"}, {"id": "bo", "name": "Bo"}],
    }
    extraction = {"blackboard": {"extraction": "llm", "verify_changes": False}}
    check_prompts(DebateConfig.model_validate({**config, **extraction}), [7000], [False], [300], 0)


@st.composite
def small_debates(draw: st.DrawFn) -> tuple[DebateConfig, str]:
    """Return debates whose documents, topics, personas and remarks exceed their budgets, with the topics."""
    protocol = draw(st.sampled_from([*PROTOCOLS, "random"]))
    persona, topic = ("Ada likes tea. " * draw(st.sampled_from([0, 0, 100, 400])) for _ in range(2))
    total = draw(st.sampled_from([MINIMUM["total"], 450, 500, 600, 800, 1000, 1500, 2600, 4000, 8000]))
    suffix = draw(st.sampled_from([None, None, 50, total // 2]))
    has_tools = total >= 500 and draw(st.booleans())  # a smaller budget is refused: the tools do not fit
    debaters: list[dict[str, Any]] = [
        {"id": "ada", "name": "Ada", "persona": persona, "tools": ["look_up"]},
        {"name": "Bo"},
    ]
    data: Any = {
        "protocol": protocol,
        **({"turns": draw(st.integers(2, 8))} if protocol in ("round-robin", "moderated", "random") else {}),
        **({"rounds": 2} if protocol == "council" else {}),
        **({"vote": {"answers": 2}, "decide": "judge"} if protocol == "vote" else {}),
        **({"dialogue": {"max_aspects": 1}} if protocol == "dialogue" else {}),
        "debaters": debaters if has_tools else [{**each, "tools": []} for each in debaters],
        "interjections": draw(REMARKS),
        "model": "test",
        "blackboard": {"extraction": "llm", "verify_changes": False},
        "memory": {
            "budget": {"total": total, **({"turn_suffix": suffix} if suffix else {})},
            "layout": draw(st.sampled_from(["shared", "per-speaker"])),
        },
    }
    return DebateConfig.model_validate(data), f"Should we? {topic}"


ROOM = st.tuples(
    small_debates(),
    st.lists(SIZES, min_size=1, max_size=4),
    st.lists(st.sampled_from([60, 400, 3500]), max_size=2),
)


def check_room(case: tuple[DebateConfig, str], sizes: list[int], documents: list[int]) -> None:
    """Check that no prompt of a debate leaves a tenth of its tokens unused while it cuts a text."""
    config, topic = case
    model = model_of(sizes, [False])
    environment = replace(model.environment(), tools={"look_up": LookUp})
    graph: Any = build_graph(InMemorySaver(), environment=environment)
    texts = [
        {
            "name": f"d{n}.md",
            "content": " ".join(f"Item {i} costs {i % 97} crowns." for i in range(words // 5)),
        }
        for n, words in enumerate(documents)
    ]
    graph.invoke({"topic": topic, "context_documents": texts}, THREAD, context=config)
    for call in model.calls:
        assert call.prompt
        assert call.prompt.total_tokens <= config.memory.budget.total
        _check_free_tokens(call)


@settings(QUICK, max_examples=4)
@given(ROOM)
def test_no_prompt_cuts_a_text_while_a_tenth_is_free(drawn: Any) -> None:
    check_room(*drawn)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(QUICK, max_examples=60)
@given(ROOM)
def test_no_prompt_of_many_debates_cuts_a_text_while_a_tenth_is_free(drawn: Any) -> None:
    check_room(*drawn)


@pytest.mark.heavy
@pytest.mark.timeout(3600)
@MANY
@given(prompt_cases())
def test_no_prompt_of_many_debates_leaves_out_what_fits(drawn: Any) -> None:
    check_prompts(*drawn)
