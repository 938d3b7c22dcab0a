"""Retrieval by meaning with the static word vectors of `moot[semantic]`."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks.paraphrases import DATA, TARGET, found, main
from moot.calls.effects import LocalJob
from moot.config.boundary import Permissions
from moot.config.config_files import make_config
from moot.memory.cross_debate_memory import MemoryIndexes, embedding_job
from moot.retrieval import EvidenceIndex, MemoryItem, MemoryItems, MessageVectors, rank, retrieve
from moot.retrieval.indexes import Indexes, embeddings_of
from moot.retrieval.static_vectors import TOKENIZER, VECTORS, StaticVectors, static_vectors
from moot.state.entries import make_entry
from moot.state.errors import ConfigError
from moot.text.terms import terms
from moot.text.tokens import counter

needs_vectors = pytest.mark.skipif(find_spec("wordllama") is None, reason="needs moot[semantic]")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> StaticVectors:
    monkeypatch.setattr("moot.retrieval.static_vectors.PACKAGE", "wordllama")
    vectors = static_vectors()
    assert vectors is not None
    return vectors


def _embeddings(name: str | None) -> object:
    return embeddings_of(Permissions(make_config({"memory": {"retrieval": {"embeddings": name}}})))


def test_questions_and_answers_of_the_paraphrases_share_no_term() -> None:
    rows = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    asked = [row for row in rows if "question" in row]
    assert (len(rows), len(asked)) == (200, 60)
    assert not [row for row in asked if {*terms(row["text"])} & {*terms(row["question"])}]


@needs_vectors
def test_most_paraphrases_are_found_by_meaning(model: StaticVectors) -> None:
    by_words, by_meaning = found().values(), found(model).values()
    assert next(iter(by_meaning)) >= TARGET > 3 * next(iter(by_words))
    assert all(more > 25 > fewer for more, fewer in zip(by_meaning, by_words, strict=True))


def test_benchmark_without_vectors_names_the_extra(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    assert "install moot[semantic]" in capsys.readouterr().out


@needs_vectors
def test_installed_vectors_are_the_default_embedding_model(model: StaticVectors) -> None:
    assert _embeddings(None) is model
    assert _embeddings("words") is None


def test_words_are_compared_without_the_extra() -> None:
    assert _embeddings(None) is None


@needs_vectors
def test_texts_with_similar_meanings_have_similar_vectors(model: StaticVectors) -> None:
    items = MemoryItems([MemoryItem("a", "The doctor arrived."), MemoryItem("b", "It rains.")], model)
    assert [each.item.id for each in rank(items, "Has a physician come?")] == ["a"]
    assert model.embed_documents([""]) == [[0.0] * 256]


@needs_vectors
def test_memory_items_are_retrieved_by_meaning(model: StaticVectors) -> None:
    texts = ["A flood ruined the cellar.", "The choir sings on Friday.", "Bread costs too much."]
    items = MemoryItems([MemoryItem(str(n), text, 9) for n, text in enumerate(texts)], model)
    index = EvidenceIndex(
        [make_entry(0, "ada", "speech", "We met.", tokens=4)], vectors=MessageVectors(model)
    )
    assert retrieve(index, "high water damage", budget=99, items=items, before=0).item_ids == ("0",)
    assert not retrieve(index, "high water damage", budget=99, items=items, before=0, semantic=False).item_ids


@needs_vectors
def test_one_sentence_of_a_long_message_is_found(model: StaticVectors) -> None:
    filler = "The committee met on Monday and read the minutes of the last session. " * 12
    lines = [filler] * 30
    lines[17] = filler + "The disk ran out of space. " + filler
    vectors = MessageVectors(model)
    for line in lines:
        vectors.add(line, 200)
    assert vectors.similarity("Was the storage full?").messages.argmax() == 17


@needs_vectors
def test_static_vectors_need_no_job_before_a_turn(model: StaticVectors) -> None:
    def job(embeddings: Any) -> LocalJob | None:
        memories = MemoryIndexes(Indexes(), "d", embeddings)
        state: Any = {"full_transcript": [None] * 9}
        return embedding_job(state, memories, {}, [], counter(), everything=True)

    assert job(model) is None
    assert job(object()) is not None


@needs_vectors
def test_unreadable_vectors_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in (VECTORS, TOKENIZER):
        (tmp_path / "broken_vectors" / file).parent.mkdir(parents=True)
        (tmp_path / "broken_vectors" / file).write_text("?", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("moot.retrieval.static_vectors.PACKAGE", "broken_vectors")
    with pytest.raises(ConfigError, match=r"embeddings: words"):
        static_vectors()
