"""Reports in Argdown: what they contain, and that the real parser accepts them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from moot.api import open_debates
from moot.config import DebateConfig
from moot.models.offline import RecordedModel, recording_config, recordings
from moot.reports import render_argdown
from moot.runtime.environment import Environment

PACKAGE = "@argdown/cli@1.7.5"
"""The last version that installs: 2.0.0 depends on a package that was never published."""
HOSTILE_TEXT = (
    "[a]: <b> + - _> #tag @[c] // d /* e */ <!-- f --> {g: 1} **h** __i__ ==== \\ `j` :) .~. | ~ "
    "\n\n===\n> k é 司 🙂"
)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the documents of all recorded debates by name."""
    documents = {}
    for name in recordings():
        settings = recording_config(name)
        topic = settings.pop("topic")
        environment = Environment(factory=lambda _name, _settings: RecordedModel(recording=name))  # noqa: B023  # used within the loop
        database = str(tmp_path_factory.mktemp("argdown") / "moot.sqlite")
        with open_debates(database, environment=environment) as debates:
            documents[name] = debates.start(topic, DebateConfig(**settings), name=name).run()
    return documents


@pytest.fixture(scope="module")
def argdown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the real parser into a temporary folder, and return its path."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("npm")
    install = [
        npm,
        "install",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--prefix",
        str(folder),
        PACKAGE,
    ]
    done = subprocess.run(install, cwd=folder, capture_output=True, text=True, timeout=600)
    if done.returncode:
        pytest.skip(f"npm cannot install {PACKAGE}: {done.stderr[-300:]}")
    return folder / "node_modules" / ".bin" / "argdown"


def parse_argdown(argdown: Path, text: str, folder: Path) -> Any:
    """Parse a text with the real parser, and return its JSON output."""
    (folder / "map.argdown").write_text(text, encoding="utf-8")
    run = [str(argdown), "json", str(folder / "map.argdown"), str(folder)]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=300, env={**os.environ})
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "map.json").read_text(encoding="utf-8"))


def test_argdown_lists_each_debaters_argument_for_a_claim(samples: dict[str, Any]) -> None:
    document = samples["free-transport"]
    text = render_argdown(document)
    for claim in document["blackboard"]["standing"]["claims"]:
        assert f"\n[{claim['id']}]: " in text
        for debater, stance in claim["stances"].items():
            name = "Nora Feld" if debater == "nora-feld" else "Viktor Brandt"
            if stance["kind"] in ("asserts", "denies"):
                sign = "+" if stance["kind"] == "asserts" else "-"
                assert f"\n  {sign} <{name} - {claim['id']}>: “" in text


def test_argdown_uses_the_verdicts_options_if_there_are_no_claims(samples: dict[str, Any]) -> None:
    document = {**samples["monolith"]}
    document["blackboard"] = {
        **document["blackboard"],
        "claim_events": [],
        "standing": {**document["blackboard"]["standing"], "claims": []},
    }
    text = render_argdown(document)
    assert "\n[Decision]: " in text
    assert "\n[Answer of Ada Lindqvist]: " in text
    considered = document["verdict"]["considered"]
    for number, option in enumerate(considered, 1):
        assert f"\n[Option {number}]: " in text
        for finding in option["findings"]:
            relation = {"good": "+", "bad": "-"}.get(finding["rating"])
            title = finding["criterion"].replace("_", " ")
            assert relation is None or f"\n  {relation} <option {number} - {title}>: " in text
    ratings = {finding["rating"] for option in considered for finding in option["findings"]}
    assert ratings >= {"good", "bad"}


def test_argdown_omits_the_offline_models_verdict(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        document = debates.start("Merge?", DebateConfig(turns=2)).run()
    assert render_argdown(document).rstrip().endswith("[p000]: Merge\\?")


@pytest.mark.heavy
def test_the_real_parser_accepts_every_recorded_debate(
    argdown: Path, samples: dict[str, Any], tmp_path: Path
) -> None:
    for name, document in samples.items():
        folder = tmp_path / name
        folder.mkdir()
        read = parse_argdown(argdown, render_argdown(document), folder)
        claims = [each for each in document["blackboard"]["standing"]["claims"] if each["stances"]]
        assert {claim["id"] for claim in claims} <= read["statements"].keys()
        assert read["relations"]
        if name == "free-transport":
            assert {each["relationType"] for each in read["relations"]} >= {"support", "attack"}


@pytest.mark.heavy
def test_the_real_parser_preserves_special_characters(
    argdown: Path, samples: dict[str, Any], tmp_path: Path
) -> None:
    document = json.loads(json.dumps(samples["free-transport"]))
    document["topic"] = HOSTILE_TEXT
    for claim in document["blackboard"]["standing"]["claims"]:
        claim["text"] = HOSTILE_TEXT
        for stance in claim["stances"].values():
            stance["quote"] = HOSTILE_TEXT
    for debater in document["config"]["debaters"]:
        debater["name"] = f"{debater['name']} <[{HOSTILE_TEXT[:30]}]>"
    read = parse_argdown(argdown, render_argdown(document), tmp_path)
    written = " ".join(HOSTILE_TEXT.split())
    texts = [member.get("text", "") for each in read["statements"].values() for member in each["members"]]
    assert any(text.startswith(written) for text in texts)  # a tag with the status follows
    arguments = [member.get("text", "") for each in read["arguments"].values() for member in each["members"]]
    assert any(written in text for text in arguments)
