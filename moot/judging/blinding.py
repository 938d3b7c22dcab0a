"""Blinding for judges, which replaces debaters' names in prompts by labels such as "Debater A".

A judge that reads names may judge by the names. `Blinding` replaces each mention of a debater with a neutral
label, and replaces labels in the judge's reply with the debaters. Message ids never change.

A word is a mention only if it names a debater. A display name that is also an everyday word ("Target",
"Will") needs a sign of a person: a speaker line, a list with another debater, or an address. So does a name
that the debate also uses for a thing or a place ("die Sonne", "in Paris"). Without such a use, a capitalised
name counts as a mention, even at the start of a sentence. Quotations of the background stay as they are.
Blind a text only once: a second pass would change the labels.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from string import ascii_uppercase
from typing import Any, Literal

from moot.claims.claim_extraction import quoted_spans
from moot.text.terms import STOP_WORDS, TITLES, UNSPACED, word_table
from moot.text.tokens import encoding

SOMEONE = "a debater"
"""Text that replaces a name that several debaters share. No single label fits such a name."""

_KINDS = ("Debater", "Speaker", "Participant", "Contributor", "Discussant")
_WORD = rf"[^\W{UNSPACED}]"
_MESSAGE_ID = rf"(?<!{_WORD})m\d{{6,}}(?!{_WORD})"
_SPACE = r"[^\S\r\n]+"
_LETTERS = "[A-Z]{1,2}"
_LETTERED = [*ascii_uppercase, *map("".join, product(ascii_uppercase, repeat=2))]
_ARTICLES = frozenset({"a", "an", "the"})
_PRONOUN = re.compile(
    r"\b(?:(?P<subject>s?he)|(?P<possessive>his(?=\s+\w)|her(?=\s+(?!(?:and|as|at|for|in|on|or|that|to)\b)[\w“\"]))"
    r"|(?P<object>him|her)|(?P<own>his|hers)|(?P<self>himself|herself))\b",
    re.IGNORECASE,
)
_NEUTRAL_PRONOUNS = {
    "subject": "he or she",
    "possessive": "his or her",
    "object": "him or her",
    "own": "his or hers",
    "self": "himself or herself",
}
"""Gender-neutral pronouns that replace a debater's pronouns, keyed by grammatical form."""
_SENTENCE = re.compile(r"[.!?\s]*[^.!?]+[.!?]*\s*|[.!?\s]+")
_CITED = re.compile(r"\**:?\s*\[m\d{6,}\]")
_BEFORE_SENTENCE = frozenset('.!?:;•–—*_#>|"“(«-')
_LOOKBACK_CHARS = 200
_ADDRESSED = re.compile(
    r",\s+(?:you|your|(?:do|did|are|were|can|could|would|will|have|how|why|what|where|when)\s+(?:\w+\s+){0,2}you)\b",
    re.IGNORECASE,
)
_SAYS = re.compile(
    r"\s+(?:says|said|argues|argued|claims|claimed|concedes|conceded|asks|asked|replies|replied|proposes|proposed"
    r"|objects|objected|thinks|believes|agrees|agreed|disagrees|disagreed|insists|insisted|writes|wrote)\b"
)
_NEXT_NAME = re.compile(r"[^\S\r\n]([A-Z][^\W\d_]+)")
_NAME_BEFORE = re.compile(r"(?<![^\W\d_])([A-Z][^\W\d_]+)[^\S\r\n]$")
_DETERMINER = re.compile(
    r"\b(?:a|an|the|this|that|our|your|their|his|her|its|no|any|each|every|in)\s$", re.IGNORECASE
)
_ARTICLE_OR_PLACE = re.compile(
    r"\b(?:an?|the|in|der|die|das|de[mns]|eine?[mnrs]?|im|les?|la|une?|el|los|las)\s$", re.IGNORECASE
)
"""Pattern that matches an article or a preposition, such as "the" or "in", before a name. It covers several
languages. After such a word, a name such as "Wolf" or "Paris" stands for a thing or a place."""
_THING_OR_PLACE = re.compile(
    r"\b(?:in|im|der|die|das|de[mns]|eine?[mnrs]?|les?|la|une?|el|los|las)\s$", re.IGNORECASE
)
"""Pattern for words before the name of a thing or a place, such as "in". It covers several languages. English
articles are missing, because "the Mara plan" names a debater."""
_POSSESSIVE = re.compile(r"['’]s\b")
_JOINED = re.compile(r"\s*+(?:,\s*+(?:and|or|und|et|y)?|&|/|(?<=\s)(?:and|or|und|et|y))\s*+(?:the\s++)?")
_CALENDAR = frozenset({"april", "august", "friday", "june", "march", "may", "monday", "sunday"})
_EVERYDAY_NAMES = word_table("everyday_names")
_LONG_WORD = 4
"""Minimum length of names for which word frequency is checked. It shows whether a name is an everyday word.
Shorter names are everyday words only if a word list has them."""
_ID_FIELDS = frozenset({"winner", "debater", "debaters", "speaker", "targets", "order", "by", "about"})


