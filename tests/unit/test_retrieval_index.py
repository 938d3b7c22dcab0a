"""The evidence index, and the speakers and terms that a question names."""

from typing import Any

from hypothesis import given, strategies as st

from moot.retrieval import EvidenceIndex, read_question
from moot.retrieval.index import Postings
from moot.state.entries import Entry, make_entry

WORDS = ["tax", "carbon", "price", "nuclear", "wind", "the", "cost", "风能"]


def entry(seq: int, content: str, speaker: str = "ada", **fields: Any) -> Entry:
    return make_entry(seq, speaker, "speech", content, **{"tokens": len(content.split()), **fields})


texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), max_size=20)


def columns(index: EvidenceIndex) -> tuple[object, ...]:
    return (index.seqs, index.tokens, index.postings.important, index.speaker_of, index.postings.lengths)


@given(texts, st.integers(0, 20))
def test_incremental_index_equals_an_index_built_at_once(contents: list[str], cut: int) -> None:
    entries = [entry(n, content, f"s{n % 3}", importance=1 + n % 9) for n, content in enumerate(contents)]
    grown = EvidenceIndex(entries[:cut])
    for later in entries[cut:]:
        grown.add(later)
    whole = EvidenceIndex(entries)
    assert columns(grown) == columns(whole)
    for word in WORDS:
        assert all(
            (a == b).all()
            for a, b in zip(*(i.postings.occurrences(word) for i in (grown, whole)), strict=True)
        )


def test_adding_an_entry_again_changes_nothing() -> None:
    index = EvidenceIndex([entry(0, "carbon"), entry(1, "tax")])
    assert index.add(entry(1, "tax")) is False
    assert len(index) == 2
    assert index.postings.frequency("tax") == 1


def test_latest_returns_the_last_occurrences_before_a_position() -> None:
    postings = Postings()
    for content in ("tax", "wind", "tax tax", "tax", "tax"):
        postings.add(content)
    assert list(postings.latest("tax", before=4, last=2)) == [2, 3]
    assert [column.tolist() for column in postings.occurrences("tax")] == [[0, 2, 3, 4], [1, 2, 1, 1]]
    assert postings.occurrences("nobody")[0].tolist() == []


def test_position_finds_entries_of_a_transcript_with_gaps() -> None:
    index = EvidenceIndex([entry(3, "a"), entry(7, "b")])
    assert [index.position(seq) for seq in (3, 5, 7, 9)] == [0, None, 1, None]


def named_speakers(question: str, *names: str) -> list[str]:
    index = EvidenceIndex(
        [entry(n, "word", f"s{n}") for n in range(len(names))],
        names={f"s{n}": name for n, name in enumerate(names)},
    )
    return [names[number] for number in read_question(index, question).speakers]


def test_question_names_a_speaker_by_most_words_of_the_name() -> None:
    assert named_speakers("What did the project manager say?", "Project Manager", "Product Owner") == [
        "Project Manager"
    ]
    assert named_speakers("Is the project late?", "Project Manager", "Product Owner") == []


def test_shared_title_names_no_speaker() -> None:
    assert named_speakers("What did the grad say?", "Grad A", "Grad B", "Grad C", "Grad D") == []
    assert named_speakers("What did Grad A say about a plan?", "Grad A", "Grad B", "Grad C", "Grad D") == [
        "Grad A"
    ]
    assert named_speakers("Did Grad B say a word?", "Grad A", "Grad B", "Grad C", "Grad D") == ["Grad B"]


def test_question_names_a_speaker_by_surname_or_alias() -> None:
    names = ("Hon. Jo Bains (Minister of Trade)", "Hon. Al Reed")
    assert named_speakers("Why did Bains object?", *names) == [names[0]]
    assert named_speakers("Why did the minister of trade object?", *names) == [names[0]]


def test_speaker_names_are_no_terms_and_unknown_words_are_listed() -> None:
    index = EvidenceIndex([entry(0, "ada wants a carbon tax", "ada")])
    question = read_question(index, "What does Ada think about a carbon levy?")
    assert question.terms.keys() == {"carbon"}
    assert list(question.unknown) == ["levi"]


def test_full_name_names_no_other_speaker_that_shares_a_word() -> None:
    index = EvidenceIndex(
        [entry(0, "overlap", "a"), entry(1, "overlap", "e"), entry(2, "overlap", "p")],
        names={"a": "Grad A", "e": "Grad E", "p": "Professor White"},
    )
    assert read_question(index, "What did Grad E say about overlap?").speakers == (1,)
    assert read_question(index, "What did Grad E answer White?").speakers == (1, 2)


def test_common_word_has_a_lower_weight_in_a_question() -> None:
    index = EvidenceIndex([entry(0, "use the dendrochronology of the site", "ada")])
    weights = read_question(index, "the use of dendrochronology").terms
    assert 0 < weights["use"] < weights["dendrochronolog"] <= 1
