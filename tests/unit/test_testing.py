"""The fake model and the fixtures that other projects use in their tests."""

from __future__ import annotations

import pytest

from moot import DebateConfig, Debates, ModelError
from moot.testing import ScriptedModel, fake_model, moot_debates, moot_model

__all__ = ["moot_debates", "moot_model"]


def test_a_debate_runs_with_the_fixtures(moot_debates: Debates, moot_model: ScriptedModel) -> None:
    document = moot_debates.start("Tabs or spaces?", DebateConfig(turns=2, model="fake")).run()
    assert document["status"] == "done"
    spoken = [entry["content"] for entry in document["transcript"] if entry["kind"] == "speech"]
    assert sorted(spoken) == ["Reply 1.", "Reply 2."]
    assert document["verdict"]["status"] == "ok"
    assert len(moot_model.calls) == 4
    turns = [call for call in moot_model.calls if not call.parameters["json_schema"]]
    assert "Tabs or spaces?" in str(turns[0].messages)


def test_a_fake_model_repeats_its_replies_and_raises_errors(moot_debates: Debates) -> None:
    model = fake_model(["Yes.", "No."])
    assert [model.invoke("?").text for _ in range(3)] == ["Yes.", "No.", "Yes."]
    with pytest.raises(ModelError, match="down"):
        fake_model([ModelError("down")]).invoke("?")