Evidence = Literal["form", "position", "sign"]
"""Kind of evidence that a name in a text means a debater. The evidence is the name itself, a position in the
sentence that everyday words do not have, or a sign of a person next to the name."""


@lru_cache(maxsize=8)
def _quoted_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return where each quotation in a text starts and ends, and cache the result."""
    return tuple(quoted_spans(text))


def _starts_sentence(text: str, index: int) -> bool:
    """Return True if the character at `index` begins a sentence, line or quotation."""
    before = text[max(0, index - _LOOKBACK_CHARS) : index]
    stripped = before.rstrip()
    return not stripped or "\n" in before[len(stripped) :] or stripped[-1] in _BEFORE_SENTENCE


@dataclass(frozen=True)
class _Form:
    """Name that may mention a debater. `needs` is the evidence that makes a match count."""

    pattern: str
    debater: str | None
    needs: Evidence = "form"
    one_word: bool = False


@dataclass(frozen=True)
class Blinding:
    """Neutral labels that hide the debaters' names from a judge.

    The labels can be turned back into ids and names. `make_blinding` makes it.

    Attributes:
        labels: labels by debater id, in the order of the labels.
        names: display names by debater id.
        forms: ways to mention a debater, the longest first.
        kind: the word before the letter of a label.
        background: texts of the user, normalised. Quotations of them stay as they are.
        bare: letters of labels that mean a debater even alone, because no text of the debate uses them.
    """

    labels: Mapping[str, str]
    names: Mapping[str, str]
    forms: tuple[_Form, ...]
    kind: str
    background: str = ""
    bare: frozenset[str] = frozenset()

    def blind_text(self, text: str) -> str:
        """Replace debaters' names in a text with labels, and make pronouns near the labels neutral."""
        blinded = self._repetition.sub(r"\1", self._mention.sub(self._blind, text))
        parts: list[str] = []
        for line in blinded.splitlines(keepends=True):
            # Pronouns may refer to a debater from the sentence with the name to the last one with a pronoun.
            is_about_debater = False
            for sentence in _SENTENCE.findall(line):
                has_label = any(label in sentence for label in self.labels.values())
                is_about_debater = has_label or (is_about_debater and bool(_PRONOUN.search(sentence)))
                parts.append(_PRONOUN.sub(_neutral_pronoun, sentence) if is_about_debater else sentence)
        return "".join(parts)

    def unblind_text(self, text: str) -> str:
        """Replace labels with display names, also in lists such as "Debaters A and B"."""
        return self._label.sub(self._unblind, text)

    def mentions(self, text: str) -> list[str]:
        """Return the ids of the debaters that a text with names mentions, with repetitions."""
        matches = [match for match in self._mention.finditer(text) if self._is_mention(match)]
        forms = (self._form(match) for match in matches)
        return [form.debater for form in forms if form and form.debater]

    def label_of(self, debater: str) -> str:
        """Return a debater's label. Other speakers, such as a moderator, stay as they are."""
        return self.labels.get(debater, debater)

    def debater_of(self, reference: str) -> str | None:
        """Return the debater's id for a label, letter, id or name, or `None`."""
        return self._means.get(_key(reference)) or self._means.get(_key(re.sub(r"[-_]", " ", reference)))

    def in_order(self, order: Sequence[str]) -> "Blinding":
        """Return a copy whose first label belongs to the first debater in `order`."""
        return replace(self, labels=dict(zip(order, self.labels.values(), strict=True)))

    def unblind_data(self, value: Any, field: str = "") -> Any:
        """Replace labels by ids in keys and fields such as `winner`, and by names in prose."""
        if isinstance(value, str):
            return (self.debater_of(value) or value) if field in _ID_FIELDS else self.unblind_text(value)
        if isinstance(value, Mapping):
            return {self._key_of(key): self.unblind_data(item, str(key)) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.unblind_data(item, field) for item in value]
        return value

    @cached_property
    def _mention(self) -> re.Pattern[str]:
        lookalike = rf"(?<!{_WORD})(?i:{self.kind}s?)\s+{_LETTERS}(?!{_WORD})"
        forms = "|".join(f"(?P<f{index}>{form.pattern})" for index, form in enumerate(self.forms))
        title = rf"(?<!{_WORD})(?:{'|'.join(sorted(title.capitalize() for title in TITLES))})\.?{_SPACE}"
        # A title before a label would identify the debater. Titles may also be part of a name.
        mention = f"|(?:(?<!{_WORD})[Tt]he{_SPACE})?(?:{title}){{0,4}}?(?:{forms})" if forms else ""
        return re.compile(f"{_MESSAGE_ID}{mention}|(?P<lookalike>{lookalike})")

    @cached_property
    def _repetition(self) -> re.Pattern[str]:
        """Match "Debater A Debater A", as of a first and a last name that became labels."""
        labels = "|".join(map(re.escape, self.labels.values())) or "(?!)"
        return re.compile(rf"(?<!{_WORD})({labels})(?:{_SPACE}\1(?!{_WORD}))+")

    @cached_property
    def _label(self) -> re.Pattern[str]:
        more = rf"(?:(?:\s*[,/&]\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+){_LETTERS}(?!{_WORD}))+"
        several = rf"(?i:{self.kind}s)\s+(?P<list>{_LETTERS}{more})"
        one = rf"(?i:{self.kind})\s+(?P<letters>{_LETTERS})(?!{_WORD})"
        alone = rf"|(?P<alone>{'|'.join(sorted(self.bare))})(?![\w.-])" if self.bare else ""
        return re.compile(rf"(?<!{_WORD})(?<!-)(?:{several}|{one}{alone})")

    @cached_property
    def _by_letters(self) -> dict[str, str]:
        return {label.rpartition(" ")[2]: debater for debater, label in self.labels.items()}

    @cached_property
    def _means(self) -> dict[str, str]:
        names = Counter(_key(name) for name in self.names.values())
        debater_ids = {_key(name): debater for debater, name in self.names.items() if names[_key(name)] == 1}
        debater_ids |= {_key(debater): debater for debater in self.labels}
        # The judge knows only labels, so "B" means Debater B even if another debater has the id "b".
        debater_ids |= {_key(letters): debater for letters, debater in self._by_letters.items()}
        return debater_ids | {_key(label): debater for debater, label in self.labels.items()}

    def _form(self, match: re.Match[str]) -> _Form | None:
        group = match.lastgroup or ""
        return self.forms[int(group[1:])] if group[1:].isdecimal() else None

    def _is_mention(self, match: re.Match[str]) -> bool:
        """Return True if the matched name refers to a debater."""
        form, text = self._form(match), match.string
        if form is None or self._is_quoted_background(text, *match.span()):
            return False
        start, end = match.span(match.lastgroup or 0)
        if form.one_word and self._is_part_of_other_name(text, start, end):
            return False
        before = text[max(0, start - _LOOKBACK_CHARS) : start]
        is_person = re.search(r"\bin\s$", before, re.IGNORECASE) and _POSSESSIVE.match(text, end)
        if form.one_word and _ARTICLE_OR_PLACE.search(before) and not (is_person or _CITED.match(text, end)):
            return False
        if form.needs == "form" or text[max(0, start - 1) : start] == "@" or _CITED.match(text, end):
            return True
        if _ADDRESSED.match(text, end) or self._closes_address(text, start, end):
            return True
        if self._is_in_list(text, start, end):
            return True
        if form.needs == "sign":
            return False
        if _SAYS.match(text, end) or _POSSESSIVE.match(text, end):
            return True
        if _starts_sentence(text, start):
            return not re.match(r"\s+\w", text[end : end + _LOOKBACK_CHARS])
        return not _DETERMINER.search(before)

    def _is_quoted_background(self, text: str, start: int, end: int) -> bool:
        if not self.background:
            return False
        quotes = (text[a:b] for a, b in _quoted_spans(text) if a <= start and end <= b)
        return any(_plain(quote) in self.background for quote in quotes)

    def _is_part_of_other_name(self, text: str, start: int, end: int) -> bool:
        """Return True if neighbouring words show that the matched name is part of another name."""
        next_name, previous_name = (
            _NEXT_NAME.match(text, end),
            _NAME_BEFORE.search(text[max(0, start - _LOOKBACK_CHARS) : start]),
        )
        if (
            next_name
            and _key(next_name[1]) not in self._name_words
            and next_name[1].casefold() not in STOP_WORDS
        ):
            return True
        if previous_name is None or _key(previous_name[1]) in self._name_words | TITLES:
            return False
        return previous_name[1].casefold() not in STOP_WORDS

    @staticmethod
    def _closes_address(text: str, start: int, end: int) -> bool:
        """Return True if a sentence ends by addressing a name, as "As you said, Ann" does."""
        sentence = re.split(r"[.!?\n]", text[max(0, start - _LOOKBACK_CHARS) : start])[-1]
        said_you = re.search(r"\b(?:you|thanks)\b", sentence, re.IGNORECASE)
        return bool(said_you and sentence.endswith(", ") and text[end : end + 1] in set(".!?"))

    def _is_in_list(self, text: str, start: int, end: int) -> bool:
        """Return True if a name is listed next to a clear mention of a debater.

        In "Ann and Will", "Ann" can only be a debater, so "Will" is one too. The name is at
        `text[start:end]`.
        """
        after = _JOINED.match(text, end)
        if after and (other := self._sure_mention.match(text, after.end())):
            return bool(other[0])
        line = text[max(0, start - _LOOKBACK_CHARS) : start].rpartition("\n")[2]
        return any(_JOINED.fullmatch(line, match.end()) for match in self._sure_mention.finditer(line))

    @cached_property
    def _sure_mention(self) -> re.Pattern[str]:
        sure = "|".join(form.pattern for form in self.forms if form.needs == "form") or "(?!)"
        return re.compile(sure)

    @cached_property
    def _name_words(self) -> frozenset[str]:
        return frozenset(_key(word.strip(".,")) for name in self.names.values() for word in name.split())

    def _blind(self, match: re.Match[str]) -> str:
        form = self._form(match)
        if form:
            if not self._is_mention(match):
                return match[0]
            return self.labels[form.debater] if form.debater else SOMEONE
        # Words of the debate that look like a label must not be replaced by a name.
        return re.sub(r"\s+", "-", match[0]) if match.lastgroup else match[0]

    def _name_of(self, letters: str, otherwise: str) -> str:
        return self.names[self._by_letters[letters]] if letters in self._by_letters else otherwise

    def _unblind(self, match: re.Match[str]) -> str:
        if letters := match["letters"] or (self.bare and match["alone"]):
            return self._name_of(letters, match[0])
        letter_pattern = rf"(?<!{_WORD}){_LETTERS}(?!{_WORD})"
        return re.sub(
            letter_pattern,
            lambda letter_match: self._name_of(letter_match[0], letter_match[0]),
            match["list"],
        )

    def _key_of(self, key: object) -> object:
        label = self._label.fullmatch(key) if isinstance(key, str) else None
        return self._by_letters.get(label["letters"] or "", key) if label else key


