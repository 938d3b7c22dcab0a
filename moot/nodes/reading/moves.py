"""What a speaker does with a sentence: concedes, takes something back, asks, denies; how much that matters.

Few patterns, in the first person wherever a language has one, each held against labelled excerpts
(`benchmarks/minutes.py`): what is quoted, hypothetical, negated or somebody else's is no move.
"""

import re
from functools import lru_cache

from moot.nodes.reading.exhibits import shows_evidence
from moot.nodes.reading.phrases import (
    CLAUSE_END,
    HYPOTHETICAL,
    QUESTION,
    Phrases,
    around,
    blank_quotes,
    negations,
    stems,
)
from moot.nodes.text.sentences import split_sentences
from moot.nodes.text.terms import numbers, terms
from moot.state.entries import Entry, kind_of

_CONCESSION = Phrases(
    r"(?:i|we)(?:'ll|'d| will| would| do| must| have to| can| also| gladly| freely| readily)* "
    r"(?:grant|concede|admit|acknowledge|accept that|agree that|take (?:that|the|your) (?:point|correction)"
    r"|give you that)\b(?! (?:nothing|none|no one|you|him|her|them|me)\b)",
    r"(?<!if )(?<!that )(?<!when )(?<!whether )you(?:'re| are) (?:quite |absolutely |partly )?right\b",
    r"(?:he is|she is|he's|she's|is|are|was|were) (?:quite |perfectly |absolutely |partly |entirely )*"
    r"right (?:about|that|to (?:say|point|ask))",
    r"i (?:was (?:wrong|mistaken|misinformed|too quick|too harsh)|overstated|exaggerated|misread|misspoke"
    r"|underestimated|overlooked|(?<!if i )hadn't|stand corrected|should have"
    r"|had (?:not|left|missed|brushed|overlooked|forgotten|underestimated))\b",
    r"(?:better|worse|stronger|larger|smaller|more|less) than i "
    r"(?:thought|feared|expected|assumed|had thought|said)\b",
    r"""
    (?:i|we)(?:'ll| will| would|'d)?(?: even| gladly)? give (?:you|him|her|them) (?:that|this|the|[A-Z])
    ^(?:granted|accepted|admittedly|conceded)\b
    ^(?:(?:and|well|no|ok|okay|yeah|yes|all right|alright),? )*(?:fine|fair|correct|true|granted)[,:;.] ?\w
    ^that(?:'s| is| was) (?:true|right|correct|fair)\b
    (?:fair (?:enough|point|hit|cop|criticism|correction)|point taken|true enough|touché|well taken)\b
    my (?:bad|mistake|error|fault)\b|(?:that's|that was) (?:on me|me)\b
    scratch (?:that|my)\b|so much for my\b|one (?:worry|objection|doubt) (?:less|fewer)\b|is common ground\b
    no (?:quarrel|argument|excuse)s? (?:with|from|there|for)\b|got no (?:quarrel|argument)\b
    i (?:can't|cannot|won't|will not|couldn't) (?:argue|pretend|explain|quarrel|fight you)\b
    i(?:'d| had) (?:forgotten|missed|overlooked|misread|assumed|been (?:assuming|counting|treating))\b
    i (?:forgot|missed|overlooked|misread|misjudged|misremembered|retract|withdraw)\b
    i (?:didn't|did not|hadn't|had not) (?:know|think|thought|known|reali[sz]e|consider|considered|notice)\b
    (?<!if )(?<!think )(?:i|we) (?:should not|shouldn't|should)(?:'ve| have)\b
    talked me out of\b
    (?:he|she|you|they|\w+'s|\w+) (?:is|are|was|were) (?:quite )?correct (?:that|about|on)\b
    i (?:must|have to|will|do) (?:\w+ )?(?:own|admit|say honestly|allow)\b
    (?:i|that) corrects? (?:myself|me)\b
    (?:has|have|had|makes?|made) a (?:fair |good |valid |strong |real )?point\b
    i (?:do not|don't|cannot|can't|will not|won't|would not) (?:deny|dispute|contest|doubt|quarrel with)\b
    (?:was|is|were) too strong\b
    (?:has|have|had) the better of\b
    (?:you have me|you've got me|you got me)\b
    condition (?:that )?i (?:set|put|named)[^.]{0,30} (?:is|has been) met\b
    i find [^.]{1,60} (?:sound|convincing|persuasive|fair|reasonable)\b
    i (?:withdraw|drop|take back|give up|retract) (?:that|the|my|it|this)\b
    ich (?:räume (?:\w+ )?ein|gebe (?:\w+ )?zu|gestehe)\b
    da haben sie recht|ich will nicht behaupten|bestreite (?:ich )?nicht
    vous avez raison|j'admets|je (?:le )?concède|je reconnais|je ne nie pas
    tienes? razón|(?:lo )?reconozco|admito|no (?:le |lo )?voy a negar|no niego
    我承认|您说得对|你说得对|说得对|我收回|言うとおり|おっしゃるとおり|認めます|その通りです
    أعترف|أقر بأن|أنت محق|معك حق
    """,
)
_NO_CONCESSION = Phrases(
    r"(?:nothing|no reason|never|not|n't|cannot|refuse to|rather than|before i|asks? (?:me|us) to"
    r"|wants? (?:me|us) to)\s+(?:\w+\s+){0,2}(?:grant|concede|admit|acknowledge|accept|agree)\b",
    r"""
    ^(?:if|unless|suppose|when)\b
    [?？؟]
    (?:nothing|none|no \w+) (?:is|are|was)\b
    no (?:retiro|admito|reconozco|concedo)\b
    """,
)
_POINTS = "point|claim|remark|argument|figure|number|sentence|example|word|charge|complaint|objection to"
_SHIFT = Phrases(
    r"i (?:\w+ )?(?:withdraw|retract|give up|abandon|drop) (?:my|that|the|this|it)\b"
    rf"(?! (?:\w+ )?(?:{_POINTS}))",
    r"""
    i(?:'ve| have)? (?:hereby )?chang(?:e|ed) my (?:mind|vote|view|position|answer)\b
    i (?:now|therefore now) (?:support|oppose|think|believe|favou?r|accept the|agree to)\b
    you(?:'ve| have)? (?:convinced|persuaded|won) me\b
    i(?:'m| am) (?:now )?(?:convinced|persuaded)\b
    i(?:'ve| have) come (?:round|around|over)\b
    i (?:switch|change) sides\b|i take it back\b
    i(?:'ll| will)? come (?:over|round|around) to\b
    i used to (?:be|think|believe|want)\b[^.]{0,60}\b(?:but|now)\b
    i (?:was|had been|came in|went in|started|began)\b[^.?!]{1,80}\b(?:and|but|yet),? (?:now|today)\b
    i (?:was|came)\b[^.?!]{1,80}\b(?:and|but|yet),? i (?:find that|no longer)\b
    (?:scratch|scrap|strike) my (?:no|yes|vote|comment|objection|proposal|motion)\b
    i (?:came|was) (?:\w+ ){0,3}(?:ready|prepared|determined) to\b[^.?!]{1,90}\b(?:and|but)\b
    i was (?:leaning|inclined|minded)\b[^.?!]{1,80}\bbut\b
    ich (?:ziehe|nehme)\b[^.]{0,60}\bzurück\b|ich habe meine meinung geändert
    je retire\b|j'ai changé d'avis|je me rallie\b
    retiro\b|he cambiado de opinión|me (?:ha|han) convencido
    我改变了|我改變了|改变了(?:看法|主意)|撤回します|考えを改め|意見を変え|أسحب|غيرت رأيي
    """,
)
_GIVEN_UP = Phrases(
    r"""
    (?<!if )(?<!when )i(?:'m| am|'d| would| do)? no longer\b(?! (?:know|remember|see|hear|work|live|have)\b)
    i(?:'m not| am not|'d not| don't| do not| wouldn't| would not| won't) [^.;?!]{1,60}\bany ?more\b
    """
)
"""Shifts that are themselves a negation, which makes none of the others."""
_NO_SHIFT = Phrases(
    r"""
    (?:not?|never|nobody|nothing|hardly|diga nadie|ne|pas|nicht)\b
    \w+n't\b
    (?:if|unless|when|until|would|could|once|was once|before|wenn|si)\b
    [?？؟]
    """
)
_DENIAL = re.compile(
    r"^\W*(?:no[,.]?\s+)?(?:(?:that(?:'s| is| was)|this is|it(?:'s| is)) "
    r"(?:simply |just |absolutely |totally |completely |plainly |flatly )*"
    r"(?:not (?:true|so|right|correct|the case)|untrue|false|wrong|nonsense|a lie)"
    r"|(?:none|not one word) of (?:that|this|it) is true)\b|^\W*(?:not true|wrong|false|nonsense)\W*$"
    r"|^\W*das (?:stimmt nicht|ist (?:falsch|nicht wahr))|^\W*c'est faux"
    r"|^\W*(?:eso )?no es (?:cierto|verdad)|^\W*(?:eso )?es falso",
    re.IGNORECASE,
)
_ASKED = re.compile(r"[?？؟][\"'”’»)）\s]*$|か。$")
_TAG = re.compile(
    r",\s*(?:no|right|eh|okay|ok|yes|(?:is|are|was|were|do|does|did|has|have|can|could|will|would)(?:n't)? "
    r"(?:it|he|she|they|you|we|i|that|there))\?\W*$",
    re.IGNORECASE,
)
"""What makes a question of a statement at its end: nobody waits for an answer."""
_SUGGESTED = re.compile(
    r"^\W*(?:so |and |but |then |also )*(?:shall|can|could|should|may|might) (?:we|i)\b", re.IGNORECASE
)
"""How a suggestion or a request for the floor begins, which asks for no answer."""
_ASKED_WORDS = 5
"""Words of a question at least: a shorter one only echoes. Of 24 labelled ones that are found, 6 lose two."""
_ADDRESS = Phrases(
    r"""
    (?:you|your|yours|du|dein\w*|sie|ihr\w*|vous|votre|tu|usted|su)\b
    你|您|ですか|でしょうか|ますか|ましたか
    """
)
_OWN = Phrases(r"(?:i|my|ich|je|yo)\b")
READ = 4096
"""Sentences kept as they were read: for importance as a message is born, for the minutes as it leaves."""
# On the labelled excerpts of `benchmarks/minutes.py` .7 and .5 find nothing, .6 and .4 one dispute that is
# there, .5 and .3 two that are there and three that are not; one to five stems find the same.
SHARED = 3
"""Stems that two sentences have in common at least where one contradicts the other."""
_SAME = 0.6, 0.4
"""Share of the shorter and of the longer sentence's terms that both have where one contradicts the other."""

