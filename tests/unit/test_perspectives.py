import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from moot.api import open_debates
from moot.calls.model_calls import CallGenerator, ModelCall, Reply, gather_calls
from moot.config import DebateConfig
from moot.config.config_files import make_config
from moot.documents import DebateDocument
from moot.judging.transcript_selection import FRAME_TOKENS
from moot.prompts.request import schema_tokens
from moot.prompts.truncation import Block, truncate_blocks, truncate_by_priority
from moot.protocols.council.convergence import CONVERGENCE
from moot.state.conversation import SummaryVersion
from moot.text.tokens import common_length, counter, prompt_tokens
from tests.support.fakes import FakeModel, fake_reply
from tests.support.snapshots import check_snapshot, prompt_markdown

TOPIC = "Design a rate limiter. It must be fair to small customers."


def long_message(call: ModelCall) -> str:
    return " ".join(
        f"{call.digest[:6]} holds because part {n} of the design fails at load." for n in range(20)
    )


def long_reply(call: ModelCall) -> Reply:
    if call.purpose == "summary":
        return Reply(text=f"Summary w{call.digest[:8]}: part of the design fails at load.", model=call.model)
    if call.hints["phase"] == CONVERGENCE:
        return Reply(data={"reasoning": "", "agreement": 0.5}, model=call.model)
    return fake_reply(call) if call.schema else Reply(text=long_message(call), model=call.model)


def council_config(perspectives: dict[str, Any], **more: Any) -> DebateConfig:
    fixed = {"type": "fixed"}
    memory = {"perspectives": perspectives}
    data = {"protocol": "council", "rounds": 3, "termination": fixed, "memory": memory, **more}
    return make_config(data)


def run(
    tmp_path: Path, config: DebateConfig, reply: Callable[[ModelCall], Reply] = long_reply
) -> tuple[DebateDocument, FakeModel]:
    model = FakeModel(reply)
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        return debates.start(TOPIC, config).run(), model


def summaries_of(document: DebateDocument, kind: str) -> list[SummaryVersion]:
    return [version for version in document["summaries"] if version["kind"] == kind]


def text_of(call: ModelCall) -> str:
    return "\n".join(message["content"] for message in call.messages)


def test_every_debater_gets_its_own_summary_versions(tmp_path: Path) -> None:
    document, _ = run(tmp_path, council_config({"threshold_chars": 3000}))
    versions = [(v["owner"], v["version"]) for v in summaries_of(document, "perspective")]
    owners = ["architect", "performance", "testing"]
    assert versions == [(owner, 1) for owner in owners] + [(owner, 2) for owner in owners]


def test_perspective_holds_own_proposals_and_received_critiques(tmp_path: Path) -> None:
    document, model = run(tmp_path, council_config({"threshold_chars": 3000}))
    entries = {e["id"]: e for e in document["transcript"]}
    summaries = [c for c in model.calls if c.purpose == "summary" and "architect's" in text_of(c).lower()]
    assert summaries
    for call in summaries:
        shown = [e for key, e in entries.items() if f"[{key}]:" in text_of(call)]
        strange = [e for e in shown if e["speaker"] != "architect" and "architect" not in e["targets"]]
        assert strange == []


def test_next_refinement_shows_the_summary_instead_of_its_messages(tmp_path: Path) -> None:
    document, model = run(tmp_path, council_config({"threshold_chars": 3000}))
    first = next(v for v in summaries_of(document, "perspective") if v["owner"] == "testing")
    calls = [
        c
        for c in model.calls
        if c.hints.get("phase") == "refine" and c.hints["round"] == 2 and c.hints["speaker"] == "Testing"
    ]
    assert len(calls) == 1
    own = [e for e in document["transcript"] if e["speaker"] == "testing" and e["kind"] == "proposal"]
    for call in calls:
        assert first["text"].splitlines()[0] in text_of(call)
        assert f"[{own[0]['id']}]:" not in text_of(call)


def test_a_perspective_that_fits_the_next_prompt_is_not_summarised(tmp_path: Path) -> None:
    """Without a threshold, a summary is made only if its messages do not fit the next prompt."""
    document, model = run(tmp_path, council_config({}))
    assert sum(len(e["content"]) for e in document["transcript"] if e["speaker"] == "testing") > 5000
    assert not [call for call in model.calls if call.purpose == "summary"]
    own = [e for e in document["transcript"] if e["speaker"] == "testing" and e["kind"] == "proposal"]
    last = [c for c in model.calls if c.hints.get("phase") == "refine" and c.hints["speaker"] == "Testing"][
        -1
    ]
    assert f"[{own[0]['id']}]:" in text_of(last)

    (tmp_path / "small").mkdir()
    _, model = run(tmp_path / "small", council_config({}, rounds=2, memory={"budget": {"total": 3500}}))
    assert [call for call in model.calls if call.purpose == "summary"]


