import numpy as np
import pytest
from hypothesis import given, strategies as st
from langchain_core.embeddings import Embeddings

from moot.retrieval import (
    EvidenceIndex,
    MessageVectors,
    SelectedEvidence,
    probabilities,
    read_question,
    select_evidence,
)
from moot.retrieval.selection import token_costs
from moot.retrieval.spans import densities
from moot.retrieval.vectors import WINDOW_TOKENS
from moot.retrieval.weights import SpanWeights
from moot.state.entries import Entry, make_entry

WORDS = ["tax", "carbon", "price", "nuclear", "wind", "cost"]


def entry(seq: int, content: str, speaker: str = "ada", tokens: int = 40) -> Entry:
    return make_entry(seq, speaker, "speech", content, tokens=tokens)


def _shares(transcript: list[Entry], selection: SelectedEvidence) -> dict[str, int]:
    """Return the number of selected tokens of each side."""
    return {
        side: sum(e["tokens"] for e in transcript if e["speaker"] == side and e["seq"] in selection.seqs)
        for side in "ab"
    }


entries = st.lists(
    st.tuples(st.lists(st.sampled_from(WORDS), max_size=6), st.sampled_from("abc"), st.integers(0, 3_000)),
    max_size=30,
).map(lambda rows: [entry(n, " ".join(words), who, tokens) for n, (words, who, tokens) in enumerate(rows)])


def index_of_topics(topics: list[str], each: int = 30) -> EvidenceIndex:
    lines = [f"{topic} point {n}" for topic in topics for n in range(each)]
    return EvidenceIndex(entry(n, line, f"s{n % 2}") for n, line in enumerate(lines))


def test_an_unknown_message_has_no_cost() -> None:
    price = token_costs(EvidenceIndex([entry(3, "tax", tokens=40), entry(7, "wind", tokens=90)]), None)
    assert [price(3), price(7)] == [40, 90]
    for unknown in (0, 4, 8):
        with pytest.raises(KeyError):
            price(unknown)


@given(
    entries,
    st.text(max_size=30),
    st.integers(0, 9_000),
    st.sets(st.integers(0, 30)),
    st.booleans(),
)
def test_a_selection_never_exceeds_its_budget(
    transcript: list[Entry], query: str, budget: int, must: set[int], sides: bool
) -> None:
    index = EvidenceIndex(transcript)
    costs = {e["seq"]: e["tokens"] + 7 for e in transcript}
    speakers = ("a", "b") if sides else ()
    selection = select_evidence(index, query, budget=budget, costs=costs, must_keep=must, speakers=speakers)
    assert selection.tokens == sum(costs[seq] for seq in selection.seqs) <= budget
    assert list(selection.seqs) == sorted(set(selection.seqs))
    assert selection.omitted + len(selection.seqs) == len(transcript)


@given(entries, st.integers(0, 9_000))
def test_omitted_messages_do_not_fit_the_remaining_budget(transcript: list[Entry], budget: int) -> None:
    selection = select_evidence(EvidenceIndex(transcript), "carbon price", budget=budget)
    rest = [max(1, e["tokens"]) for e in transcript if e["seq"] not in selection.seqs]
    assert all(tokens > budget - selection.tokens for tokens in rest)


@given(entries, st.text(max_size=30))
def test_densities_are_a_probability_over_the_tokens(transcript: list[Entry], query: str) -> None:
    index = EvidenceIndex(transcript)
    density = densities(index, read_question(index, query + " carbon"))
    assert density.shape == (len(transcript),)
    assert (density >= 0).all()
    if transcript:
        assert np.dot(density, np.array(index.tokens)) == pytest.approx(1)


def test_selection_is_the_passage_about_the_question() -> None:
    index = index_of_topics(["harbour", "carbon", "school"])
    selection = select_evidence(index, "What was said about carbon?", budget=800)
    assert all(30 <= seq < 60 for seq in selection.seqs)
    assert len(selection.seqs) == 20


def test_messages_between_matches_are_selected_too() -> None:
    lines = ["weather"] * 40 + ["carbon", "agreed", "carbon", "quite", "carbon"] + ["football"] * 40
    index = EvidenceIndex(entry(n, line) for n, line in enumerate(lines))
    assert {40, 41, 42, 43, 44} <= set(select_evidence(index, "carbon", budget=480).seqs)


