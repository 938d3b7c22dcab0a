import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings

from moot.retrieval import (
    EvidenceIndex,
    MessageVectors,
    SelectedEvidence,
    read_question,
    select_evidence,
)
from moot.retrieval.index import WINDOW_TOKENS
from moot.retrieval.score import ScoreWeights, SpanWeights, densities, token_costs
from moot.state.entries import Entry, make_entry

WORDS = ["tax", "carbon", "price", "nuclear", "wind", "cost"]


def entry(seq: int, content: str, speaker: str = "ada", tokens: int = 40) -> Entry:
    return make_entry(seq, speaker, "speech", content, tokens=tokens)


def _shares(transcript: list[Entry], found: SelectedEvidence) -> dict[str, int]:
    """Return the tokens chosen from each side."""
    return {
        side: sum(e["tokens"] for e in transcript if e["speaker"] == side and e["seq"] in found.seqs)
        for side in "ab"
    }


entries = st.lists(
    st.tuples(st.lists(st.sampled_from(WORDS), max_size=6), st.sampled_from("abc"), st.integers(0, 3_000)),
    max_size=30,
).map(lambda rows: [entry(n, " ".join(words), who, tokens) for n, (words, who, tokens) in enumerate(rows)])


def talk(topics: list[str], each: int = 30) -> EvidenceIndex:
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
    found = select_evidence(index, query, budget=budget, costs=costs, must_keep=must, speakers=speakers)
    assert found.tokens == sum(costs[seq] for seq in found.seqs) <= budget
    assert list(found.seqs) == sorted(set(found.seqs))
    assert found.omitted + len(found.seqs) == len(transcript)


@given(entries, st.integers(0, 9_000))
def test_what_is_left_out_would_not_have_fitted(transcript: list[Entry], budget: int) -> None:
    found = select_evidence(EvidenceIndex(transcript), "carbon price", budget=budget)
    rest = [max(1, e["tokens"]) for e in transcript if e["seq"] not in found.seqs]
    assert all(tokens > budget - found.tokens for tokens in rest)


@given(entries, st.text(max_size=30))
def test_densities_are_a_probability_over_the_tokens(transcript: list[Entry], query: str) -> None:
    index = EvidenceIndex(transcript)
    density = densities(index, read_question(index, query + " carbon"))
    assert density.shape == (len(transcript),)
    assert (density >= 0).all()
    if transcript:
        assert np.dot(density, np.array(index.tokens)) == pytest.approx(1)


def test_the_passage_about_the_question_is_chosen_with_its_neighbourhood() -> None:
    index = talk(["harbour", "carbon", "school"])
    found = select_evidence(index, "What was said about carbon?", budget=800)
    assert all(30 <= seq < 60 for seq in found.seqs)
    assert len(found.seqs) == 20


def test_messages_without_the_term_come_along_where_their_passage_has_it() -> None:
    lines = ["weather"] * 40 + ["carbon", "agreed", "carbon", "quite", "carbon"] + ["football"] * 40
    index = EvidenceIndex(entry(n, line) for n, line in enumerate(lines))
    assert {40, 41, 42, 43, 44} <= set(select_evidence(index, "carbon", budget=480).seqs)


def test_a_named_speaker_draws_their_passage() -> None:
    index = EvidenceIndex(
        entry(n, "the carbon price matters", "ada" if 60 <= n < 80 else "bob") for n in range(120)
    )
    found = select_evidence(index, "What does Ada think of the carbon price?", budget=800)
    assert sum(60 <= seq < 80 for seq in found.seqs) >= 15


def test_of_two_named_speakers_both_are_to_speak_in_the_passage() -> None:
    index = EvidenceIndex(
        entry(
            n, "the carbon price matters", "ada" if n < 60 else "eve" if n % 2 else "ada" if n < 80 else "bob"
        )
        for n in range(140)
    )
    found = select_evidence(index, "Where do Ada and Eve differ on the carbon price?", budget=800)
    assert sum(60 <= seq < 80 for seq in found.seqs) >= 18


