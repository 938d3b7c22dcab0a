"""Table of facts: collected once before a council's proposals, with quotations that are checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moot.api import open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.config.config_files import make_config
from moot.debates.dry_run import estimate
from moot.documents import DebateDocument
from tests.support.fakes import FakeModel, fake_reply

HANDBOOK = """# Meters

At peak, one hall holds 12,600 sensors. The upgrade costs EUR 60,000 | once.

The contract runs for 13 months."""
TOPIC = "Which gateway do we buy?\nThe contract runs for 36 months."
TABLE = {
    "facts": [
        {"figure": "12,600", "unit": "sensors", "used_for": "size", "quote": "one hall holds 12,600 sensors"},
        {
            "figure": "EUR 60,000",
            "unit": "",
            "used_for": "cost",
            "quote": "The upgrade costs EUR 60,000 | once.",
        },
        {"figure": "9,000", "unit": "sensors", "used_for": "size", "quote": "one hall holds 9,000 sensors"},
        {"figure": "14", "unit": "months", "used_for": "term", "quote": "The contract runs for 13 months."},
    ],
    "contradictions": [
        {
            "a": "The contract runs for 13 months.",
            "b": "The contract runs for 36 months.",
            "use": "13 months",
            "check": "Ask Legal.",
        },
        {"a": "The contract runs for 13 months.", "b": "It never ends.", "use": "", "check": ""},
    ],
    "missing": ["The price of a gateway"],
}
EXPECTED = """Facts of the topic and the documents

| Figure | Unit | Used for | Where |
| --- | --- | --- | --- |
| 12,600 | sensors | size | handbook.md: “one hall holds 12,600 sensors” |
| EUR 60,000 |  | cost | handbook.md: “The upgrade costs EUR 60,000 / once.” |

Contradictions:
- handbook.md: “The contract runs for 13 months.” contradicts topic: “The contract runs for 36 months.”. \
Use: 13 months. To find out: Ask Legal.

Missing:
- The price of a gateway

3 rows left out: no such quotation or figure."""


def _reply(call: ModelCall) -> Reply:
    return Reply(data=TABLE, model=call.model) if call.hints["phase"] == "facts" else fake_reply(call)


def run(tmp_path: Path, text: str = HANDBOOK, **settings: Any) -> tuple[DebateDocument, FakeModel]:
    (tmp_path / "handbook.md").write_text(text)
    model = FakeModel(_reply)
    base = {"protocol": "council", "rounds": 1, "model": "m", "context": str(tmp_path / "handbook.md")}
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        return debates.start(TOPIC, make_config({**base, **settings})).run(), model


def test_only_facts_with_a_quotation_of_the_material_reach_the_prompts(tmp_path: Path) -> None:
    document, model = run(tmp_path)
    (note,) = [e["content"] for e in document["transcript"] if e["content"].startswith("Facts of")]
    assert note == EXPECTED
    (asked,) = [call for call in model.calls if call.hints["phase"] == "facts"]
    assert "one hall holds 12,600 sensors" in str(asked.messages)
    later = [call for call in model.calls if call.purpose in ("turn", "judge")]
    assert later
    for call in later:
        text = "\n".join(message["content"] for message in call.messages)
        assert "| 12,600 | sensors | size |" in text
        assert "The upgrade costs EUR 60,000 | once." in text  # the document itself


@pytest.mark.parametrize("has_table", [True, False])
def test_a_councils_check_reads_the_table_instead_of_the_document(has_table: bool, tmp_path: Path) -> None:
    (tmp_path / "handbook.md").write_text(HANDBOOK)
    model = FakeModel(_reply if has_table else fake_reply)
    context = str(tmp_path / "handbook.md")
    config = make_config({"protocol": "council", "rounds": 1, "model": "m", "context": context})
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debates.start(TOPIC, config).run()
    checks = [call for call in model.calls if call.hints["phase"] == "convergence"]
    assert checks
    for call in checks:
        text = "\n".join(message["content"] for message in call.messages)
        assert ("| 12,600 | sensors | size |" in text) == has_table
        assert ("The upgrade costs EUR 60,000 | once." in text) != has_table


def test_the_table_stands_in_place_of_a_document_that_does_not_fit(tmp_path: Path) -> None:
    filler = "\n\n".join(f"Paragraph {n} is about chairs, tables and other furniture." for n in range(900))
    _, model = run(tmp_path, f"{HANDBOOK}\n\n{filler}")
    turns = [call for call in model.calls if call.purpose == "turn"]
    texts = ["\n".join(message["content"] for message in call.messages) for call in turns]
    assert all("| 12,600 | sensors | size |" in text for text in texts)
    assert all(text.count("Paragraph ") < 900 for text in texts)


@pytest.mark.parametrize(
    ("settings", "topic", "count"),
    [
        ({"context": ""}, "Which gateway?", 0),
        ({"context": ""}, TOPIC, 1),
        ({"protocol": "round-robin", "turns": 2}, TOPIC, 0),
    ],
    ids=["nothing given", "long topic", "other protocol"],
)
def test_facts_are_collected_for_councils_with_material(
    settings: dict[str, Any], topic: str, count: int, tmp_path: Path
) -> None:
    model = FakeModel(_reply)
    config = make_config({"protocol": "council", "rounds": 1, "model": "m", **settings})
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debates.start(topic, config).run()
    assert len([call for call in model.calls if call.hints["phase"] == "facts"]) == count


def test_a_failed_collection_is_recorded_and_the_council_continues(tmp_path: Path) -> None:
    model = FakeModel(fake_reply)
    config = make_config({"protocol": "council", "rounds": 1, "model": "m"})
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        document = debates.start(TOPIC, config).run()
    assert document["status"] == "done"
    assert "the facts were not collected" in str(document["errors"])


def test_a_forecast_counts_the_collection() -> None:
    config = make_config({"protocol": "council", "rounds": 1, "model": "m", "topic": TOPIC})
    with_brief, short = estimate(config), estimate(config.model_copy(update={"topic": "Which gateway?"}))
    assert with_brief
    assert short
    phases = [{each.phase for each in planned.longest_run.planned} for planned in (with_brief, short)]
    assert ["facts" in names for names in phases] == [True, False]
