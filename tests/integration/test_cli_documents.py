"""JSON documents that commands print, validated against the published schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from moot.api import open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.config.config_files import make_config
from moot.debates.prompt_reconstruction import reconstruct_prompt
from moot.graph.json_schemas import document_schema
from moot.state.errors import InputError
from tests.support.fakes import FakeModel, fake_reply

SCHEMA_FILE = Path(__file__).resolve().parents[2] / "docs" / "debate.schema.json"


def _summarizing_config() -> DebateConfig:
    return make_config({"turns": 12, "seed": 1, "memory": {"keep_recent": 2, "summarize_every": 2}})


def test_published_schema_matches_the_document_type() -> None:
    assert json.loads(SCHEMA_FILE.read_text(encoding="utf-8")) == document_schema()


def test_schema_refuses_an_incomplete_document() -> None:
    schema = Draft202012Validator(document_schema())
    assert not schema.is_valid({"format": "moot.debate/1"})


@pytest.mark.parametrize(
    "config",
    [DebateConfig(turns=3), make_config({"turns": 2, "judge": {"enabled": False}}), _summarizing_config()],
    ids=["with a verdict", "without a judge", "with summaries"],
)
def test_debate_documents_match_the_published_schema(tmp_path: Path, config: DebateConfig) -> None:
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        debate = debates.start("Is a schema worth its upkeep?", config)
        fresh, ended = debate.document(), debate.run()
    schema = Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))
    for document in (fresh, ended):
        assert list(schema.iter_errors(document)) == []


def test_document_keeps_the_reason_for_the_end_after_an_import(tmp_path: Path) -> None:
    termination = {"type": "convergence", "threshold": 0.0}
    config = make_config({"protocol": "council", "rounds": 3, "seed": 1, "termination": termination})

    def reply(call: ModelCall) -> Reply:
        """Answer convergence checks with an agreement of 0.7, and all other calls as usual."""
        if call.schema is None or "in_dispute" not in call.schema.model_fields:
            return fake_reply(call)
        data = {"reasoning": "They differ in one point.", "agreement": 0.7, "in_dispute": ["who pays"]}
        return Reply(data=data, model=call.model)

    environment = FakeModel(reply).environment()
    with open_debates(str(tmp_path / "d.sqlite"), environment=environment) as debates:
        debate = debates.start("Is a schema worth its upkeep?", config)
        fresh, ended = debate.document(), debate.run()
        imported = debates.import_document(ended, name="copy").document()
    (check,) = ended["convergence"]
    assert (fresh["ended_because"], fresh["convergence"]) == ("", [])
    why = f"the proposals converged in round 1: agreement {check['agreement']:.2f}, wanted 0.00"
    assert ended["ended_because"] == why
    assert check["in_dispute"] == ["who pays"]
    assert imported["ended_because"] == ended["ended_because"]
    assert imported["convergence"] == ended["convergence"]
    schema = Draft202012Validator(document_schema())
    assert list(schema.iter_errors(ended)) == []


def test_continued_debate_has_no_reason_for_the_end(tmp_path: Path) -> None:
    unjudged = {"turns": 2, "judge": {"enabled": False}}
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        debate = debates.start(
            "Is a schema worth its upkeep?", make_config({**unjudged, "limits": {"total_tokens": 1}})
        )
        ended = debate.run()
        assert (ended["status"], ended["ended_because"]) == ("limit", "limits.total_tokens of 1 is reached")
        debate.reconfigure(make_config(unjudged))
        events = debate.stream(turns=2)
        next(events)
        assert debate.document()["ended_because"] == ""
        list(events)
        assert debate.document()["ended_because"] == "all 4 turns are taken"
        debate.reconfigure(make_config({**unjudged, "limits": {"total_tokens": 1}}))
        assert debate.is_over()


def test_every_prompt_is_reconstructed_exactly_also_in_a_fork(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        debate = debates.start("Is looking back exact?", _summarizing_config())
        document = debate.run()
        fork = debate.fork(after=6)
        fork.run()
        for each in (debate, fork):
            seqs = [receipt["seq"] for receipt in each.document()["receipts"]]
            assert len(seqs) == 12
            for seq in seqs:
                prompt = reconstruct_prompt(each.session, seq)
                assert prompt.exact
                assert sum(part.tokens for part in prompt.parts) == sum(prompt.receipt["sections"].values())
        assert any(receipt["sections"].get("summary") for receipt in document["receipts"])


def test_reconstruction_refuses_an_entry_without_a_prompt(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        debate = debates.start("Is the topic a prompt?", DebateConfig(turns=1))
        debate.run()
        with pytest.raises(InputError, match="no prompt was sent for message m000000"):
            reconstruct_prompt(debate.session, 0)
