"""Names blinded for judges: debaters become "Debater A", "Debater B", … and come back out of the verdict.

A judge who reads names judges names. `Blinding` replaces every mention of a debater (id, display name, a
first or last name alone where it can mean only one of them) by a neutral label, and turns labels in the
judge's answer back. Message ids are never touched. Blind a text once: a second pass would take its labels for
words of the debate.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from string import ascii_uppercase
from typing import Any

from moot.nodes.text.terms import TITLES, UNSPACED

SOMEONE = "a debater"
"""What stands for a name that several debaters share: nobody can say which of them is meant."""

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
_BOTH = {
    "subject": "he or she",
    "possessive": "his or her",
    "object": "him or her",
    "own": "his or hers",
    "self": "himself or herself",
}
"""What stands for a pronoun in a sentence that names a debater: it told as much as a first name would."""
_SENTENCE = re.compile(r"[.!?\s]*[^.!?]+[.!?]*\s*|[.!?\s]+")
_ID_FIELDS = frozenset({"winner", "debater", "debaters", "speaker", "targets", "order", "by", "about"})


@dataclass(frozen=True)
class _Form:
    """One way to mention a debater: a pattern, and whom it means (`None`: several could be meant)."""

    pattern: str
    debater: str | None


@dataclass(frozen=True)
class Blinding:
    """A reversible mapping of debaters to labels; make it with `make_blinding`.

    Attributes:
        labels: id to label, in order of the labels.
        names: id to display name.
        forms: how debaters are mentioned, longest first.
        kind: the word before the letter.
    """

    labels: Mapping[str, str]
    names: Mapping[str, str]
    forms: tuple[_Form, ...]
    kind: str

    def blind_text(self, text: str) -> str:
        """Return `text` with a label for every mention of a debater, and pronouns near it neutral."""
        blinded = self._repetition.sub(r"\1", self._mention.sub(self._blind, text))
        parts: list[str] = []
        for line in blinded.splitlines(keepends=True):
            # Pronouns are a debater's from the sentence of its line that names it, on while there are any.
            about = False
            for sentence in _SENTENCE.findall(line):
                named = any(label in sentence for label in self.labels.values())
                about = named or (about and bool(_PRONOUN.search(sentence)))
                parts.append(_PRONOUN.sub(_neutral_pronoun, sentence) if about else sentence)
        return "".join(parts)

    def unblind_text(self, text: str) -> str:
        """Return `text` with labels replaced by display names; also "Debaters A and B"."""
        return self._label.sub(self._unblind, text)

    def mentions(self, text: str) -> list[str]:
        """Return the ids of the debaters that an unblinded `text` mentions, in order, with repetitions."""
        found = (self._form(match) for match in self._mention.finditer(text))
        return [form.debater for form in found if form and form.debater]

    def label_of(self, debater: str) -> str:
        """Return the label of a debater's id; anything else (a moderator, the floor) as it is."""
        return self.labels.get(debater, debater)

    def debater_of(self, said: str) -> str | None:
        """Return the id that a judge means by a label, a letter, an id or a display name; `None` if none."""
        return self._means.get(_key(said)) or self._means.get(_key(re.sub(r"[-_]", " ", said)))

    def in_order(self, order: Sequence[str]) -> Blinding:
        """Return the same with its labels given out in the order of `order`, ids of debaters."""
        return replace(self, labels=dict(zip(order, self.labels.values(), strict=True)))

    def unblind_data(self, value: Any, field: str = "") -> Any:
        """Return JSON data (a judge's answer) unblinded.

        Labels become ids in the fields that name debaters (`winner`, `debater`, `order`, …) and in keys, and
        display names in prose.
        """
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
        forms = "|".join(f"(?P<f{at}>{form.pattern})" for at, form in enumerate(self.forms))
        title = rf"(?<!{_WORD})(?:{'|'.join(sorted(title.capitalize() for title in TITLES))})\.?{_SPACE}"
        # A label after a title would tell who is meant. As few as possible: some are part of an own name.
        mention = f"|(?:(?<!{_WORD})[Tt]he{_SPACE})?(?:{title}){{0,4}}?(?:{forms})" if forms else ""
        return re.compile(f"{_MESSAGE_ID}{mention}|(?P<lookalike>{lookalike})")

    @cached_property
    def _repetition(self) -> re.Pattern[str]:
        """One debater's label several times in a row: a first and a last name were a mention each."""
        labels = "|".join(map(re.escape, self.labels.values())) or "(?!)"
        return re.compile(rf"(?<!{_WORD})({labels})(?:{_SPACE}\1(?!{_WORD}))+")

    @cached_property
    def _label(self) -> re.Pattern[str]:
        more = rf"(?:(?:\s*[,/&]\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+){_LETTERS}(?!{_WORD}))+"
        several = rf"(?i:{self.kind}s)\s+(?P<list>{_LETTERS}{more})"
        one = rf"(?i:{self.kind})\s+(?P<letters>{_LETTERS})(?!{_WORD})"
        return re.compile(rf"(?<!{_WORD})(?:{several}|{one})")

    @cached_property
    def _by_letters(self) -> dict[str, str]:
        return {label.rpartition(" ")[2]: debater for debater, label in self.labels.items()}

    @cached_property
    def _means(self) -> dict[str, str]:
        names = Counter(_key(name) for name in self.names.values())
        known = {_key(name): debater for debater, name in self.names.items() if names[_key(name)] == 1}
        known |= {_key(debater): debater for debater in self.labels}
        # The judge saw labels alone: "B" is Debater B, even where somebody else's id is "b".
        known |= {_key(letters): debater for letters, debater in self._by_letters.items()}
        return known | {_key(label): debater for debater, label in self.labels.items()}

    def _form(self, found: re.Match[str]) -> _Form | None:
        group = found.lastgroup or ""
        return self.forms[int(group[1:])] if group[1:].isdecimal() else None

    def _blind(self, found: re.Match[str]) -> str:
        form = self._form(found)
        if form:
            return self.labels[form.debater] if form.debater else SOMEONE
        # Words of the debate that happen to look like a label must not come back as somebody's name.
        return re.sub(r"\s+", "-", found[0]) if found.lastgroup else found[0]

    def _name_of(self, letters: str, otherwise: str) -> str:
        return self.names[self._by_letters[letters]] if letters in self._by_letters else otherwise

    def _unblind(self, found: re.Match[str]) -> str:
        if found["letters"]:
            return self._name_of(found["letters"], found[0])
        each = rf"(?<!{_WORD}){_LETTERS}(?!{_WORD})"
        return re.sub(each, lambda one: self._name_of(one[0], one[0]), found["list"])

    def _key_of(self, key: object) -> object:
        label = self._label.fullmatch(key) if isinstance(key, str) else None
        return self._by_letters.get(label["letters"] or "", key) if label else key