def make_blinding(
    debaters: Mapping[str, str], texts: Iterable[str] = (), background: Iterable[str] = ()
) -> Blinding:
    """Give each debater a neutral label, in the given order.

    `Blinding.in_order` gives the labels in another order.

    Args:
        debaters: display names by debater id. An empty name stands for the id.
        texts: the texts to blind. A one-word name that they also have in lower case, or as a thing or a
            place, counts as an everyday word. A letter that they use, as in "region A", means a debater only
            in a whole label.
        background: the user's texts. Quotations of them stay as they are.

    Raises:
        ValueError: there are more than 702 debaters.
    """
    names = {debater: name.strip() or debater for debater, name in debaters.items()}
    if len(names) > len(_LETTERED):
        raise ValueError(
            f"the names of at most {len(_LETTERED)} debaters can be hidden, but there are {len(names)} "
            "debaters"
        )
    texts, background = list(texts), list(background)
    kind = _free_kind([*names, *names.values()], texts)
    used_letters = {
        each for text in (*names, *names.values(), *texts) for each in re.findall(rf"\b{_LETTERS}\b", text)
    }
    letters = _LETTERED[: len(names)]
    options = {each for text in background for each in re.findall(rf"\b{_LETTERS}\b", text)} | used_letters
    free_letters = [each for each in _LETTERED if each not in options]
    # “A” and “I” are words. Other used letters, such as options, would be confused with labels.
    if options.intersection(letters) - {"A", "I"} and len(free_letters) >= len(names):
        letters = free_letters[: len(names)]
    return Blinding(
        labels={debater: f"{kind} {letter}" for debater, letter in zip(names, letters, strict=True)},
        names=names,
        forms=_forms(names, [*texts, *background]),
        kind=kind,
        background="\n".join(map(_plain, background)),
        # “A” and “I” are words. Other letters that the debate does not use stand for a debater.
        bare=frozenset(letters) - used_letters - {"A", "I"} if texts else frozenset(),
    )


