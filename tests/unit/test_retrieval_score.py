import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.retrieval import EvidenceIndex, concentration, probabilities, read_question
from moot.retrieval.score import CONTEXT_TOKENS, context_sum, own_evidence, term_weights
from moot.state.entries import Entry, make_entry

WORDS = ["tax", "carbon", "price", "nuclear", "wind", "cost"]


def entry(seq: int, content: str, speaker: str = "ada", tokens: int = 40) -> Entry:
    return make_entry(seq, speaker, "speech", content, tokens=tokens)


def index_of(*lines: str, tokens: int = 40) -> EvidenceIndex:
    return EvidenceIndex(entry(n, line, "ab"[n % 2], tokens) for n, line in enumerate(lines))


def chances(index: EvidenceIndex, question: str) -> np.ndarray:
    return probabilities(index, read_question(index, question))


entries = st.lists(
    st.tuples(st.lists(st.sampled_from(WORDS), max_size=6), st.sampled_from("abc"), st.integers(0, 3_000)),
    max_size=30,
).map(lambda rows: [entry(n, " ".join(words), who, tokens) for n, (words, who, tokens) in enumerate(rows)])


@given(entries, st.text(max_size=30))
def test_probabilities_add_up_to_one(transcript: list[Entry], question: str) -> None:
    index = EvidenceIndex(transcript)
    found = chances(index, f"{question} carbon")
    assert found.shape == (len(transcript),)
    assert (found >= 0).all()
    assert not transcript or found.sum() == pytest.approx(1)
    assert 0 <= concentration(index, found) <= 1 + 1e-9


@given(st.lists(st.tuples(st.floats(0, 9), st.integers(1, 20_000)), max_size=40))
def test_the_context_is_the_faded_sum_of_the_other_messages(rows: list[tuple[float, int]]) -> None:
    own = np.array([score for score, _ in rows])
    tokens = np.array([size for _, size in rows], dtype=float)
    middle = np.cumsum(tokens) - tokens / 2
    fade = np.exp(-np.abs(middle[:, None] - middle[None, :]) / CONTEXT_TOKENS)
    np.fill_diagonal(fade, 0.0)
    np.testing.assert_allclose(context_sum(own, middle), fade @ own, atol=1e-5)


@given(entries, st.sets(st.integers(0, 29)))
def test_the_evidence_of_some_messages_is_the_same_as_among_all(
    transcript: list[Entry], chosen: set[int]
) -> None:
    index = EvidenceIndex(transcript)
    weights = term_weights(read_question(index, "carbon price tax"), index.postings)
    some = np.array(sorted(position for position in chosen if position < len(index)), dtype=np.int64)
    every = own_evidence(index.postings, weights)
    np.testing.assert_allclose(own_evidence(index.postings, weights, some), every[some])


def test_a_reply_beside_the_question_that_names_the_subject_is_found() -> None:
    lines = ["weather today"] * 40
    lines[20], lines[21] = "What was the harbour toll?", "Forty crowns."
    found = chances(index_of(*lines), "How high was the harbour toll?")
    assert set(np.argsort(-found)[:2]) == {20, 21}


def test_a_single_message_that_answers_is_found_beside_a_passage_about_the_subject() -> None:
    lines = ["weather today"] * 120
    for place in range(40, 80, 3):
        lines[place] = "the harbour again"
    lines[5] = "the harbour toll was forty crowns"
    found = chances(index_of(*lines), "How high was the harbour toll?")
    assert found[5] > found[41:79:3].max()


def test_of_equal_messages_that_of_a_named_speaker_is_likelier() -> None:
    lines = ["weather today"] * 60
    lines[20] = lines[41] = "the harbour toll"
    index = index_of(*lines)
    index.names.update(a="Ada Byron", b="Bob Hope")
    found = chances(index, "What did Bob Hope say of the harbour toll?")
    assert found[41] > 1.5 * found[20]


def test_a_question_about_a_message_is_concentrated_and_one_about_everything_is_not() -> None:
    lines = [f"point {n} of the agenda" for n in range(400)]
    lines[100] = "the harbour toll was forty crowns"
    index = index_of(*lines)
    assert concentration(index, chances(index, "How high was the harbour toll?")) > 0.45
    assert concentration(index, chances(index, "Who won?")) < 0.3
