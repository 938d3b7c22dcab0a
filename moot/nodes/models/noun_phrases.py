"""The noun phrases of an English topic, only those that are certain: what is left out harms no sentence."""

import re
from functools import lru_cache

from moot.nodes.text.plain import word_set

_KINDS = {
    "determiner": "a an the our my your its their this that these those every each",
    "modal": "should must can could would will shall may might do does did",
    "pronoun": "we i you they it he she us me them him her",
    "quantifier": "more fewer less all some any no most many much",
    "link": "of for in on with by from over without about at under against and or but than versus vs if when "
    "while per as between because before after is are was were not to what which who how why where whether "
    "worth better worse good bad right wrong first only also ever still so such just very too",
    "verb": "be become adopt allow abolish ban begin build buy choose create decide define get give go grow "
    "have has hire improve introduce invest join keep let make merge pay permit prefer prevent protect "
    "provide publish put raise reduce regulate remove replace require restrict rewrite sell send serve spend "
    "take teach treat use write",
}
_KIND = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_ENGLISH = word_set("the should would must could our and with which what are for")
"""Words that show, on a line, that it is English: in the other languages of this alphabet none is common."""
_TOKEN = re.compile(r"[A-Za-z][\w'’-]*|[^\sA-Za-z]+")
_WITH_RESULT = frozenset({"make", "keep"})
"""Verbs that an object and then its state follow: "make buses free"."""
TOPIC_CHARS = 2_000
MOST_WORDS, MOST = 3, 8


@lru_cache(maxsize=64)
def noun_phrases(topic: str) -> tuple[str, ...]:
    """Return the noun phrases of a topic, with their articles, in order; none where it is not in English.

    A run of words between function words is one, unless a verb may hide in it.
    """
    tokens = _TOKEN.findall(topic[:TOPIC_CHARS])
    if not topic.isascii() or not _ENGLISH & {token.lower() for token in tokens}:
        return ()
    phrases: dict[str, None] = {}
    run: list[str] = []
    article, before, subject = "", "start", False
    for token in (*tokens, "."):
        word = token.lower()
        kind = _KIND.get(word, "noun" if token[0].isalpha() else "end")
        if kind == "noun":
            run.append(token)
            continue
        if run:
            sure = not (subject and kind != "verb") and (article or before not in ("pronoun", "to", "start"))
            if before in _WITH_RESULT and kind == "end" and len(run) > 1:
                run.pop()
            if sure and len(run) <= MOST_WORDS:
                phrases[" ".join(filter(None, (article, *run)))] = None
            subject = False
        run = []
        article = token.lower() if kind == "determiner" else ""
        subject = kind == "modal" or (subject and kind in ("determiner", "quantifier"))
        if kind != "determiner":
            before = word if word in _WITH_RESULT or word == "to" else kind
    return tuple(phrases)[:MOST]
