from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, strategies as st
from langchain_core.embeddings import Embeddings

from moot.retrieval import EvidenceIndex, MessageVectors, concentration, probabilities, read_question
from moot.retrieval.score import CONTEXT_TOKENS, context_sum, own_evidence, term_weights
from moot.retrieval.vectors import TextVectors
from moot.state.entries import Entry, make_entry

WORDS = ["tax", "carbon", "price", "nuclear", "wind", "cost"]


class SameVectors(Embeddings):
    """Embedding model that returns the same vector for every text."""

    def __init__(self, vector: Sequence[float] = (1.0, 0.0)) -> None:
        self.vector = [*vector]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.vector for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.vector


def entry(seq: int, content: str, speaker: str = "ada", tokens: int = 40) -> Entry:
    return make_entry(seq, speaker, "speech", content, tokens=tokens)


def index_of(*lines: str, tokens: int = 40) -> EvidenceIndex:
    return EvidenceIndex(entry(n, line, "ab"[n % 2], tokens) for n, line in enumerate(lines))


def message_probabilities(index: EvidenceIndex, question: str) -> np.ndarray:
    return probabilities(index, read_question(index, question))


entries = st.lists(
    st.tuples(st.lists(st.sampled_from(WORDS), max_size=6), st.sampled_from("abc"), st.integers(0, 3_000)),
    max_size=30,
).map(lambda rows: [entry(n, " ".join(words), who, tokens) for n, (words, who, tokens) in enumerate(rows)])


@given(entries, st.text(max_size=30))
def test_probabilities_add_up_to_one(transcript: list[Entry], question: str) -> None:
    index = EvidenceIndex(transcript)
    result = message_probabilities(index, f"{question} carbon")
    assert result.shape == (len(transcript),)
    assert (result >= 0).all()
    assert not transcript or result.sum() == pytest.approx(1)
    assert 0 <= concentration(index, result) <= 1 + 1e-9


@given(st.lists(st.tuples(st.floats(0, 9), st.integers(1, 20_000)), max_size=40))
def test_context_is_the_decayed_sum_of_the_other_messages(rows: list[tuple[float, int]]) -> None:
    own = np.array([score for score, _ in rows])
    tokens = np.array([size for _, size in rows], dtype=float)
    middle = np.cumsum(tokens) - tokens / 2
    decay = np.exp(-np.abs(middle[:, None] - middle[None, :]) / CONTEXT_TOKENS)
    np.fill_diagonal(decay, 0.0)
    np.testing.assert_allclose(context_sum(own, middle), decay @ own, atol=1e-5)


@given(entries, st.sets(st.integers(0, 29)))
def test_evidence_of_a_subset_equals_that_within_all_messages(
    transcript: list[Entry], chosen: set[int]
) -> None:
    index = EvidenceIndex(transcript)
    weights = term_weights(read_question(index, "carbon price tax"), index.postings)
    some = np.array(sorted(position for position in chosen if position < len(index)), dtype=np.int64)
    every = own_evidence(index.postings, weights)
    np.testing.assert_allclose(own_evidence(index.postings, weights, some), every[some])


def test_question_that_repeats_its_words_thousands_of_times_gives_probabilities() -> None:
    words, rain = "tariff school ", "rain " * 50
    lines = [(words * 20 + rain, 9_000), (words * 5 + rain, 1), (words * 5 + rain, 1), ("rain", 300)]
    index = EvidenceIndex(entry(n, line, tokens=tokens) for n, (line, tokens) in enumerate(lines))
    assert message_probabilities(index, words * 4_000).sum() == pytest.approx(1)


def test_reply_next_to_a_matching_question_is_found() -> None:
    lines = ["weather today"] * 40
    lines[20], lines[21] = "What was the harbour toll?", "Forty crowns."
    result = message_probabilities(index_of(*lines), "How high was the harbour toll?")
    assert set(np.argsort(-result)[:2]) == {20, 21}


def test_reply_to_a_question_outranks_a_message_after_a_statement() -> None:
    lines = ["weather today"] * 60
    lines[20], lines[40] = "The harbour toll matters.", "Which harbour toll matters?"
    result = message_probabilities(index_of(*lines), "How high was the harbour toll?")
    assert result[41] > 1.5 * result[21]


def test_statement_outranks_a_question_with_the_same_meaning() -> None:
    lines = ["weather today"] * 60
    lines[20], lines[40] = "Which harbour toll matters?", "The harbour toll matters."
    rows = [entry(n, line) for n, line in enumerate(lines)]
    index = EvidenceIndex(rows, vectors=MessageVectors(SameVectors()))
    result = message_probabilities(index, "How high was the harbour toll?")
    assert result[40] > 1.5 * result[20]
    assert index.asking[20] == 1 > index.asking[40] == 0


@pytest.mark.parametrize("number", [1e30, 1e300, 1e-300, 0.0])
def test_vectors_of_extreme_numbers_have_length_one_or_zero(number: float) -> None:
    with np.errstate(all="raise", under="ignore"):
        vectors = TextVectors(SameVectors([number, -number]), ["a", "b"])
        assert vectors.similarity("a") == pytest.approx([float(number > 0)] * 2)


def test_single_answer_outranks_a_passage_about_the_subject() -> None:
    lines = ["weather today"] * 120
    for place in range(40, 80, 3):
        lines[place] = "the harbour again"
    lines[5] = "the harbour toll was forty crowns"
    result = message_probabilities(index_of(*lines), "How high was the harbour toll?")
    assert result[5] > result[41:79:3].max()


def test_message_of_a_named_speaker_is_more_likely() -> None:
    lines = ["weather today"] * 60
    lines[20] = lines[41] = "the harbour toll"
    index = index_of(*lines)
    index.names.update(a="Ada Byron", b="Bob Hope")
    result = message_probabilities(index, "What did Bob Hope say of the harbour toll?")
    assert result[41] > 1.5 * result[20]


def test_specific_question_is_more_concentrated_than_a_general_one() -> None:
    lines = [f"point {n} of the agenda" for n in range(400)]
    lines[100] = "the harbour toll was forty crowns"
    index = index_of(*lines)
    assert concentration(index, message_probabilities(index, "How high was the harbour toll?")) > 0.45
    assert concentration(index, message_probabilities(index, "Who won?")) < 0.3