def make_blinding(debaters: Mapping[str, str], texts: Iterable[str] = ()) -> Blinding:
    """Give each debater a label, in the order in which they are given; `in_order` gives another.

    Args:
        debaters: who takes part, id to display name; an empty name is the id.
        texts: what is to be blinded. A part of a name that also occurs there in lower case ("Security" of
            "Security Expert") is an ordinary word, not a mention; a label's word or letter that occurs there
            ("region A") is avoided.

    Raises:
        ValueError: there are more than 702 debaters.
    """
    names = {debater: name.strip() or debater for debater, name in debaters.items()}
    if len(names) > len(_LETTERED):
        raise ValueError(f"blinding has labels for {len(_LETTERED)} debaters, not for {len(names)}")
    texts = list(texts)
    kind = _free_kind([*names, *names.values()], texts)
    taken = {
        each for text in (*names, *names.values(), *texts) for each in re.findall(rf"\b{_LETTERS}\b", text)
    }
    free = [letter for letter in _LETTERED if letter not in taken]
    letters = (free if len(free) >= len(names) else _LETTERED)[: len(names)]
    return Blinding(
        labels={debater: f"{kind} {letter}" for debater, letter in zip(names, letters, strict=True)},
        names=names,
        forms=_forms(names, texts),
        kind=kind,
    )