def test_perspective_below_the_threshold_is_not_summarised(tmp_path: Path) -> None:
    document, model = run(tmp_path, council_config({"threshold_chars": 1_000_000}))
    assert summaries_of(document, "perspective") == summaries_of(document, "judge") == []
    assert not [c for c in model.calls if c.purpose == "summary"]


def test_judge_reads_a_summary_only_if_the_final_round_does_not_fit(tmp_path: Path) -> None:
    small = council_config({"threshold_chars": 3000}, judge={"blind": False})
    small = small.model_validate(
        {**small.to_json(), "memory": {**small.to_json()["memory"], "budget": {"total": 4000}}}
    )
    document, model = run(tmp_path, small)
    (own,) = summaries_of(document, "judge")
    (judging,) = [c for c in model.calls if c.purpose == "judge"]
    assert own["text"].splitlines()[0] in text_of(judging)
    last = [e for e in document["transcript"] if e["round"] == 3]
    assert all(e["content"] in text_of(judging) for e in last if e["kind"] == "refinement")

    (tmp_path / "roomy").mkdir()
    document, model = run(
        tmp_path / "roomy", council_config({"threshold_chars": 3000}, judge={"blind": False})
    )
    (judging,) = [c for c in model.calls if c.purpose == "judge"]
    assert summaries_of(document, "judge") == []
    assert all(e["content"] in text_of(judging) for e in document["transcript"] if e["round"] == 3)


def test_perspective_summary_respects_max_chars(tmp_path: Path) -> None:
    document, _ = run(
        tmp_path, council_config({"threshold_chars": 3000, "max_chars": 400, "method": "rule-based"})
    )
    lengths = [v["after_chars"] for v in summaries_of(document, "perspective")]
    assert lengths
    assert all(0 < length <= 400 for length in lengths)


def test_summaries_use_the_debaters_own_model_temperature_and_prompt(tmp_path: Path) -> None:
    debaters = [
        {"name": "Ann", "model": "small", "temperature": 0.1, "summary_prompt": "Keep only the prices."},
        {"name": "Bo", "temperature": 1.5, "perspective": {"prompt": "Keep only the names."}},
    ]
    _, model = run(
        tmp_path,
        council_config(
            {"threshold_chars": 1000}, debaters=debaters, rounds=2, temperature=0.5, model="large"
        ),
    )
    prompts = {(c.model, c.temperature): text_of(c) for c in model.calls if c.purpose == "summary"}
    assert prompts.keys() == {("small", 0.1), ("large", 1.5)}
    assert "Keep only the prices." in prompts["small", 0.1]
    assert "Keep only the names." in prompts["large", 1.5]


def test_debater_settings_override_the_debates_settings(tmp_path: Path) -> None:
    debaters = [{"name": "Ann", "perspective": {"enabled": False}}, {"name": "Bo"}]
    document, _ = run(tmp_path, council_config({"threshold_chars": 1000}, debaters=debaters, rounds=2))
    assert {v["owner"] for v in summaries_of(document, "perspective")} == {"bo"}


@pytest.mark.parametrize("mode", ["fresh", "rolling"])
def test_fresh_summaries_read_all_messages_and_rolling_ones_the_new(mode: str, tmp_path: Path) -> None:
    document, model = run(tmp_path, council_config({"threshold_chars": 1000, "mode": mode}))
    first, last = [v for v in summaries_of(document, "perspective") if v["owner"] == "testing"]
    assert last["messages"] == 6  # two proposals and the critiques of them; prompts show the latest
    assert last["covers_from_seq"] == first["covers_from_seq"]
    calls = [call for call in model.calls if call.purpose == "summary"]
    read = [re.findall(r"\[(m\d{6})\]:", text_of(call)) for call in calls if "m000012" in text_of(call)]
    new = ["m000012", "m000013", "m000014"]
    assert read == [["m000003", "m000008", "m000009", *new] if mode == "fresh" else new]
    assert (first["text"].splitlines()[0] in last["text"]) is (mode == "rolling")


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param("", id="empty", marks=pytest.mark.slow),
        pytest.param("   ", id="blank", marks=pytest.mark.slow),
        pytest.param("error: overloaded", id="error text"),
    ],
)
def test_invalid_summary_falls_back_to_messages_then_to_rules(bad: str, tmp_path: Path) -> None:
    def reply(call: ModelCall) -> Reply:
        return Reply(text=bad, model=call.model) if call.purpose == "summary" else long_reply(call)

    (tmp_path / "roomy").mkdir()
    roomy = council_config({"threshold_chars": 3000})
    roomy = roomy.model_validate(
        {**roomy.to_json(), "memory": {**roomy.to_json()["memory"], "budget": {"total": 11_000}}}
    )
    document, model = run(tmp_path / "roomy", roomy, reply)
    assert document["status"] == "done"
    assert summaries_of(document, "perspective") == summaries_of(document, "judge") == []
    assert len(document["errors"]) == 6  # the judge needs no summary, because it reads the final round
    last = [call for call in model.calls if call.hints.get("phase") == "refine"][-1]
    own = [e["content"] for e in document["transcript"] if e["speaker"] == "testing" and e["round"] < 3]
    assert all(text in text_of(last) for text in own[:1])
    (judging,) = [call for call in model.calls if call.purpose == "judge"]
    late = [entry for entry in document["transcript"] if entry["round"] > 1]
    assert all(f"[{entry['id']}]:" in text_of(judging) for entry in late)
    assert judging.schema
    left = roomy.memory.budget.total - prompt_tokens(judging.messages, counter())
    left -= schema_tokens(judging.schema, counter())
    left_out = [e for e in document["transcript"][1:] if f"[{e['id']}]:" not in text_of(judging)]
    assert all(entry["tokens"] + FRAME_TOKENS > left for entry in left_out), (
        left,
        [(e["id"], e["kind"], e["tokens"]) for e in left_out],
    )

    small = council_config({"threshold_chars": 3000}, debaters=[{"name": "Ann"}, {"name": "Bo"}])
    small = small.model_validate({**small.to_json(), "memory": {"budget": {"total": 1600}}})
    document, _ = run(tmp_path, small, reply)
    assert {v["method"] for v in summaries_of(document, "perspective")} == {"rule-based (after llm failed)"}


