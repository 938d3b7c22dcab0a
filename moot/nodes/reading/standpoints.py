"""Which side a sentence takes on a topic: said in so many words, or as the topic said again.

Held against labelled excerpts (`benchmarks/minutes.py`): what is quoted, hypothetical or asked is no side.
"""

import re
from typing import Literal, NamedTuple

from moot.nodes.reading.phrases import HYPOTHETICAL, NEGATION, QUESTION, any_of, stems, unquoted
from moot.nodes.text.terms import term_set

Side = Literal["for", "against", "conditional"]


class Standpoint(NamedTuple):
    """A side that a sentence takes on the topic."""

    side: Side
    explicit: bool
    """Whether the speaker says in so many words that it is for or against."""


_ADVERBS = (
    r"(?:(?:still|also|therefore|thus|now|strongly|firmly|fully|simply|totally|completely|entirely|all|really"
    r"|generally|very much|personally|certainly|just|even|only|not only|do|would|will|can|could|shall|must"
    r"|have to|continue to|keep|remain|stay)\s+)*"
)
_I = rf"(?:i|we)(?:'m|'d|'ll|'ve| am| are| was)?\s+{_ADVERBS}"
_FOR = any_of(
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
_AGAINST = any_of(
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
_LIKES = any_of(
    r"""
    i(?:'m| am| would be|'d be) (?:fine|happy|okay|ok|comfortable) with\b
    (?:i|we) (?:really )?(?:like|want|need|love)\b(?! to (?:know|hear|see|say|ask|add|point))
    i(?:'d| would) (?:like|love|prefer|rather have|go with)\b(?! to (?:know|hear|see|say|ask|add|point))
    (?:makes sense|works|is fine|sounds good)(?: to| for| by| with) me\b|is the way to go\b|is worth it\b
    """
)
_DISLIKES = any_of(
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
_OTHER_SIDE = any_of(
    r"""
    (?:and|but) (?:i am |i'm )?(?:against|opposed)
    without (?:that|this|it)
    otherwise
    if not
    """
)
_CONDITION = any_of(
    r"""
    only if|provided(?: that)?|on (?:the )?condition|unless|if and only if
    could (?:support|accept|live with|go for)
    would (?:support|accept|back|sign|vote for)[^.;]{0,80}\bif
    nur wenn|unter der bedingung
    à condition|solo si|siempre que
    条件|ただし|بشرط
    """
)
_DEMAND = any_of(
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
_POINTING = re.compile(
    r"^\W*(?:(?:on|with|about|to|of|for|in|by) )?(?:it|this|that|them|these|such|das|es|ça|cela|ello|lo"
    r"|the (?:proposal|plan|motion|idea|measure|move|change|ban|bill|tax|law|deal|scheme|project|rule))\b",
    re.IGNORECASE,
)
_UNCHANGED = any_of(
    r"my (?:view|position|answer|opinion|vote|verdict|conclusion|recommendation) "
    r"(?:is (?:still )?(?:the same|unchanged)|remains|stays|has not|hasn't|stands)\b",
    r"""
    i (?:stay|stick|remain|stand) (?:with|by|where|to)\b
    dabei bleibt es|je maintiens|sigo (?:pidiendo|pensando)
    立場は[^。]{0,6}同じ
    """,
)
_CLAUSE_END = re.compile(r"[;:,—–，；、]\s*|\s(?:but|because|since|while|whereas)\s")
_TOPIC_SHARE = 0.5
"""Share of the topic's terms that a sentence needs to say yes or no to it without saying so."""
_LONGEST = 20
"""Words of such a sentence at most: a longer one says something else besides."""


def standpoint(sentence: str, topic: str) -> Standpoint | None:
    """Return the side that a sentence takes on a topic, `None` where it takes none, or none for sure."""
    said = unquoted(sentence)
    if QUESTION.search(said):
        return None
    yes, no = _FOR.search(said), _AGAINST.search(said)
    explicit = bool(yes or no)
    if not explicit:
        yes, no = _LIKES.search(said), _DISLIKES.search(said)
    found = min((each for each in (yes, no) if each), key=lambda each: each.start(), default=None)
    if found is None:
        return _restated(said, topic)
    if not _on_topic(said[found.end() :], topic) or HYPOTHETICAL.search(said[: found.start()]):
        return None
    if _CONDITION.search(said):
        return Standpoint("conditional", explicit)
    negated = NEGATION.search(said[max(0, found.start() - 14) : found.start()])
    if (yes and no) or _OTHER_SIDE.search(said) or (found is yes and negated):
        return None
    return Standpoint("for" if found is yes else "against", explicit)


def _on_topic(about: str, topic: str) -> bool:
    """Return whether what somebody is for or against is what the topic asks."""
    head = re.split(r"[.;:,—–]|\b(?:because|since|but|as|with)\b", about)[0]
    return not term_set(head) or bool(_POINTING.match(head)) or bool(stems(head) & stems(topic))


def _restated(said: str, topic: str) -> Standpoint | None:
    """Return the side of a sentence that says the topic again, as a demand or a statement."""
    if len(said.split()) > _LONGEST or HYPOTHETICAL.search(said):
        return None
    wanted = stems(topic)
    for clause in _CLAUSE_END.split(said):
        again = len(wanted & stems(clause)) >= max(2, _TOPIC_SHARE * len(wanted))
        if again and (_DEMAND.search(clause) or _STATED.match(topic)):
            negative = len(NEGATION.findall(clause)) % 2 != len(NEGATION.findall(topic)) % 2
            return Standpoint("against" if negative else "for", False)
    return None


def keeps_position(sentence: str) -> bool:
    """Return whether the speaker says that it stands where it stood."""
    return bool(_UNCHANGED.search(unquoted(sentence)))
