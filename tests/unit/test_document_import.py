"""Import of exported debates and of transcripts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from moot.api import Debates, open_debates
from moot.config import DebateConfig
from moot.config.config_files import make_config
from moot.debates.imported_debate import transcript_config
from moot.importers import parse_transcript
from moot.judging.response_check import failed_verdict
from moot.memory.window import entries_to_cover
from moot.reports import render_brief, render_html, render_markdown
from moot.state.entries import EntryKind, make_entry
from moot.state.errors import ConfigError, DebateExists, InputError
from moot.text.tokens import counter
from tests.support.fakes import FakeModel

COUNT = counter()
CSV = """speaker,minute,text
Moderator,00:01,Welcome. Should we tax carbon?
Ann Lee,01:20,"Yes, a carbon tax cuts emissions by 20 % at 50 dollars a tonne."
Bob Ray,02:00,"No. It hits the poor first, and Ann Lee has no figures for leakage."
Ann Lee,03:00,Rebates solve that.
"""
COMPARED_KEYS = (
    "transcript",
    "config",
    "summaries",
    "verdicts",
    "verdict",
    "blackboard",
    "solution",
    "usage",
    "errors",
    "receipts",
    "status",
    "topic",
    "agreement",
    "protocol",
    "prompt_sources",
)


@pytest.fixture
def debates(tmp_path: Path) -> Iterator[Debates]:
    with open_debates(str(tmp_path / "d.sqlite")) as opened:
        yield opened


def summarizing_config(turns: int = 12, **more: Any) -> DebateConfig:
    return make_config(
        {"turns": turns, "seed": 1, "memory": {"keep_recent": 2, "summarize_every": 2}, **more}
    )


@pytest.mark.parametrize(
    "config",
    [
        summarizing_config(),
        make_config({"turns": 3, "judge": {"panel": [{"id": "a"}, {"id": "b"}]}}),
        make_config({"protocol": "council", "rounds": 1}),
        make_config({"turns": 2, "judge": {"enabled": False}}),
    ],
    ids=["with summaries", "with a panel", "a council", "without a verdict"],
)
def test_exported_document_is_unchanged_after_import(
    debates: Debates, tmp_path: Path, config: DebateConfig
) -> None:
    original = debates.start("Is a round trip possible?", config, name="trip").run()
    with open_debates(str(tmp_path / "other.sqlite")) as others:
        imported = others.import_document(original)
        assert {**imported.document(), "imported_at": ""} == {**original, "imported_at": ""}
        assert imported.is_over()
        assert not entries_to_cover(imported.state().values)


TEXT = st.text(max_size=60)
KINDS: st.SearchStrategy[EntryKind] = st.sampled_from(["speech", "critique", "interjection", "notice"])


SUMMARY: dict[str, Any] = {
    **dict.fromkeys(
        ("version", "messages", "before_tokens", "after_tokens", "before_chars", "after_chars"), 1
    ),
    **dict.fromkeys(("owner", "text", "model", "created_at", "updated_at"), ""),
    "kind": "rolling",
    "points": {},
    "covers_from_seq": 0,
    "covers_through_seq": 0,
    "method": "rule-based",
    "temperature": None,
    "latency_s": 0.0,
}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw documents with arbitrary text in every text field."""
    config = DebateConfig()
    messages = draw(
        st.lists(st.tuples(st.sampled_from(["advocate", "skeptic", "user"]), KINDS, TEXT), max_size=8)
    )
    entries = [
        make_entry(seq, who, kind, words, at="2026-01-01") for seq, (who, kind, words) in enumerate(messages)
    ]
    covered = draw(st.integers(-1, len(entries) - 1))
    summary = {**SUMMARY, "text": draw(TEXT), "covers_through_seq": covered}
    opened = {"type": "claim", "id": "p001", "text": draw(TEXT), "aspect": "overall", "seq": 0}
    verdict = {**failed_verdict("judge", ""), "status": "ok", "winner": "tie", "reasoning": draw(TEXT)}
    return {
        "topic": draw(st.text(min_size=1, max_size=40)), "config": config.to_json(),
        "transcript": [{**entry, "tokens": COUNT(entry["content"])} for entry in entries],
        "summaries": [{**summary, "points": []}] if covered >= 0 else [],
        "blackboard": {
            "claim_events": draw(st.sampled_from([[], [opened]])), "reflections": [], "cards": [],
        },
        "verdicts": [verdict], "verdict": verdict, "solution": draw(TEXT),
        "state": {"rolling_summary": summary} if covered >= 0 else {},
        "errors": [{"step": 1, "node": "judge", "error": draw(TEXT)}],
        "status": draw(st.sampled_from(["done", "limit"])),
    }  # fmt: skip


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=documents())
def test_any_document_survives_the_round_trip(debates: Debates, drawn: dict[str, Any]) -> None:
    for row in debates.rows():
        debates.get(row.id).delete()
    template: Mapping[str, Any] = debates.import_transcript(CSV, topic="x", name="template").document()
    board = {**template["blackboard"], **drawn["blackboard"]}
    document = {**template, **drawn, "blackboard": board, "receipts": [], "agreement": {}}
    before = copy.deepcopy(document)
    imported: Mapping[str, Any] = debates.import_document(document, name="again").document()
    assert document == before
    # The import adds computed keys to the blackboard.
    kept = {key: imported["blackboard"][key] for key in drawn["blackboard"]}
    same = {**{key: imported[key] for key in COMPARED_KEYS}, "blackboard": kept}
    assert same == {key: {**template, **drawn}[key] for key in COMPARED_KEYS}