def is_everyday(word: str) -> bool:
    """Return True if a debater's name, such as "Mark", is also an everyday word.

    A table has common given names and roles. For other words, the encoding shows whether they are more
    frequent in lower case, because it numbers its tokens by frequency.
    """
    plain = word.casefold()
    if plain in _EVERYDAY_NAMES | STOP_WORDS:
        return True
    if len(plain) >= _LONG_WORD and _is_mostly_lower(plain):
        return True
    singular = plain.removesuffix("s")  # "Summers" is everyday as "summer" is; "Lucas" is not
    return plain != singular and len(singular) > _LONG_WORD and _is_mostly_lower(singular)


@lru_cache(maxsize=1024)
def _is_mostly_lower(word: str) -> bool:
    tokenizer = encoding(_ENGLISH)
    lower_rank = capitalised_rank = tokenizer.max_token_value
    with suppress(KeyError):
        lower_rank = tokenizer.encode_single_token(f" {word}")
        capitalised_rank = tokenizer.encode_single_token(f" {word.capitalize()}")
    return lower_rank < capitalised_rank


_ENGLISH = "cl100k_base"
"""Name of the tokenizer encoding that shows whether a name is also an everyday English word. Its tokens are
mostly English words. In `o200k_base`, many names are frequent words of other languages."""