def test_perspective_summary_prompt_matches_its_snapshot(tmp_path: Path) -> None:
    _, model = run(tmp_path, council_config({"threshold_chars": 3000}, rounds=2))
    calls = [c for c in model.calls if c.purpose == "summary" and "Testing's" in text_of(c)]
    system = [calls[0].messages[0]]
    check_snapshot("council-perspective-summary", prompt_markdown(system))


def call_generator(batches: list[int], name: str) -> CallGenerator[str]:
    for size in batches:
        replies = yield [_call(f"{name}{index}") for index in range(size)]
        assert [reply.text for reply in replies] == [f"{name}{index}" for index in range(size)]
    return name


def _call(text: str) -> ModelCall:
    return ModelCall("summary", "m", ({"role": "user", "content": text},), 10)


@given(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=5))
def test_gathered_generators_each_get_their_own_replies(plans: list[list[int]]) -> None:
    names = [chr(97 + index) for index in range(len(plans))]
    together = gather_calls([call_generator(plan, name) for plan, name in zip(plans, names, strict=True)])
    rounds, ended = 0, None
    replies = None
    while ended is None:
        try:
            batch = next(together) if replies is None else together.send(replies)
        except StopIteration as end:
            ended = end
        else:
            replies = [Reply(text=call.messages[0]["content"]) for call in batch]
            rounds += 1
    assert ended.value == names
    assert rounds == max(map(len, plans), default=0)


@given(st.lists(st.integers(1, 5000), max_size=12), st.integers(-10, 20_000))
def test_common_length_fits_and_keeps_short_blocks_whole(costs: list[int], remaining: int) -> None:
    caps = common_length(costs, remaining)
    assert sum(caps) <= max(0, remaining)
    assert all(cap <= cost for cap, cost in zip(caps, costs, strict=True))
    cut = [cap for cap, cost in zip(caps, costs, strict=True) if cap < cost]
    whole = [cost for cap, cost in zip(caps, costs, strict=True) if cap == cost]
    assert not cut or max(cut) - min(cut) <= 1
    assert not cut or not whole or max(whole) <= max(cut) + 1
    assert not cut or sum(caps) == max(0, remaining)


TEXTS = st.text(alphabet=st.sampled_from("ab c\n案🙂é."), max_size=3000)


@settings(max_examples=60, deadline=None)
@given(
    problem=TEXTS,
    chunks=st.lists(st.tuples(TEXTS, st.integers(0, 3)), max_size=8),
    budget=st.integers(600, 4000),
)
def test_truncated_prompt_never_exceeds_its_budget(
    problem: str, chunks: list[tuple[str, int]], budget: int
) -> None:
    count = counter()
    shared_prefix = [Block("system", {"role": "system", "content": problem[:400]})]
    turn_suffix = Block("turn_suffix", {"role": "user", "content": "Speak."})
    blocks = [
        Block("messages", {"role": "user", "content": text}, rank, label="piece") for text, rank in chunks
    ]
    prompt = truncate_blocks(
        truncate_by_priority(shared_prefix, blocks, turn_suffix, budget, count), budget, count
    )
    assert prompt.total_tokens <= budget
    assert prompt.messages[-1]["content"] == "Speak."


def test_debater_inherits_unset_settings_from_the_debate() -> None:
    own = {"max_chars": 900, "threshold_tokens": None, "method": None}
    config = council_config(
        {"mode": "rolling"}, debaters=[{"name": "Ann", "perspective": own}, {"name": "Bo"}]
    )
    stored = DebateConfig.model_validate(config.to_json())
    assert stored.to_json()["debaters"][0]["perspective"] == {"max_chars": 900}
    merged = stored.memory.perspectives.with_overrides(stored.debaters[0].perspective)
    assert (merged.mode, merged.max_chars, merged.method) == ("rolling", 900, "llm")
