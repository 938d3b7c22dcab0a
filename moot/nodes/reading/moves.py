"""What a speaker does with a sentence: takes a side, concedes, takes something back, denies what was said.

Few patterns, in the first person wherever a language has one, each held against labelled excerpts
(`benchmarks/minutes.py`): what is quoted, hypothetical, negated or somebody else's is no move.
"""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from moot.nodes.text.likeness import numbers
from moot.nodes.text.terms import term_set

Side = Literal["for", "against", "conditional"]


class Standpoint(NamedTuple):
    """A side that a sentence takes on the topic."""

    side: Side
    explicit: bool
    """Whether the speaker says in so many words that it is for or against."""


def _any_of(*alternatives: str) -> re.Pattern[str]:
    """Return the pattern of any of these, a line each; in spaced scripts each begins where a word does."""
    lines = [line.strip() for text in alternatives for line in text.splitlines() if line.strip()]
    anywhere = re.compile(r"[^\x00-\x7f]|[\^\[]")
    return re.compile(
        "|".join(line if anywhere.match(line) else rf"\b(?:{line})" for line in lines), re.IGNORECASE
    )


_ADVERBS = (
    r"(?:(?:still|also|therefore|thus|now|strongly|firmly|fully|simply|totally|completely|entirely|all|really"
    r"|generally|very much|personally|certainly|just|even|only|not only|do|would|will|can|could|shall|must"
    r"|have to|continue to|keep|remain|stay)\s+)*"
)
_I = rf"(?:i|we)(?:'m|'d|'ll|'ve| am| are| was)?\s+{_ADVERBS}"
_FOR = _any_of(
    rf"{_I}(?:for|in fav(?:ou)?r of|pro|supporting)\b"
    r"(?! (?:example|instance|now|sure|years|the (?:first|last|moment)))",
    rf"{_I}(?:support|back|fav(?:ou)?r|endorse|welcome|advocate|recommend|vote (?:for|yes)|say yes)\b",
    rf"{_I}(?:maintain the motion|hold on to|stand by|go for|sign)\b",
    r"""
    my (?:answer|vote|verdict|position) (?:is|remains|stays)(?: still| therefore)? (?:yes|for)\b
    so,? yes\b
    i(?:'d| would| will|'ll)? (?:say|vote|sign) yes\b
    (?:i'm|i am) (?:sold|on board|in)\b(?!\s+\w)
    let's do (?:it|this)\b
    i(?:'d| would) (?:just )?do it\b
    i(?:'d| would)? say go for it\b|my gut says yes
    ich bin (?:\w+ )?(?:für|dafür)
    dafür bin ich
    ich (?:unterstütze|befürworte|stimme dafür)
    je (?:suis|reste) (?:\w+ )?(?:pour|favorable)
    je (?:soutiens|défends|maintiens)
    (?:estoy|sigo) a favor
    (?:apoyo|sigo pidiendo|defiendo)\b
    赞成|支持(?!者)|賛成です|賛成します|に賛成|支持します|أؤيد|أنا مع
    """,
)
_AGAINST = _any_of(
    rf"{_I}(?:against|opposed to|opposed|an opponent of)\b",
    rf"{_I}(?:oppose|reject|object to|decline|refuse|vote (?:against|no)|say no|keep my (?:opposition|no))\b",
    rf"{_I}(?:stay with (?:my |the )?no|join [\w']+'s no)\b",
    r"(?:i|we) (?:still )?(?:do not|don't|cannot|can't|won't|will not|would not|wouldn't|could not|couldn't) "
    r"(?:support|back|favou?r|endorse|agree (?:with|to)|accept (?:it|this|that|the (?:plan|proposal|motion))"
    r"(?! as)|vote for|recommend|do it|do this)\b",
    r"""
    my (?:answer|vote|verdict|position) (?:is|remains|stays)(?: still| therefore)? (?:no|against)\b
    so,? no\b
    i(?:'d| would| will|'ll)? (?:say|vote) no\b
    i(?:'d| would) rather not\b
    i(?:'m| am) not (?:sold|in favou?r|for)\b
    count me out\b|not for me\b|my gut says no\b
    (?:i'd|i would|let's|we should) (?:leave|keep) (?:\w+ ){1,4}(?:as (?:it is|is|they are)|alone|unchanged)\b
    makes? me a no\b
    i remain (?:a )?no\b
    ich lehne (?:das|es|ihn|sie) ab|ich lehne [^.]{1,60} ab\b
    ich bin (?:\w+ )?(?:gegen|dagegen)
    dagegen bin ich|bin ich dagegen
    je (?:suis|reste) (?:\w+ )?(?:contre|opposée?)
    je (?:m'oppose|refuse)\b
    (?:estoy|sigo) en contra
    me opongo|rechazo\b
    反对|反對|反対です|反対します|に反対|には反対|أعارض|أنا ضد|أرفض
    """,
)
_LIKES = _any_of(
    r"""
    i(?:'m| am| would be|'d be) (?:fine|happy|okay|ok|comfortable) with\b
    (?:i|we) (?:really )?(?:like|want|need|love)\b(?! to (?:know|hear|see|say|ask|add|point))
    i(?:'d| would) (?:like|love|prefer|rather have|go with)\b(?! to (?:know|hear|see|say|ask|add|point))
    (?:makes sense|works|is fine|sounds good)(?: to| for| by| with) me\b|is the way to go\b|is worth it\b
    """
)
_DISLIKES = _any_of(
    r"i(?:'m| am) (?:not (?:comfortable|happy|okay|keen|convinced|sure)|uncomfortable|unhappy) "
    r"(?:with|on|about|by|of)\b",
    r"""
    (?:i|we) (?:really )?(?:don't|do not|won't|will not) (?:like|want|need|see (?:why|the (?:need|point)))\b
    i(?:'d| would) not (?:want|like)\b|i wouldn't (?:want|like|touch|do|go)\b
    (?:won't|will not|would not|wouldn't) work\b|can't see (?:it|that|this) working
    (?:doesn't|does not|makes? no) (?:make )?sense\b|(?:isn't|is not) worth\b|is a (?:bad idea|mistake)\b
    (?:don't|do not) think (?:\w+ ){1,6}(?:work|help|worth|needed|necessary)\b
    """,
)
_OTHER_SIDE = _any_of(
    r"""
    (?:and|but) (?:i am |i'm )?(?:against|opposed)
    without (?:that|this|it)
    otherwise
    if not
    """
)
_CONDITION = _any_of(
    r"""
    only if|provided(?: that)?|on (?:the )?condition|unless|if and only if
    could (?:support|accept|live with|go for)
    would (?:support|accept|back|sign|vote for)[^.;]{0,80}\bif
    nur wenn|unter der bedingung
    à condition|solo si|siempre que
    条件|ただし|بشرط
    """
)
_HYPOTHETICAL = _any_of(
    r"""
    (?:if|unless|whether|until|suppose|imagine|before i)\b
    (?:wenn|falls|ob|si|cuando)\b
    如果|もし|إذا
    """
)
_DEMAND = _any_of(
    r"""
    (?:should|must|ought to|needs? to|have to|has to|let's|cannot|can't|shouldn't|mustn't)\b
    (?:i'd|i would|i wouldn't|i say|i think|i want|i propose|i suggest|i ask|i urge)\b
    (?:is|are|was|would be|isn't|not|seems) (?:\w+ ){0,3}(?:idea|mistake|move|way|worth|sense|wrong|right)\b
    (?:sollte|soll|muss|doit|faut|debe)\b
    应该|應該|应当|べき|يجب
    """
)
_STATED = re.compile(r"(?:is|are|was|were|do|does|did|has|have|had|will|would|can|could)\b", re.IGNORECASE)
"""How a topic begins that asks what is so, not what should be."""
_NEGATION = _any_of(
    r"""
    (?:not|no|never|none|nobody|nothing|neither|nor|without|hardly|cannot|\w+n't)\b
    (?:nicht|kein\w*|nie|ne|pas|jamais|aucun\w*|nunca|ningun\w*|tampoco)\b
    不|没|未|ない|ません|لا|لم|ليس|لن
    """
)
_POINTING = re.compile(
    r"^\W*(?:(?:on|with|about|to|of|for|in|by) )?(?:it|this|that|them|these|such|das|es|ça|cela|ello|lo"
    r"|the (?:proposal|plan|motion|idea|measure|move|change|ban|bill|tax|law|deal|scheme|project|rule))\b",
    re.IGNORECASE,
)
_CONCESSION = _any_of(
    r"(?:i|we)(?:'ll|'d| will| would| do| must| have to| can| also| gladly| freely| readily)* "
    r"(?:grant|concede|admit|acknowledge|accept that|agree that|take (?:that|the|your) (?:point|correction)"
    r"|give you that)\b(?! (?:nothing|none|no one|you|him|her|them|me)\b)",
    r"(?<!if )(?<!that )(?<!when )(?<!whether )you(?:'re| are) (?:quite |absolutely |partly )?right\b",
    r"(?:he is|she is|he's|she's|is|are|was|were) (?:quite |perfectly |absolutely |partly |entirely )*"
    r"right (?:about|that|on|there|in|to (?:say|point|ask))",
    r"i (?:was (?:wrong|mistaken|misinformed|too quick|too harsh)|overstated|exaggerated|misread|misspoke"
    r"|underestimated|overlooked|hadn't|stand corrected|should have"
    r"|had (?:not|left|missed|brushed|overlooked|forgotten|underestimated))\b",
    r"(?:better|worse|stronger|larger|smaller|more|less) than i "
    r"(?:thought|feared|expected|assumed|had thought|said)\b",
    r"""
    (?:i|we)(?:'ll| will| would)? give (?:you|him|her|them) (?:that|this|the)\b
    ^(?:granted|accepted|admittedly|conceded)\b
    ^(?:okay,? |ok,? |well,? |yeah,? )*true,
    ^(?:okay,? |ok,? |well,? )*(?:sure|yes|yeah|right|of course|certainly|fine),? [^?]*\bbut\b
    (?:fair enough|fair point|point taken|true enough|touché|my mistake|my error|that's on me)\b
    ^(?:\w+,? ){0,2}that(?:'s| is) (?:a )?(?:fair|good|valid)(?: (?:point|worry|concern|objection))?[,.;]
    i (?:can |do )?see that\b[^?]*\bbut\b|it is true that\b
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
_NO_CONCESSION = _any_of(
    r"(?:nothing|no reason|never|not|n't|cannot|refuse to|rather than|before i|asks? (?:me|us) to"
    r"|wants? (?:me|us) to)\s+(?:\w+\s+){0,2}(?:grant|concede|admit|acknowledge|accept|agree)\b",
    r"""
    ^(?:if|unless|suppose|when)\b
    [?？؟]
    (?:nothing|none|no \w+) (?:is|are|was)\b
    """,
)
_POINTS = "point|claim|remark|argument|figure|number|sentence|example|word|charge|objection to"
_SHIFT = _any_of(
    r"i (?:\w+ )?(?:withdraw|retract|give up|abandon|drop) (?:my|that|the|this|it)\b"
    rf"(?! (?:\w+ )?(?:{_POINTS}))",
    r"""
    i(?:'ve| have)? (?:hereby )?chang(?:e|ed) my (?:mind|vote|view|position|answer)\b
    i no longer (?:oppose|support|hold|think|believe|want|ask)\b
    i (?:now|therefore now) (?:support|oppose|think|believe|favou?r|accept the|agree to)\b
    you(?:'ve| have)? (?:convinced|persuaded|won) me\b
    i(?:'m| am) (?:now )?(?:convinced|persuaded)\b
    i(?:'ve| have) come (?:round|around|over)\b
    i move (?:from|to)\b
    i (?:switch|change) sides\b|i take it back\b
    you(?:'ve| have) talked me into\b|i(?:'m| am) coming (?:round|around)\b
    i used to (?:be|think|believe|want)\b[^.]{0,60}\b(?:but|now)\b
    i was (?:against|for|opposed)[^.]{0,60}\bnow\b
    ich (?:ziehe|nehme)\b[^.]{0,60}\bzurück\b|ich habe meine meinung geändert
    je retire\b|j'ai changé d'avis|je me rallie\b
    retiro\b|he cambiado de opinión|me (?:ha|han) convencido
    我改变了|我改變了|改变了(?:看法|主意)|撤回します|考えを改め|意見を変え|أسحب|غيرت رأيي
    """,
)
_NO_SHIFT = _any_of(
    r"""
    (?:not|never|no one|nobody|nothing|hardly|diga nadie|ne|pas|nicht)\b
    \w+n't\b
    (?:if|unless|when|until|would|could|once|was once|before|wenn|si)\b
    [?？؟]
    """
)
_UNCHANGED = _any_of(
    r"my (?:view|position|answer|opinion|vote|verdict|conclusion|recommendation) "
    r"(?:is (?:still )?(?:the same|unchanged)|remains|stays|has not|hasn't|stands)\b",
    r"""
    i (?:stay|stick|remain|stand) (?:with|by|where|to)\b
    dabei bleibt es|je maintiens|sigo (?:pidiendo|pensando)
    立場は[^。]{0,6}同じ
    """,
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
_ASKED_WORDS = 5
"""Words of a question at least: a shorter one only echoes."""
_ADDRESS = _any_of(
    r"""
    (?:you|your|yours|du|dein\w*|sie|ihr\w*|vous|votre|tu|usted|su)\b
    你|您|ですか|でしょうか|ますか|ましたか
    """
)
_OWN = _any_of(r"(?:i|my|ich|je|yo)\b")
_QUOTED = re.compile(
    r"“[^“”]*”|\"[^\"\n]*\"|«[^«»]*»|„[^„“”]*[“”]|「[^「」]*」|『[^『』]*』|(?<!\w)'[^'\n]{3,200}'(?!\w)"
)
_QUESTION = re.compile(r"[?？؟]")

_TOPIC_SHARE = 0.5
"""Share of the topic's terms that a sentence needs to say yes or no to it without saying so."""
_LONGEST = 20
"""Words of such a sentence at most: a longer one says something else besides."""
SHARED = 3
"""Stems that two sentences have in common at least where one contradicts the other."""
_SAME = 0.7, 0.5
"""Share of the shorter and of the longer sentence's terms that both have where one contradicts the other."""


@lru_cache(maxsize=1024)
def unquoted(sentence: str) -> str:
    """Return a sentence with quoted speech blanked, every place kept, its apostrophes plain."""
    return _QUOTED.sub(lambda found: " " * len(found.group()), sentence.replace("’", "'"))


def standpoint(sentence: str, topic: str) -> Standpoint | None:
    """Return the side that a sentence takes on a topic, `None` where it takes none, or none for sure."""
    said = unquoted(sentence)
    if _QUESTION.search(said):
        return None
    yes, no = _FOR.search(said), _AGAINST.search(said)
    explicit = bool(yes or no)
    if not explicit:
        yes, no = _LIKES.search(said), _DISLIKES.search(said)
    found = min((each for each in (yes, no) if each), key=lambda each: each.start(), default=None)
    if found is None:
        return _restated(said, topic)
    if not _on_topic(said[found.end() :], topic) or _HYPOTHETICAL.search(said[: found.start()]):
        return None
    if _CONDITION.search(said):
        return Standpoint("conditional", explicit)
    negated = _NEGATION.search(said[max(0, found.start() - 14) : found.start()])
    if (yes and no) or _OTHER_SIDE.search(said) or (found is yes and negated):
        return None
    return Standpoint("for" if found is yes else "against", explicit)


def _on_topic(about: str, topic: str) -> bool:
    """Return whether what somebody is for or against is what the topic asks."""
    head = re.split(r"[.;:,—–]|\b(?:because|since|but|as|with)\b", about)[0]
    return not term_set(head) or bool(_POINTING.match(head)) or bool(stems(head) & stems(topic))


@lru_cache(maxsize=1024)
def stems(text: str) -> frozenset[str]:
    """Return the beginnings of a text's terms, which inflection leaves alone."""
    return frozenset(term[:4] for term in term_set(text))


def _restated(said: str, topic: str) -> Standpoint | None:
    """Return the side of a sentence that says the topic again, as a demand or a statement."""
    wanted, words = stems(topic), stems(said)
    if len(wanted & words) < max(2, _TOPIC_SHARE * len(wanted)) or len(said.split()) > _LONGEST:
        return None
    if _HYPOTHETICAL.search(said) or not (_DEMAND.search(said) or _STATED.match(topic)):
        return None
    negative = len(_NEGATION.findall(said)) % 2 != len(_NEGATION.findall(topic)) % 2
    return Standpoint("against" if negative else "for", False)


def keeps_position(sentence: str) -> bool:
    """Return whether the speaker says that it stands where it stood."""
    return bool(_UNCHANGED.search(unquoted(sentence)))


def concedes(sentence: str) -> bool:
    """Return whether the speaker grants something to the other side."""
    said = unquoted(sentence)
    return bool(_CONCESSION.search(said)) and not _NO_CONCESSION.search(said)


def shifts(sentence: str) -> bool:
    """Return whether the speaker says that it has changed its own position."""
    said = unquoted(sentence)
    return bool(_SHIFT.search(said)) and not _NO_SHIFT.search(said)


def denies_plainly(sentence: str) -> bool:
    """Return whether a sentence does nothing but deny what was just said."""
    return bool(_DENIAL.search(sentence.replace("’", "'")))


def asks_somebody(sentence: str) -> bool:
    """Return whether a sentence asks somebody present."""
    said = unquoted(sentence)
    long_enough = len(said.split()) >= _ASKED_WORDS or not said.isascii()
    return bool(_ASKED.search(said) and _ADDRESS.search(said)) and long_enough


def contradicts(one: str, other: str) -> int:
    """Return 1 where two sentences say the same but for a negation in the other, -1 in the one, else 0."""
    first, second = unquoted(one), unquoted(other)
    ours, theirs = stems(first), stems(second)
    shared, (short, long) = len(ours & theirs), sorted((len(ours), len(theirs)))
    if shared < SHARED or shared < _SAME[0] * short or shared < _SAME[1] * long:
        return 0
    both = f"{first} {second}"
    if _HYPOTHETICAL.search(both) or _QUESTION.search(both) or _OWN.search(both):
        return 0
    if numbers(first) != numbers(second):
        return 0
    return len(_NEGATION.findall(second)) % 2 - len(_NEGATION.findall(first)) % 2