def test_passage_of_a_named_speaker_is_preferred() -> None:
    index = EvidenceIndex(
        entry(n, "the carbon price matters", "ada" if 60 <= n < 80 else "bob") for n in range(120)
    )
    selection = select_evidence(index, "What does Ada think of the carbon price?", budget=800)
    assert sum(60 <= seq < 80 for seq in selection.seqs) >= 15


def test_passage_with_both_named_speakers_is_preferred() -> None:
    index = EvidenceIndex(
        entry(
            n, "the carbon price matters", "ada" if n < 60 else "eve" if n % 2 else "ada" if n < 80 else "bob"
        )
        for n in range(140)
    )
    selection = select_evidence(index, "Where do Ada and Eve differ on the carbon price?", budget=800)
    assert sum(60 <= seq < 80 for seq in selection.seqs) >= 18


def test_short_messages_are_skipped_because_of_their_label_cost() -> None:
    lines = [("carbon tax is due", 40) if n % 2 else ("carbon", 2) for n in range(60)]
    index = EvidenceIndex(entry(n, line, tokens=tokens) for n, (line, tokens) in enumerate(lines))
    costs = {n: tokens + 8 for n, (_, tokens) in enumerate(lines)}
    selection = select_evidence(index, "carbon", budget=480, costs=costs)
    assert sum(lines[seq][1] for seq in selection.seqs) == 400


def test_required_messages_are_selected_newest_first() -> None:
    index = index_of_topics(["harbour", "carbon"])
    selection = select_evidence(index, "carbon", budget=80, must_keep=[0, 1, 2])
    assert selection.seqs == (1, 2)


def test_message_larger_than_the_budget_is_reported() -> None:
    index = EvidenceIndex([entry(0, "wind", tokens=900), entry(1, "carbon", tokens=900)])
    selection = select_evidence(index, "carbon", budget=500)
    assert (selection.seqs, selection.oversize) in [((), 0), ((), 1)]
    assert select_evidence(index, "carbon", budget=1_000).oversize is None


def test_an_empty_transcript_gives_an_empty_selection() -> None:
    selection = select_evidence(EvidenceIndex(), "carbon", budget=500)
    assert (selection.seqs, selection.tokens, selection.oversize) == ((), 0, None)


@given(st.lists(st.integers(30, 300), min_size=60, max_size=90), st.integers(3_000, 6_000))
def test_sides_with_enough_text_get_equal_shares(sizes: list[int], budget: int) -> None:
    share = budget // 2
    transcript = [entry(n, WORDS[n % 6], "ab"[n % 2], tokens) for n, tokens in enumerate(sizes)]
    totals = [sum(e["tokens"] for e in transcript if e["speaker"] == side) for side in "ab"]
    selection = select_evidence(EvidenceIndex(transcript), "carbon", budget=budget, speakers=("a", "b"))
    for side, total in zip("ab", totals, strict=True):
        assert _shares(transcript, selection)[side] <= share
        if total <= share:
            assert _shares(transcript, selection)[side] == total
        elif max(sizes) <= share // 10:
            assert _shares(transcript, selection)[side] >= 0.9 * share


def test_long_messages_are_swapped_until_the_shares_are_equal() -> None:
    sizes = {"a": [330] * 8 + [480] * 8, "b": [100] * 30}
    transcript = [
        entry(n, "carbon", side, t) for n, (side, t) in enumerate((s, t) for s in sizes for t in sizes[s])
    ]
    chosen = select_evidence(EvidenceIndex(transcript), "carbon", budget=2_000, speakers=("a", "b"))
    shares = _shares(transcript, chosen)
    assert min(shares.values()) >= 0.9 * max(shares.values())


def test_unused_share_of_a_side_is_not_given_to_the_other() -> None:
    transcript = [entry(n, "carbon", "a" if n < 3 else "b") for n in range(80)]
    chosen = select_evidence(EvidenceIndex(transcript), "x", budget=2_000, speakers=("a", "b"))
    assert _shares(transcript, chosen) == {"a": 120, "b": 1_000}


def test_full_selection_asks_for_no_further_costs() -> None:
    index = index_of_topics(["harbour", "carbon", "school"], each=300)
    priced: list[int] = []

    def cost(seq: int) -> int:
        priced.append(seq)
        return 45

    assert len(select_evidence(index, "carbon", budget=900, costs=cost).seqs) == 20
    assert len(priced) < 30