def test_imported_debate_can_be_continued(debates: Debates, tmp_path: Path) -> None:
    original = debates.start("Shall we go on?", summarizing_config(6), name="first").run()
    with open_debates(str(tmp_path / "other.sqlite")) as others:
        longer = others.import_document(original).run(turns=2)
    assert longer["transcript"][: len(original["transcript"])] == original["transcript"]
    assert len(longer["transcript"]) == len(original["transcript"]) + 2
    assert longer["verdict"]["status"] == "ok"


def test_import_refuses_a_taken_name_and_suggests_another(debates: Debates) -> None:
    document = debates.start("Taken?", DebateConfig(turns=2), name="taken").run()
    with pytest.raises(DebateExists, match="choose another `name`"):
        debates.import_document(document)
    assert debates.import_document(document, name="free").document()["name"] == "free"


def _remove_key(key: str) -> Any:
    return lambda document: document.pop(key)


def _skip_a_number(document: dict[str, Any]) -> None:
    document["transcript"][1]["seq"] = 7


def _add_unknown_setting(document: dict[str, Any]) -> None:
    document["config"]["protocl"] = "x"


def _add_summary_of_missing_entries(document: dict[str, Any]) -> None:
    document["state"]["rolling_summary"] = {**SUMMARY, "covers_through_seq": 99}


def _add_invalid_summary(document: dict[str, Any]) -> None:
    document["state"]["perspective_summaries"] = {"ann": "words"}


def _make_negative(*keys: str) -> Callable[[dict[str, Any]], None]:
    def spoil(document: dict[str, Any]) -> None:
        document[keys[0]][keys[1]] = -(10**9)

    return spoil


def _set_newer_version(document: dict[str, Any]) -> None:
    document["schema_version"] = 99


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_remove_key("transcript"), "transcript"),
        (_remove_key("blackboard"), "blackboard"),
        (_skip_a_number, "`seq` 7 and `id` 'm000001', but must have `seq` 1"),
        (_add_unknown_setting, "protocl"),
        (_set_newer_version, "newer"),
        (_add_summary_of_missing_entries, "up to number 99 .*covers_through_seq"),
        (_add_invalid_summary, "state"),
        (_make_negative("usage", "prompt_tokens"), r"usage\.prompt_tokens: .*greater than or equal to 0"),
        (_make_negative("usage", "cost_usd"), r"usage\.cost_usd: .*greater than or equal to 0"),
        (_make_negative("usage", "elapsed_s"), r"usage\.elapsed_s: .*greater than or equal to 0"),
        (_make_negative("state", "turn_count"), r"turn_count: .*greater than or equal to 0"),
        (
            _make_negative("state", "planned_interjections_used"),
            r"planned_interjections_used: .*greater than or equal to 0",
        ),
    ],
    ids=[
        "no transcript",
        "no blackboard",
        "a gap in the numbers",
        "a bad configuration",
        "a newer version",
        "a summary of missing entries",
        "an invalid summary",
        "negative tokens",
        "a negative cost",
        "a negative time",
        "a negative number of turns",
        "a negative number of interjections",
    ],
)
def test_invalid_documents_are_refused_and_not_stored(debates: Debates, spoil: Any, says: str) -> None:
    document = debates.start("Whole?", DebateConfig(turns=2), name="whole").run()
    spoil(document)
    with pytest.raises((InputError, ConfigError), match=says):
        debates.import_document(document, name="bad_value")
    assert [row.name for row in debates.rows()] == ["whole"]


def test_state_of_a_document_does_not_override_its_other_fields(debates: Debates) -> None:
    document = debates.start("Whole?", DebateConfig(turns=2), name="whole").run()
    others = {"usage": {"prompt_tokens": -5}, "verdicts": [], "evil": 1}
    cast(dict[str, Any], document["state"]).update(others)
    values = debates.import_document(document, name="again").state().values
    assert values["usage"] == document["usage"]
    assert values["verdicts"] == document["verdicts"]
    assert "evil" not in values


def test_import_counts_tokens_again(debates: Debates) -> None:
    document = debates.start("Counted?", DebateConfig(turns=2), name="c").run()
    document["transcript"][1]["tokens"] = 1
    entry = debates.import_document(document, name="d").document()["transcript"][1]
    assert entry["tokens"] == COUNT(entry["content"])


