"""Ids and names of speakers, in imports and in configurations."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings, strategies as st

from moot.config import can_interject
from moot.config.config_files import make_config
from moot.debates.imported_debate import transcript_config
from moot.importers import parse_transcript
from moot.plugins.importing.transcript import slugs
from moot.prompts.truncation import speaker_label
from moot.state.errors import ConfigError


def test_names_that_differ_only_in_case_space_or_colon_are_one_speaker() -> None:
    read = parse_transcript("speaker,text\nAnn Lee,a\nANN  LEE ,b\nAnn Lee:,c\nAnne Lee,d\n")
    assert [(speaker.id, speaker.name) for speaker in read.speakers] == [
        ("ann-lee", "Ann Lee"),
        ("anne-lee", "Anne Lee"),
    ]


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("José Ñuñez", "jose-nunez"),
        ("Søren Łuk", "soren-luk"),
        ("김철수", "gimceolsu"),
        ("カナ", "kana"),
        ("张伟", "speaker-1"),
        ("?!", "speaker-1"),
        ("Moot", "speaker-moot"),
        ("user", "speaker-user"),
        ("Straße", "strasse"),
        ("x" * 60, "x" * 40),
    ],
)
def test_slugs_stay_close_to_the_name(name: str, slug: str) -> None:
    assert slugs([name]) == {name: slug}


@settings(max_examples=100, deadline=None)
@given(
    names=st.lists(st.text(max_size=50) | st.sampled_from(["a b", "a-b", "speaker-2", "speaker 2", "a-b-2"]))
)
def test_slugs_are_valid_unique_and_stable(names: list[str]) -> None:
    ids = slugs(names)
    assert len(set(ids.values())) == len(set(names))
    assert all(
        re.fullmatch(r"[a-z0-9-]{1,40}", slug) and slug not in ("moot", "user") for slug in ids.values()
    )
    assert slugs(names) == ids


def test_slugs_are_unique_for_20000_names_with_the_same_prefix() -> None:
    ids = slugs(f"{'A' * 45}{number}" for number in range(20_000))
    assert len(set(ids.values())) == 20_000


RESERVED = ["Judge:", "You", "Note", "Summary", "*Background*", "System", "[m000002]", "Ann m000002"]


@pytest.mark.parametrize("name", RESERVED)
def test_config_refuses_debater_names_that_prompts_reserve(name: str) -> None:
    with pytest.raises(ConfigError, match=r"name: .*choose another name"):
        make_config({"debaters": [{"name": name, "id": "x"}, {"name": "Ben"}]})


def test_debater_names_are_one_line_and_unique() -> None:
    made = make_config({"debaters": [{"name": "An\u202e\n n\x1b\u200b"}, {"name": "زینب‌ي", "id": "z"}]})
    assert list(made.names().values()) == ["An n", "زینب‌ي"]
    with pytest.raises(ConfigError, match="several debaters are called 'ann'"):
        make_config({"debaters": [{"name": "Ann", "id": "x"}, {"name": "Ａnn", "id": "y"}]})


def test_import_renames_speakers_with_reserved_names() -> None:
    messages = [
        {"speaker": name, "content": "x"} for name in ("You", "[m000002] Bob", "System:", "An\u202en")
    ]
    config = transcript_config(parse_transcript(json.dumps(messages)))
    assert list(config.names().values()) == ["You (speaker)", "Bob", "System (speaker)", "Ann"]
    assert make_config(config.to_json()).names() == config.names()


def test_an_imported_speaker_may_be_called_user_and_is_no_person_of_moot() -> None:
    config = transcript_config(
        parse_transcript("user: Safe?\nassistant: No.\nuser: Why?\nassistant: Rust.\n")
    )
    assert config.names() == {"speaker-user": "user", "assistant": "assistant"}
    labels = {speaker: speaker_label(speaker, config.names()) for speaker in ("user", "speaker-user")}
    assert labels == {"user": "The person who opened the debate", "speaker-user": "user"}


@pytest.mark.parametrize("speaker", ["judge", "note", "m000002", "you", "Ann", "a\nb", "tool", "developer"])
def test_can_interject_refuses_reserved_and_invalid_names(speaker: str) -> None:
    assert not can_interject(speaker)
