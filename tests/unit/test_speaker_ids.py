"""The ids that an import gives to those who speak."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moot.graph.importing import parse_transcript, slugs


def test_names_that_differ_in_case_space_or_colon_are_one_speaker() -> None:
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
def test_slugs_are_valid_never_shared_and_stable(names: list[str]) -> None:
    ids = slugs(names)
    assert len(set(ids.values())) == len(set(names))
    assert all(
        re.fullmatch(r"[a-z0-9-]{1,40}", slug) and slug not in ("moot", "user") for slug in ids.values()
    )
    assert slugs(names) == ids