def test_import_excludes_the_moderator_from_the_debaters(debates: Debates) -> None:
    document = debates.import_transcript(CSV, topic="Carbon tax?", name="tv").document()
    assert [debater["name"] for debater in document["config"]["debaters"]] == ["Ann Lee", "Bob Ray"]
    assert [entry["speaker"] for entry in document["transcript"]] == [
        "user",
        "moderator",
        "ann-lee",
        "bob-ray",
        "ann-lee",
    ]
    assert (document["status"], debates.get("tv").row.turns) == ("done", 3)
    assert document["blackboard"]["claim_events"] == []


def test_debaters_of_a_transcript_can_be_chosen_by_name() -> None:
    chosen = transcript_config(parse_transcript(CSV), debaters=["bob ray"])
    assert [debater.id for debater in chosen.debaters] == ["bob-ray"]
    with pytest.raises(InputError, match="is not the name of a speaker"):
        transcript_config(parse_transcript(CSV), debaters=["Carl"])


@pytest.mark.parametrize("name", ["tie", "synthesis", "user", "Moot", "Ann Mary Louise " * 4], ids=str)
def test_speakers_with_reserved_names_are_imported_as_debaters(debates: Debates, name: str) -> None:
    document = debates.import_transcript(f"speaker,text\n{name},For it.\nAnn,Not.\n", topic="x").document()
    assert len(document["config"]["debaters"]) == 2


def test_a_transcript_without_a_topic_is_refused(debates: Debates) -> None:
    with pytest.raises(InputError, match="`topic`"):
        debates.import_transcript("Ann: yes\nBen: no\n")
    assert debates.rows() == []


def test_a_large_import_is_summarised_within_its_budget(tmp_path: Path) -> None:
    model = FakeModel()
    words = "We hold that a carbon price of 50 cuts emissions by 20 % while leakage stays below 3 %. " * 8
    lines = [f"{('Ann', 'Ben', 'Cem')[turn % 3]}: Point {turn}. {words}" for turn in range(900)]
    config = make_config({"memory": {"summarizer": "llm", "budget": {"total": 4000}}})
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.import_transcript("\n".join(lines), topic="Carbon?", config=config)
        document, values = debate.document(), debate.state().values
    assert sum(entry["tokens"] for entry in document["transcript"]) > 150_000
    assert not entries_to_cover(values)
    assert len(values["messages"]) < 60
    assert document["summaries"][-1]["after_tokens"] <= config.memory.budget.summary
    assert model.calls
    assert all(call.prompt_tokens <= 4000 for call in model.calls)


@pytest.mark.parametrize("at", ["9999-99-99T99:99:99", "9999-01-01T00:00:00+00:00", "x" * 100_000, "", "-1"])
def test_import_ignores_invalid_and_future_times(debates: Debates, at: str) -> None:
    document = debates.start("When?", DebateConfig(turns=1), name="when").run()
    document["created_at"] = document["updated_at"] = at
    imported = debates.import_document(document, name="again").row
    newer = debates.start("Now?", DebateConfig(turns=1), name="now")
    assert datetime.fromisoformat(imported.created_at) <= datetime.now(UTC)
    assert debates.get("latest").id == newer.id


def test_import_converts_valid_times_to_utc(debates: Debates) -> None:
    document = debates.start("When?", DebateConfig(turns=1), name="when").run()
    document["created_at"], document["updated_at"] = "2026-01-02T03:04:05", "2026-01-02T03:04:05+14:00"
    row = debates.import_document(document, name="again").row
    assert (row.created_at, row.updated_at) == (
        "2026-01-02T03:04:05.000+00:00",
        "2026-01-01T13:04:05.000+00:00",
    )


def test_a_document_cannot_be_named_latest(debates: Debates) -> None:
    document = debates.start("Name?", DebateConfig(turns=1)).run()
    document["id"], document["name"] = "11111111-1111-1111-1111-111111111111", "latest"
    with pytest.raises(InputError, match="'latest' is reserved"):
        debates.import_document(document)
    assert len(debates.rows()) == 1


def test_an_imported_verdict_is_marked_until_the_debate_is_judged(debates: Debates) -> None:
    document = debates.start("Judged?", DebateConfig(turns=2), name="own").run()
    assert "imported_at" not in document
    document["verdict"] |= {"placeholder": False, "model": "gpt-5", "decision": "Merge.", "reasoning": "So."}
    imported = debates.import_document({**document, "imported_at": ""}, name="foreign")
    forks = imported.fork(), imported
    for debate in forks:
        shown = debate.document()
        for render in (render_html, render_markdown, render_brief, lambda each: render_brief(each, "adr")):
            assert "Moot did not judge this debate" in render(shown)
    assert {*debates.records.imports.times()} == {debate.id for debate in forks}
    imported.judge()
    assert "Moot did not judge" not in render_markdown(imported.document())
    assert imported.id not in debates.records.imports.times()
