"""The name that a text means, out of several known names."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping

MAX_NAMED_CHARS = 200
"""Maximum length of a text that is searched for a name, in characters. A longer text is prose about several
people, and a name in it need not be the answer."""
_WORD = re.compile(r"[^\W_]+")
_DENIAL = re.compile(
    r"\b(?:not|no|nor|never|neither|none|nobody|except|but|than|nicht|kein\w*|weder|außer|als|pas|ni|non)\b|n['’]t\b",
    re.IGNORECASE,
)
"""Words with which a sentence can mean somebody else than the one name in it. They only make the reader find
no name, and never another one."""


def meant_name(text: str, names: Mapping[str, Iterable[str]]) -> str:
    """Return the key of the name that a text means, or `""` if it means none or more than one.

    Case, markup, punctuation and the kind of separator between words do not count. The text may be a name, a
    part of one name alone, or a short sentence with one name in it, such as `The winner is Debater A.` A name
    that two keys share means neither.
    """
    own_forms = {key: {folded(name) for name in (key, *others)} - {""} for key, others in names.items()}
    keys_by_form = Counter(form for phrases in own_forms.values() for form in phrases)
    forms = {key: {each for each in own_forms[key] if keys_by_form[each] == 1} for key in names}
    exact = {key for key, others in names.items() if text.strip() in (key, *others)}
    if exact:
        return exact.pop() if len(exact) == 1 else ""
    plain = folded(text)
    words = set(plain.split())
    if not words or len(text) > MAX_NAMED_CHARS:
        return ""
    if equal := [key for key, phrases in forms.items() if plain in phrases]:
        return equal[0] if len(equal) == 1 else ""
    if parts_of := [
        key for key, phrases in forms.items() if any(words <= {*form.split()} for form in phrases)
    ]:
        return parts_of[0] if len(parts_of) == 1 else ""
    if _DENIAL.search(text):
        return ""
    mentioned = {
        key for key, phrases in forms.items() if any(f" {form} " in f" {plain} " for form in phrases)
    }
    # A lone "a" is an article, so in a sentence only capitals count as parts of other names.
    capitals = {word.casefold() for word in _WORD.findall(text) if word[0].isupper()}
    parts = {key for key in forms if own_parts(key, forms) & capitals}
    return mentioned.pop() if len(mentioned) == 1 and parts <= mentioned else ""


def own_parts(key: str, forms: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the words that only the names of one key have, such as `a` for Debater A."""
    others = {
        word for other, phrases in forms.items() if other != key for form in phrases for word in form.split()
    }
    return {word for form in forms[key] for word in form.split()} - others


def folded(text: str) -> str:
    """Return the words of a text in lower case, separated by spaces."""
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))