def _free_kind(names: Sequence[str], texts: Sequence[str]) -> str:
    for kind in _KINDS:
        in_a_name = any(kind.casefold() in name.casefold() for name in names)
        label = re.compile(rf"(?i:\b{kind}s?)\s+{_LETTERS}\b")
        if not in_a_name and not any(map(label.search, texts)):
            return kind
    return _KINDS[0]


def _neutral_pronoun(pronoun: re.Match[str]) -> str:
    neutral = _NEUTRAL_PRONOUNS[pronoun.lastgroup or ""]
    return neutral.capitalize() if pronoun[0][0].isupper() else neutral


def _key(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def _plain(text: str) -> str:
    """Convert a text to lower case with single spaces and no surrounding quotation marks."""
    return " ".join(text.strip('“”"„«»「」『』> ').casefold().split())


def _forms(names: Mapping[str, str], texts: Sequence[str]) -> tuple[_Form, ...]:
    """Return the names to search for in texts to find debaters, longest first.

    The names include variants. A full name shared by several debaters names none of them in particular. A
    shared part of a name is not a form.
    """
    full = _owners((form, debater) for debater, name in names.items() for form in (debater, name))
    parts = _owners((part, debater) for debater, name in names.items() for part in _parts(name))
    spelled_forms: list[tuple[str, _Form]] = []
    for key, (spellings, owners) in full.items():
        debater = min(owners) if len(owners) == 1 else None
        one_word = len(re.split(r"[\s_-]", key)) == 1
        everyday = one_word and len(key) > 1 and _is_everyday_here(key, texts)
        needs: Evidence = "sign" if everyday else "form"
        # The id "mark" of "Mark Weber" only counts as written, because its part "Mark" is a form of its own.
        is_part = key in parts and parts[key][1] == owners and spellings == [key]
        # "a finance lead" does not name a debater, unlike "Finance Lead".
        ordinary = any(_is_everyday_here(word, texts) for word in re.findall(r"[^\W\d_]+", key))
        as_written = is_part or (not one_word and ordinary)
        pattern = "|".join(map(_exact if as_written else _full_pattern, spellings))
        spelled_forms.append((spellings[0], _Form(pattern, debater, needs, one_word and key.isascii())))
    for key, ((part, *_), owners) in parts.items():
        if len(owners) == 1 and (key not in full or full[key] == ([key], owners)):
            needs = "position" if is_everyday(key) else "form"
            if key in _CALENDAR or _has_other_meaning(key, texts):
                needs = "sign"
            spelled_forms.append((part, _Form(_exact(part), min(owners), needs, one_word=key.isascii())))
    spelled_forms.sort(key=lambda row: (-len(row[0]), row[0]))
    return tuple(form for _, form in spelled_forms)


def _is_everyday_here(word: str, texts: Sequence[str]) -> bool:
    return is_everyday(word) or _has_other_meaning(word, texts)


def _has_other_meaning(word: str, texts: Sequence[str]) -> bool:
    """Return True if texts use a name for something else: a word, a thing or a place."""
    spellings = "|".join(map(re.escape, (word, word.capitalize())))
    pattern = re.compile(_with_boundaries(f"(?:{spellings})", word))

    def is_other(match: re.Match[str]) -> bool:
        before = match.string[max(0, match.start() - _LOOKBACK_CHARS) : match.start()]
        is_thing = _THING_OR_PLACE.search(before) and not _POSSESSIVE.match(match.string, match.end())
        return match[0] == word or bool(is_thing)

    return word.isascii() and any(is_other(match) for text in texts for match in pattern.finditer(text))


def _owners(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[list[str], set[str]]]:
    """Return the spellings and debaters of each normalised name, without case and spacing."""
    owners: dict[str, tuple[list[str], set[str]]] = {}
    for form, debater in pairs:
        spellings, debaters = owners.setdefault(_key(form), ([], set()))
        debaters.add(debater)
        if form not in spellings:
            spellings.append(form)
    return owners


def _parts(name: str) -> list[str]:
    """Return the first and the last word of a name.

    For "Dr Ann B. Lee", they are "Ann" and "Lee". Titles, articles and words in lower case are left out. A
    name of one word has no parts.
    """
    words = [word.strip(".,()\"'“”") for word in name.split()]
    words = [word for word in words if word.casefold() not in TITLES | _ARTICLES]
    ends = {words[0], words[-1]} if len(words) > 1 or (words and len(name.split()) > 1) else set()
    return sorted(word for word in ends if len(word) > 1 and word[0].isupper())


def _full_pattern(form: str) -> str:
    """Return a regular expression for a debater's full name or id.

    A name of several words matches in any case, one word as written or capitalised. A single letter matches
    only as `@x` or before a colon or a possessive.
    """
    if re.search(r"[\s_-]", form):
        return _exact(form, any_case=True)
    if len(form) > 1 or not re.fullmatch(_WORD, form):
        return "|".join(map(_exact, dict.fromkeys((form, form.capitalize() if form.islower() else form))))
    letter = f"(?i:{re.escape(form)})"
    return rf"(?<=@){letter}(?!{_WORD})|(?<!{_WORD}){letter}(?=\**:|['’]s(?!{_WORD}))"


def _exact(form: str, *, any_case: bool = False) -> str:
    """Match a name as written or in any case. Word boundaries stay outside of the case-insensitive group."""
    normal = (form, unicodedata.normalize("NFC", form), unicodedata.normalize("NFD", form))
    spellings = dict.fromkeys(r"\s+".join(map(re.escape, spelling.split())) for spelling in normal)
    cased = (f"(?i:{spelling})" if any_case else spelling for spelling in spellings)
    return "|".join(_with_boundaries(spelling, form) for spelling in cased)


def _with_boundaries(pattern: str, form: str) -> str:
    """Add word boundaries to a pattern, unless its script has no spaces."""
    before = rf"(?<!{_WORD})(?<![^\W\d_][-./@])" if re.match(_WORD, form) else ""
    after = rf"(?!{_WORD})(?![-/@]\w|\.[a-z])" if re.match(_WORD, form[-1]) else ""
    return f"{before}{pattern}{after}"
