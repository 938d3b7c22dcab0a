from hypothesis import given, strategies as st

from moot.retrieval import EvidenceIndex, MemoryItem, MemoryItems, rank, retrieve
from moot.retrieval.memories import MAX_MEMORY_CANDIDATES, MAX_PER_TERM
from moot.state.entries import Entry, make_entry

WORDS = ["tax", "carbon", "price", "nuclear", "wind", "cost"]


def entry(seq: int, content: str, importance: int = 3, tokens: int = 20) -> Entry:
    return make_entry(seq, "ada", "speech", content, tokens=tokens, importance=importance)


def transcript(*lines: str | tuple[str, int]) -> EvidenceIndex:
    pairs = [(line, 3) if isinstance(line, str) else line for line in lines]
    return EvidenceIndex(entry(n, text, importance) for n, (text, importance) in enumerate(pairs))


def item(name: str, text: str, importance: int = 5, seq: int = 0) -> MemoryItem:
    return MemoryItem(name, text, 20, importance, seq)


rows = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join), st.integers(1, 10), st.integers(0, 300)
    ),
    max_size=30,
)


@given(
    rows,
    st.lists(st.sampled_from(WORDS)).map(" ".join),
    st.integers(0, 600),
    st.integers(0, 30),
    st.integers(0, 10),
)
def test_retrieval_respects_its_token_count_and_position_limits(
    lines: list[tuple[str, int, int]], query: str, budget: int, before: int, top: int
) -> None:
    index = EvidenceIndex(
        entry(n, text, importance, tokens) for n, (text, importance, tokens) in enumerate(lines)
    )
    result = retrieve(index, query, budget=budget, before=before, top=top, neighbours=0)
    assert result.tokens == sum(max(1, lines[seq][2]) for seq in result.seqs) <= budget
    assert len(result.seqs) + len(result.item_ids) <= top
    assert all(seq < before for seq in result.seqs)
    assert retrieve(index, query, budget=budget, before=before, top=top, neighbours=0) == result


def test_a_match_is_retrieved_with_its_neighbours() -> None:
    index = transcript("wind", "cost", "carbon tax", "price", "wind", "wind")
    assert retrieve(index, "carbon tax", budget=100).seqs == (1, 2, 3)


def test_neighbours_do_not_displace_matches() -> None:
    index = transcript("carbon tax", "wind", "wind", "wind", "carbon tax")
    assert retrieve(index, "carbon tax", budget=40).seqs == (0, 4)


def test_an_important_entry_is_retrieved_without_a_match() -> None:
    index = transcript("wind", ("we concede the cost", 8), "wind", "nuclear")
    assert retrieve(index, "nuclear", budget=100, neighbours=0).seqs == (1, 3)


def test_one_shared_word_with_a_long_query_is_not_a_match() -> None:
    index = transcript("price", *["wind"] * 20)
    query = "zoning lottery subsidy treaty harbour referendum aquifer price"
    assert retrieve(index, query, budget=100).seqs == ()


def test_the_newest_of_equal_matches_comes_first() -> None:
    index = transcript("carbon", *["wind"] * 40, "carbon")
    assert retrieve(index, "carbon", budget=20).seqs == (41,)


def test_excluded_and_recent_entries_are_not_retrieved() -> None:
    index = transcript("carbon", "wind", "carbon", "wind", "carbon")
    assert retrieve(index, "carbon", budget=100, before=4, exclude={2}, neighbours=0).seqs == (0,)


def test_the_query_outweighs_the_answered_message() -> None:
    index = transcript("carbon", "wind", "nuclear", "wind")
    assert retrieve(index, "carbon", answering="nuclear", budget=20).seqs == (0,)


def test_memory_items_compete_with_entries() -> None:
    index = transcript("wind", "carbon tax", "wind")
    items = MemoryItems([item("r1", "they agree on the carbon tax", 9, 1), item("r2", "nothing of it")])
    result = retrieve(index, "carbon tax", budget=40, items=items, neighbours=0)
    assert (result.seqs, result.item_ids) == ((1,), ("r1",))


def test_a_newer_memory_item_replaces_the_one_with_its_id() -> None:
    items = MemoryItems([item("p", "ada wants a carbon tax", 8), item("p", "ada gave up on nuclear", 8)])
    result = retrieve(EvidenceIndex(), "carbon tax", budget=100, items=items)
    assert (result.item_ids, result.omitted) == (("p",), 0)


def test_the_number_of_candidates_does_not_grow_with_the_transcript() -> None:
    index = EvidenceIndex(entry(n, " ".join(WORDS), 8) for n in range(2_000))
    result = retrieve(index, " ".join(WORDS), budget=60, neighbours=0)
    assert result.omitted + len(result.seqs) <= MAX_MEMORY_CANDIDATES + MAX_PER_TERM


def test_an_empty_index_gives_an_empty_result() -> None:
    result = retrieve(EvidenceIndex(), "carbon", budget=100)
    assert (result.seqs, result.item_ids, result.tokens, result.omitted) == ((), (), 0, 0)


def test_rank_returns_every_matching_text_by_relevance() -> None:
    texts = ["wind", *["carbon price"] * 200, "carbon tax"]
    result = rank(MemoryItems([item(str(n), text) for n, text in enumerate(texts)]), "the carbon tax")
    assert [each.item.id for each in result] == ["201", *map(str, range(1, 201))]
    assert all(0 < each.relevance <= 1 for each in result)


def test_rare_words_of_the_answered_message_do_not_displace_shared_words() -> None:
    rare = " ".join(f"rare{n}" for n in range(40))
    index = transcript(
        "Trams at night cost tax money.", "Trees grow.", f"Night trams cost tax money: {rare}."
    )
    answering = f"Night trams cost tax money: {rare}."
    result = retrieve(index, "night", budget=100, answering=answering, exclude={2}, neighbours=0)
    assert result.seqs == (0,)


def test_relevance_does_not_depend_on_excluded_messages() -> None:
    lines = ["Carbon tax.", "Wind is free."]
    alone = retrieve(transcript(*lines), "carbon pier", budget=100, neighbours=0)
    index = transcript(*lines, "The pier.")
    assert retrieve(index, "carbon pier", budget=100, exclude={2}, neighbours=0).seqs == alone.seqs