class TopicEmbeddings(Embeddings):
    """Embeds a text as one of two vectors: about water, or not."""

    def __init__(self) -> None:
        self.calls = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls += len(texts)
        return [[1.0, 0.1] if "harbour" in text else [0.1, 1.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0, 0.0] if "port" in text else [0.0, 1.0]


@pytest.fixture
def water() -> tuple[EvidenceIndex, TopicEmbeddings]:
    model = TopicEmbeddings()
    plain = [entry(n, line) for n, line in enumerate(["school"] * 30 + ["harbour"] * 30 + ["market"] * 30)]
    return EvidenceIndex(plain, vectors=MessageVectors(model)), model


def test_embeddings_find_messages_without_common_words(water: tuple[EvidenceIndex, TopicEmbeddings]) -> None:
    selection = select_evidence(water[0], "the port", budget=800)
    assert all(30 <= seq < 60 for seq in selection.seqs)


def test_added_message_embeds_itself_and_the_last_block(water: tuple[EvidenceIndex, TopicEmbeddings]) -> None:
    index, model = water
    select_evidence(index, "the port", budget=800)
    first = model.calls
    index.add(entry(90, "market"))
    select_evidence(index, "the port", budget=800)
    assert model.calls == first + 2


def test_similarity_includes_short_neighbouring_messages() -> None:
    def nearness(tokens: int) -> list[bool]:
        vectors = MessageVectors(TopicEmbeddings())
        for text in ("school", "school", "harbour", "school", "market"):
            vectors.add(text, tokens)
        return [bool(cosine > 0.9) for cosine in vectors.similarity("the port").blocks]

    assert nearness(WINDOW_TOKENS // 2) == [False, True, True, True, False]
    assert nearness(WINDOW_TOKENS) == [False, False, True, False, False]


def test_question_is_embedded_without_the_named_speaker() -> None:
    index, embedded = EvidenceIndex([entry(1, "The port.", "ada")], names={"ada": "Ada Byron"}), list[str]()

    class RecordingEmbeddings(TopicEmbeddings):
        def embed_query(self, text: str) -> list[float]:
            embedded.append(text)
            return [1.0, 0.0]

    index.vectors = MessageVectors(RecordingEmbeddings())
    index.vectors.add("The port.", 40)
    for question in ("What did Ada Byron say of the port?", "Ada Byron?"):
        probabilities(index, read_question(index, question))
    assert embedded == ["What did of the port", "Ada Byron?"]


@given(st.lists(st.integers(1, 150), max_size=20), st.sets(st.integers(0, 20)))
def test_similarity_does_not_depend_on_earlier_questions(sizes: list[int], asked: set[int]) -> None:
    asked_between, asked_once = MessageVectors(TopicEmbeddings()), MessageVectors(TopicEmbeddings())
    for n, size in enumerate(sizes):
        text = "harbour" if n % 4 == 0 else "school"
        asked_between.add(text, size)
        asked_once.add(text, size)
        if n in asked:
            asked_between.similarity("the port")
    between, once = asked_between.similarity("the port"), asked_once.similarity("the port")
    assert [each.tolist() for each in between] == [each.tolist() for each in once]
    assert [len(each) for each in once] == [len(sizes)] * 2


@pytest.mark.parametrize(
    ("with_it", "without"),
    [
        (SpanWeights(), SpanWeights(turning=0.0)),
        (SpanWeights(front=0.0, lead=1.0), SpanWeights(front=1.0, lead=0.0)),
    ],
    ids=["change of speaker at the end", "question before the passage"],
)
def test_span_weights_raise_the_score_of_an_answer(with_it: SpanWeights, without: SpanWeights) -> None:
    lines = ["carbon" if n == 9 else f"point {n}" for n in range(30)]
    index = EvidenceIndex(entry(n, line, "b" if 10 <= n < 20 else "a") for n, line in enumerate(lines))
    question = read_question(index, "What of carbon?")

    def held(spans: SpanWeights) -> float:
        density = densities(index, question, spans)
        return float(density[10:20].sum() / density.sum())

    assert held(with_it) > 1.005 * held(without)


def test_index_that_grew_scores_like_a_new_index() -> None:
    lines = [f"point {n}" for n in range(40)] + [f"carbon {n}" for n in range(40)]
    grown = EvidenceIndex(entry(n, line) for n, line in enumerate(lines[:50]))
    select_evidence(grown, "carbon", budget=800)
    for n, line in enumerate(lines[50:], start=50):
        grown.add(entry(n, line))
    fresh = EvidenceIndex(entry(n, line) for n, line in enumerate(lines))
    question = read_question(fresh, "carbon")
    assert densities(grown, question).tolist() == densities(fresh, question).tolist()