def _free_kind(names: Sequence[str], texts: Sequence[str]) -> str:
    for kind in _KINDS:
        in_a_name = any(kind.casefold() in name.casefold() for name in names)
        label = re.compile(rf"(?i:\b{kind}s?)\s+{_LETTERS}\b")
        if not in_a_name and not any(map(label.search, texts)):
            return kind
    return _KINDS[0]


def _neutral_pronoun(pronoun: re.Match[str]) -> str:
    both = _BOTH[pronoun.lastgroup or ""]
    return both.capitalize() if pronoun[0][0].isupper() else both


def _key(said: str) -> str:
    return " ".join(unicodedata.normalize("NFC", said).casefold().split())


def _forms(names: Mapping[str, str], texts: Sequence[str]) -> tuple[_Form, ...]:
    """Every way to mention a debater; forms that several share mean nobody, unless they are full names."""
    full = _owners((form, debater) for debater, name in names.items() for form in (debater, name))
    taken = {_key(form) for form in full}
    written = [(form, owners, _full_pattern(form)) for form, owners in full.items()]
    parts = _owners((part, debater) for debater, name in names.items() for part in _parts(name))
    for part, owners in parts.items():
        word = re.compile(_with_boundaries(re.escape(part.lower()), part))
        if len(owners) == 1 and _key(part) not in taken and not any(map(word.search, texts)):
            written.append((part, owners, _exact(part)))
    written.sort(key=lambda row: (-len(row[0]), row[0]))
    return tuple(_Form(pattern, min(owners) if len(owners) == 1 else None) for _, owners, pattern in written)


def _owners(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Forms (as first written) to the debaters they can mean; forms that differ in case are one."""
    spelling: dict[str, str] = {}
    owners: dict[str, set[str]] = {}
    for form, debater in pairs:
        owners.setdefault(spelling.setdefault(_key(form), form), set()).add(debater)
    return owners


def _parts(name: str) -> list[str]:
    """The first and the last name within a longer one, where capitalised; without titles and articles."""
    words = [word.strip(".,()\"'“”") for word in name.split()]
    words = [word for word in words if word.casefold() not in TITLES | _ARTICLES]
    ends = {words[0], words[-1]} if len(words) > 1 or (words and len(name.split()) > 1) else set()
    return sorted(word for word in ends if len(word) > 1 and word[0].isupper())


def _full_pattern(form: str) -> str:
    """Any case; a single letter, though, is a mention only as `@x` or before a colon or a possessive."""
    if len(form) > 1 or not re.fullmatch(_WORD, form):
        return _exact(form, any_case=True)
    letter = f"(?i:{re.escape(form)})"
    return rf"(?<=@){letter}(?!{_WORD})|(?<!{_WORD}){letter}(?=\**:|['’]s(?!{_WORD}))"


def _exact(form: str, *, any_case: bool = False) -> str:
    """The form as written, or in any case; the boundaries stay outside of that, where they compile fast."""
    normal = (form, unicodedata.normalize("NFC", form), unicodedata.normalize("NFD", form))
    spellings = dict.fromkeys(r"\s+".join(map(re.escape, spelling.split())) for spelling in normal)
    cased = (f"(?i:{spelling})" if any_case else spelling for spelling in spellings)
    return "|".join(_with_boundaries(spelling, form) for spelling in cased)


def _with_boundaries(pattern: str, form: str) -> str:
    """`pattern` where no letter of a spaced script touches it; unspaced scripts have no such boundary."""
    before = rf"(?<!{_WORD})" if re.match(_WORD, form) else ""
    after = rf"(?!{_WORD})" if re.match(_WORD, form[-1]) else ""
    return f"{before}{pattern}{after}"