_SAYS_SOMETHING = 8
"""Different terms of a message that is more than a courtesy."""
_READ = 2_000
"""Sentences of a message that are looked at."""


@lru_cache(READ)
def concedes(sentence: str) -> bool:
    """Return whether the speaker grants something to the other side."""
    said = blank_quotes(sentence)
    return bool(_CONCESSION.pattern.search(said)) and not _NO_CONCESSION.pattern.search(said)


@lru_cache(READ)
def shifts(sentence: str) -> bool:
    """Return whether the speaker says that it has changed its own position."""
    said = blank_quotes(sentence)
    if QUESTION.search(said):
        return False
    # What stands behind a declared change, or in another clause, takes nothing of it back.
    places = (
        (around(CLAUSE_END, said, each.start())[0], each.end()) for each in _SHIFT.pattern.finditer(said)
    )
    declared = any(not _NO_SHIFT.pattern.search(said[start:end]) for start, end in places)
    return declared or bool(_GIVEN_UP.pattern.search(said))


def denies_plainly(sentence: str) -> bool:
    """Return whether a sentence does nothing but deny what was just said."""
    return bool(_DENIAL.search(sentence.replace("’", "'")))


def asks(sentence: str) -> bool:
    """Return whether a sentence is a question that waits for an answer."""
    said = blank_quotes(sentence)
    long_enough = len(said.split()) >= _ASKED_WORDS or not said.isascii()
    waits = _ASKED.search(said) and not _TAG.search(said) and not _SUGGESTED.search(said)
    return bool(waits) and long_enough