def test_a_word_of_assent_gives_way_to_what_its_label_would_cost() -> None:
    lines = [("carbon tax is due", 40) if n % 2 else ("carbon", 2) for n in range(60)]
    index = EvidenceIndex(entry(n, line, tokens=tokens) for n, (line, tokens) in enumerate(lines))
    costs = {n: tokens + 8 for n, (_, tokens) in enumerate(lines)}
    found = select_evidence(index, "carbon", budget=480, costs=costs)
    assert sum(lines[seq][1] for seq in found.seqs) == 400


def test_what_must_be_kept_goes_first_and_the_newest_before_the_others() -> None:
    index = talk(["harbour", "carbon"])
    found = select_evidence(index, "carbon", budget=80, must_keep=[0, 1, 2])
    assert found.seqs == (1, 2)


def test_a_message_larger_than_the_budget_is_named_for_the_caller_to_cut() -> None:
    index = EvidenceIndex([entry(0, "wind", tokens=900), entry(1, "carbon", tokens=900)])
    found = select_evidence(index, "carbon", budget=500)
    assert (found.seqs, found.oversize) in [((), 0), ((), 1)]
    assert select_evidence(index, "carbon", budget=1_000).oversize is None


def test_an_empty_transcript_gives_an_empty_selection() -> None:
    found = select_evidence(EvidenceIndex(), "carbon", budget=500)
    assert (found.seqs, found.tokens, found.oversize) == ((), 0, None)


@given(st.lists(st.integers(30, 300), min_size=60, max_size=90), st.integers(3_000, 6_000))
def test_sides_that_said_enough_get_equal_shares(sizes: list[int], budget: int) -> None:
    share = budget // 2
    transcript = [entry(n, WORDS[n % 6], "ab"[n % 2], tokens) for n, tokens in enumerate(sizes)]
    said = [sum(e["tokens"] for e in transcript if e["speaker"] == side) for side in "ab"]
    found = select_evidence(EvidenceIndex(transcript), "carbon", budget=budget, speakers=("a", "b"))
    for side, total in zip("ab", said, strict=True):
        assert _shares(transcript, found)[side] <= share
        if total <= share:
            assert _shares(transcript, found)[side] == total
        elif max(sizes) <= share // 10:
            assert _shares(transcript, found)[side] >= 0.9 * share


def test_long_speeches_are_exchanged_until_the_shares_are_equal() -> None:
    sizes = {"a": [330] * 8 + [480] * 8, "b": [100] * 30}
    transcript = [
        entry(n, "carbon", side, t) for n, (side, t) in enumerate((s, t) for s in sizes for t in sizes[s])
    ]
    chosen = select_evidence(EvidenceIndex(transcript), "carbon", budget=2_000, speakers=("a", "b"))
    shares = _shares(transcript, chosen)
    assert min(shares.values()) >= 0.9 * max(shares.values())


def test_what_a_side_leaves_stays_unused() -> None:
    transcript = [entry(n, "carbon", "a" if n < 3 else "b") for n in range(80)]
    chosen = select_evidence(EvidenceIndex(transcript), "x", budget=2_000, speakers=("a", "b"))
    assert _shares(transcript, chosen) == {"a": 120, "b": 1_000}


def test_a_full_view_prices_no_further_messages() -> None:
    index = talk(["harbour", "carbon", "school"], each=300)
    asked: list[int] = []

    def cost(seq: int) -> int:
        asked.append(seq)
        return 45

    assert len(select_evidence(index, "carbon", budget=900, costs=cost).seqs) == 20
    assert len(asked) < 30


