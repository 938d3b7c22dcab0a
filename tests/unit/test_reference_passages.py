"""Long messages split into passages."""

from __future__ import annotations

from hypothesis import given, strategies as st

from moot.asking.quote import EntryLines
from moot.config import DebateConfig
from moot.memory.passages import Place, Splitting, key_of, place_of
from moot.state.entries import Entry, make_entry
from moot.text.tokens import TRUNCATION_MARK, counter

count = counter()
CONFIG = DebateConfig.model_validate({"debaters": [{"name": "Ada"}]})
contents = st.lists(st.sampled_from(["word ", "界", "🙂", "End. ", "\n", "x" * 90]), max_size=400).map(
    "".join
)


def test_passage_size_is_a_quarter_of_a_long_message() -> None:
    assert Splitting.within(8000) == Splitting(long=1000, passage=250)


def _entry(content: str, seq: int = 0) -> Entry:
    return make_entry(seq, "ada", "speech", content, tokens=count(content))


@given(contents, st.integers(400, 9_000))
def test_passages_join_to_the_message_and_none_is_empty(content: str, total: int) -> None:
    splitting = Splitting.within(total)
    chunks = list(splitting.chunks(_entry(content, 7)))
    assert "".join(chunk["content"] for chunk in chunks) == content
    assert all(chunk["content"] for chunk in chunks) or not content
    assert [place_of(chunk["seq"]) for chunk in chunks] == [Place(7, part) for part in range(len(chunks))]
    assert (len(chunks) > 1) == (count(content) > splitting.long)


@given(st.integers(0, 10**7), st.integers(0, 10**6))
def test_place_survives_a_round_trip_through_its_key(seq: int, part: int) -> None:
    assert place_of(key_of(Place(seq, part))) == (seq, part)


def test_passage_ends_at_the_end_of_a_sentence() -> None:
    chunks = Splitting(10, 40).chunks(_entry("The harbour toll was forty crowns in winter. " * 40))
    assert all(chunk["content"].rstrip().endswith("winter.") for chunk in chunks)


def test_passages_mark_gaps_and_join_neighbours() -> None:
    entry = _entry("".join(f"Point {n} of the long agenda was heard that day. " for n in range(9)))
    lines = EntryLines([entry], CONFIG, count, Splitting(20, 14))
    keys = lines.keys([0])
    assert len(keys) == 9
    text = lines.passages([keys[1], keys[2], keys[5]])
    sentences = [f"Point {n} of the long agenda was heard that day." for n in (1, 2, 5)]
    cut = TRUNCATION_MARK.strip()
    assert (
        " ".join(text.split())
        == f"{CONFIG.fence} m000000 Ada: {cut} {sentences[0]} {sentences[1]} {cut} {sentences[2]} {cut}"
    )
    assert lines.passages(keys) == lines.text(0)