def asks_somebody(sentence: str) -> bool:
    """Return whether a sentence asks somebody present."""
    return asks(sentence) and bool(_ADDRESS.pattern.search(blank_quotes(sentence)))


def contradicts(one: str, other: str) -> int:
    """Return 1 where two sentences say the same but for a negation in the other, -1 in the one, else 0."""
    first, second = blank_quotes(one), blank_quotes(other)
    ours, theirs = stems(first), stems(second)
    shared, (short, long) = len(ours & theirs), sorted((len(ours), len(theirs)))
    if shared < SHARED or shared < _SAME[0] * short or shared < _SAME[1] * long:
        return 0
    both = f"{first} {second}"
    if HYPOTHETICAL.pattern.search(both) or QUESTION.search(both) or _OWN.pattern.search(both):
        return 0
    if numbers(first) != numbers(second):
        return 0
    return negations(second) % 2 - negations(first) % 2


def importance(entry: Entry) -> int:
    """Return how much an entry matters, 1–10; what its kind is rated at least apart.

    A courtesy is 1, a concession at least 7 and a change of mind at least 8; figures and sources count up to
    two, a question to somebody one.
    """
    kind = kind_of(entry)
    if kind.mechanical:
        return kind.importance
    said = [each.text for each in split_sentences(entry["content"])[:_READ] if each.kind != "quote"]
    # Most say something in their first words: the others are not stemmed before they must be.
    score = 1 + any(len(set(terms(entry["content"][:chars]))) >= _SAYS_SOMETHING for chars in (200, 2_000))
    score += min(2, sum(shows_evidence(text) is not None for text in said)) + any(map(asks_somebody, said))
    floor = kind.importance
    if conceded := sum(map(concedes, said)):
        floor = max(floor, 7 + (conceded > 1))
    if any(map(shifts, said)):
        floor = max(floor, 8 + bool(conceded))
    return max(1, min(10, max(score, floor)))