class ByTopic(Embeddings):
    """Embeds a text by whether it is about water."""

    def __init__(self) -> None:
        self.calls = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls += len(texts)
        return [[1.0, 0.1] if "harbour" in text else [0.1, 1.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0, 0.0] if "port" in text else [0.0, 1.0]


@pytest.fixture
def water() -> tuple[EvidenceIndex, ByTopic]:
    model = ByTopic()
    plain = [entry(n, line) for n, line in enumerate(["school"] * 30 + ["harbour"] * 30 + ["market"] * 30)]
    return EvidenceIndex(plain, vectors=MessageVectors(model)), model


def test_embeddings_find_what_shares_no_word(water: tuple[EvidenceIndex, ByTopic]) -> None:
    found = select_evidence(water[0], "the port", budget=800)
    assert all(30 <= seq < 60 for seq in found.seqs)


def test_only_the_open_block_is_embedded_again(water: tuple[EvidenceIndex, ByTopic]) -> None:
    index, model = water
    select_evidence(index, "the port", budget=800)
    first = model.calls
    index.add(entry(90, "market"))
    select_evidence(index, "the port", budget=800)
    assert model.calls <= first + 1


def test_a_message_is_as_near_as_what_is_said_beside_it_unless_that_is_long() -> None:
    def nearness(tokens: int) -> list[bool]:
        vectors = MessageVectors(ByTopic())
        for text in ("school", "school", "harbour", "school", "market"):
            vectors.add(text, tokens)
        return [bool(cosine > 0.9) for cosine in vectors.similarity("the port")]

    assert nearness(WINDOW_TOKENS // 2) == [False, True, True, True, False]
    assert nearness(WINDOW_TOKENS) == [False, False, True, False, False]


def test_a_question_is_embedded_without_the_name_of_whom_it_asks_about() -> None:
    index, asked = EvidenceIndex([entry(1, "The port.", "ada")], names={"ada": "Ada Byron"}), list[str]()

    class Listening(ByTopic):
        def embed_query(self, text: str) -> list[float]:
            asked.append(text)
            return [1.0, 0.0]

    index.vectors = MessageVectors(Listening())
    index.vectors.add("The port.", 40)
    for question in ("What did Ada Byron say of the port?", "Ada Byron?"):
        densities(index, read_question(index, question))
    assert asked == ["What did of the port", "Ada Byron?"]


@given(st.lists(st.integers(1, 150), max_size=20), st.sets(st.integers(0, 20)))
def test_blocks_do_not_depend_on_when_questions_were_asked(sizes: list[int], asked: set[int]) -> None:
    asked_between, asked_once = MessageVectors(ByTopic()), MessageVectors(ByTopic())
    for n, size in enumerate(sizes):
        text = "harbour" if n % 4 == 0 else "school"
        asked_between.add(text, size)
        asked_once.add(text, size)
        if n in asked:
            asked_between.similarity("the port")
    assert asked_between.similarity("the port").tolist() == asked_once.similarity("the port").tolist()
    assert len(asked_once.similarity("the port")) == len(sizes)


@pytest.mark.parametrize(
    ("with_it", "without"),
    [
        (SpanWeights(), SpanWeights(turning=0.0)),
        (SpanWeights(front=0.0, lead=1.0), SpanWeights(front=1.0, lead=0.0)),
    ],
    ids=["it ends where others speak", "who asks leads to it"],
)
def test_an_answer_is_found_by_who_speaks_and_who_asks(with_it: SpanWeights, without: SpanWeights) -> None:
    lines = ["carbon" if n == 9 else f"point {n}" for n in range(30)]
    index = EvidenceIndex(entry(n, line, "b" if 10 <= n < 20 else "a") for n, line in enumerate(lines))
    question = read_question(index, "What of carbon?")

    def held(spans: SpanWeights) -> float:
        density = densities(index, question, ScoreWeights(spans=spans))
        return float(density[10:20].sum() / density.sum())

    assert held(with_it) > 1.005 * held(without)


def test_what_was_said_since_the_last_question_is_found_as_if_it_had_been_there() -> None:
    lines = [f"point {n}" for n in range(40)] + [f"carbon {n}" for n in range(40)]
    grown = EvidenceIndex(entry(n, line) for n, line in enumerate(lines[:50]))
    select_evidence(grown, "carbon", budget=800)
    for n, line in enumerate(lines[50:], start=50):
        grown.add(entry(n, line))
    fresh = EvidenceIndex(entry(n, line) for n, line in enumerate(lines))
    question = read_question(fresh, "carbon")
    assert densities(grown, question).tolist() == densities(fresh, question).tolist()
