"""Search terms of a text, and search that ignores case."""

import pytest
from hypothesis import given, strategies as st

from moot.text.plain_text import positions_ignoring_case
from moot.text.terms import MAX_WORD, jaccard_similarity, question_terms, split_sentences, terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("discussions", "Discussed"),
        ("Universities", "university"),
        ("ＡＢＣ", "abc"),
        ("L_C_D_", "LCD"),
        ("U.K.", "uk"),
    ],
)
def test_forms_of_one_word_are_one_term(one: str, other: str) -> None:
    assert terms(one) == terms(other)


def test_stop_words_and_clitics_are_dropped() -> None:
    assert terms("It's not what they've been, isn't it?") == []


def test_scripts_without_spaces_give_character_bigrams() -> None:
    assert terms("核能发电 is 安全") == ["核能", "能发", "发电", "安全"]
    assert terms("การเมือง")
    assert terms("火") == ["火"]


def test_word_is_split_where_its_script_changes() -> None:
    assert terms("GPT模型") == ["gpt", "模型"]


def test_vowel_signs_do_not_break_words() -> None:
    assert terms("मुद्दा क्या") == ["मुद्दा", "क्या"]


def test_words_of_other_alphabets_are_not_stemmed() -> None:
    assert terms("Ядерная энергия") == ["ядерная", "энергия"]


def test_question_terms_leave_out_words_of_asking() -> None:
    assert question_terms("Please summarize the discussion about batteries") == ["batteri"]


def test_question_of_asking_words_alone_keeps_them() -> None:
    assert question_terms("Discuss opinions") == ["discuss", "opinion"]


@given(st.text())
def test_terms_are_not_empty_and_have_a_maximum_length(text: str) -> None:
    assert all(0 < len(term) <= MAX_WORD + 2 for term in terms(text))


def test_changing_returned_terms_leaves_later_results_unchanged() -> None:
    terms("Trams are cheap").append("buses")
    assert terms("Trams are cheap") == ["tram", "cheap"]


def test_unspaced_scripts_are_compared_by_their_bigrams() -> None:
    assert (
        jaccard_similarity("核电是安全的", "核电是很安全的")
        > jaccard_similarity("核电是安全的", "税应该提高")
        == 0
    )


@given(st.text(st.characters(max_codepoint=127)))
def test_fast_path_for_ascii_gives_the_same_terms(text: str) -> None:
    assert [*terms(text), "é"] == terms(f"{text} é")


@given(st.text(st.sampled_from("aAsSßŉİı ")), st.text(st.sampled_from("asAß"), min_size=1))
def test_case_insensitive_position_refers_to_the_original_text(text: str, word: str) -> None:
    position = positions_ignoring_case(text, [word])[0]
    assert (position >= 0) == (word.casefold() in text.casefold())
    if position >= 0:
        assert word.casefold() in text[position:].casefold()
        assert word.casefold() not in text[:position].casefold()


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Trams are\nquiet.", ["Trams are\nquiet."]),
        ("Trams are\n\nquiet.", ["Trams are", "quiet."]),
        ("- Trams are\nquiet.\n- Buses\n\nare not.", ["- Trams are\nquiet.", "- Buses", "are not."]),
    ],
    ids=["wrapped line", "empty line", "list items"],
)
def test_a_line_continues_the_block_above_unless_an_empty_line_is_between(
    text: str, sentences: list[str]
) -> None:
    assert [sentence.text.strip() for sentence in split_sentences(text)] == sentences
