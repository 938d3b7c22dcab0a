"""Words by which debaters show what they are doing, as data, and the scan that finds them.

A phrase is a sequence of folded words; `*` stands for none to two words. Phrases of languages written
without spaces are found as plain substrings. The words only sharpen the reading: `facts` works without them.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from moot.nodes.text.plain import word_set

CueKind = Literal[
    "concession", "shift", "challenge", "strong_challenge", "agreement", "position", "claim", "courtesy"
]


class CueWord(NamedTuple):
    """One cue phrase found in a sentence."""

    kind: CueKind
    start: int
    """Offset of the phrase in the sentence, in characters."""


_PHRASES: dict[CueKind, str] = {
    "concession": """
        i concede | i will concede | i'll concede | i do concede | i must concede | i have to concede
        i grant | i'll grant | i will grant | i admit | i'll admit | i will admit | i must admit
        i have to admit | i acknowledge | i accept that | i accept your | admittedly | you're right
        you are right | you * make a * point | you have a point | you've got a point | that's a * point
        that is a * point | fair point | good point | fair enough | point taken | i take your point
        i take the point | is right that | is right about | was right that | was right about
        is correct that | i'll give you that | i misspoke | i overstated | my mistake | ich gebe zu
        zugegeben | da hast du recht | da haben sie recht | guter punkt | das räume ich ein | je concède
        j'admets | vous avez raison | tu as raison | concedo que | reconozco que | admito que
        tienes razón | tiene razón | признаю | вы правы | ты прав | 我承认 | 我承認 | 你说得对
        你說得對 | 您说得对 | 说得有道理 | 說得有道理 | 我让步 | 我讓步 | 有道理 | 認めます
        認めざるを得 | おっしゃる通り | おっしゃるとおり | その通りです | もっともです | 인정합니다
        맞습니다
    """,
    "shift": """
        i now think | i now believe | i now agree | i now support | i now favor | i now favour
        i now see | i now accept | i now hold | i've changed my | i have changed my | i changed my mind
        i change my | i'm changing my | i am changing my | i've come to | i have come to | i no longer
        i was wrong | i stand corrected | i withdraw | i retract | i take that back | i take it back
        i abandon my | i revise my | i'm revising my | i've revised my | i have revised my
        i've updated my | i have updated my | i update my | i'm updating my | my view has
        my position has | my position is now | my view is now | my revised position
        my updated position | you've convinced me | you have convinced me | you've persuaded me
        you have persuaded me | i'm convinced now | i'm now convinced | i am now convinced
        i used to think | i used to believe | i'm persuaded | i am persuaded
        ich habe meine meinung geändert | ich denke jetzt | ich ziehe * zurück | ich lag falsch
        ich nehme * zurück | j'ai changé d'avis | je pense maintenant | je me suis trompé | je retire
        he cambiado de opinión | ahora creo | ahora pienso | me equivoqué | retiro mi | я передумал
        я изменил мнение | я был неправ | я была неправа | 改变了看法 | 改变了主意 | 改变了立场
        改變了看法 | 改變了立場 | 我现在认为 | 我現在認為 | 我收回 | 我错了 | 我錯了 | 考えを改め
        考えが変わ | 意見を変え | 撤回し | 생각을 바꿨 | 생각이 바뀌 | 철회합니다
    """,
    "strong_challenge": """
        that's false | that is false | simply false | just false | plainly false | is false | are false
        is demonstrably | that's not true | that is not true | not true | isn't true | simply untrue
        simply wrong | flat wrong | flatly wrong | just wrong | dead wrong | completely wrong
        totally wrong | absolutely wrong | fundamentally wrong | is wrong | you're wrong | you are wrong
        absolutely not true | i strongly disagree | i completely disagree | i totally disagree
        i fundamentally disagree | i reject | nonsense | absurd | a lie | he lied | you lied | is lying
        are lying | misrepresents | misrepresented | misstates | mischaracterizes | mischaracterises
        straw man | strawman | fallacy | contradicts | contradicted | contradiction | no evidence
        no basis | zero evidence | is refuted | i refute | debunked | fatal flaw | das ist falsch
        das stimmt nicht | unsinn | völlig falsch | c'est faux | absolument pas | n'est pas vrai
        eso es falso | no es cierto | no es verdad | это неправда | неверно | 这是错的 | 這是錯的
        完全错误 | 完全錯誤 | 不是事实 | 不是事實 | 荒谬 | 荒謬 | 强烈反对 | 強烈反對 | 自相矛盾
        間違って | 誤りです | 事実ではありません | 断固反対 | 틀렸습니다 | 사실이 아닙니다
    """,
    "challenge": """
        i disagree | i don't agree | i do not agree | i can't agree | i cannot agree
        i have to disagree | i respectfully disagree | i doubt | i question | i challenge | i dispute
        i contest | i object | i'd push back | i would push back | push back on | i'm not convinced
        i am not convinced | i remain unconvinced | not persuaded | not convinced | overlooks
        overlooked | overstates | overstated | underestimates | understates | ignores | ignored the
        ignoring | misses the | misunderstands | misread | misreads | fails to | failed to
        doesn't follow | does not follow | doesn't address | does not address | doesn't answer
        didn't answer | never answered | did not answer | not necessarily | on the contrary
        contrary to | the problem with | the flaw in | the weakness in | the trouble with | rests on
        unsupported | unproven | cherry picked | cherry picking | too optimistic | too pessimistic
        but you | but your | i don't think so | that's not | that is not | no that's | ich widerspreche
        ich bezweifle | bin nicht überzeugt | sehe das anders | übersieht | ignoriert | im gegenteil
        je conteste | ne suis pas d'accord | je doute | au contraire | néglige | no estoy de acuerdo
        discrepo | dudo que | al contrario | не согласен | не согласна | сомневаюсь | наоборот | 不同意
        我反对 | 我反對 | 我怀疑 | 我懷疑 | 忽视了 | 忽視了 | 忽略了 | 相反 | 不敢苟同 | 質疑 | 质疑
        反対です | 同意できません | 賛成できません | 疑問です | 見落として | むしろ逆 | 동의하지 않
        반대합니다 | 의문입니다
    """,
    "agreement": """
        i agree | i completely agree | i fully agree | i totally agree | i strongly agree | i also agree
        we agree | we all agree | i share * view | i share * concern
        i support * proposal | i second | i endorse | exactly right | that's right | that is right
        that's true | that is true | common ground | as * rightly | as * correctly | builds on
        building on | ich stimme * zu | einverstanden | genau richtig | sehe ich auch so
        je suis d'accord | nous sommes d'accord | tout à fait | estoy de acuerdo | de acuerdo con
        coincido | я согласен | согласна | согласен | 我同意 | 我赞成 | 我贊成 | 我也认为 | 我也認為
        赞同 | 贊同 | 同意します | 賛成です | 同感です | 동의합니다 | 찬성합니다
    """,
    "position": """
        i believe | i think | i maintain | i argue | i contend | i hold | i propose | i recommend
        i support | i oppose | i favor | i favour | i advocate | i suggest | i insist | i stand
        in my view | in my opinion | in my judgment | my view | my position | my stance | my proposal
        my answer | my recommendation | my claim | my thesis | i'm for | i am for | i'm against
        i am against | we believe | we propose | our position | our proposal | we oppose | we support
        we recommend | i remain | the case for | the case against | ich glaube | ich meine | ich denke
        ich bin für | ich bin gegen | ich schlage * vor | meiner meinung | meiner ansicht | je crois
        je pense | je propose | je soutiens | à mon avis | selon moi | creo que | pienso que | propongo
        en mi opinión | sostengo | я считаю | я думаю | по-моему | я предлагаю | 我认为 | 我認為
        我觉得 | 我覺得 | 我主张 | 我主張 | 我建议 | 我建議 | 我的立场 | 我的立場 | 我支持 | 我方认为
        考えます | と考える | と思います | べきだと | 私の立場 | 提案します | を支持し | 생각합니다
        제안합니다 | 지지합니다
    """,
    "claim": """
        should | must | ought | need to | needs to | because | therefore | thus | hence | consequently
        implies | shows | show that | proves | demonstrates | evidence | suggests | study | studies
        data | according to | research | the point is | the fact is | the key | crucially | above all
        leads to | causes | results in | would mean | means that | worse | better | best | worst | never
        cannot | will | sollte | sollten | muss | müssen | weil | deshalb | daher | folglich | zeigt
        laut | doit | devons | parce | donc | montre | selon | debe | debemos | porque | tanto | muestra
        según | должны | потому | поэтому | показывает | 应该 | 應該 | 必须 | 必須 | 因为 | 因為 | 所以
        因此 | 表明 | 证明 | 證明 | 根据 | 根據 | 研究 | 数据 | 數據 | べき | なぜなら | したがって
        によると | によれば | 示して | 해야 | 때문 | 따라서 | 따르면
    """,
    "courtesy": """
        thank you | thanks | good evening | good morning | good afternoon | good to be here | welcome to
        hello | you're welcome | pleased to be | an honor to | an honour to | my honor to
        looking forward to | vielen dank | danke | guten abend | guten tag | merci | bonsoir | bonjour
        gracias | buenas noches | buenos días | спасибо | добрый вечер | здравствуйте | 谢谢 | 謝謝
        大家好 | 晚上好 | ありがとうござい | こんにちは | こんばんは | よろしくお願い | 감사합니다
        안녕하세요
    """,
}
# A cue does not count where one of these stands among the words right before it.
_NEGATIONS = word_set(
    "not never no nor don't doesn't didn't won't can't cannot isn't aren't wasn't weren't wouldn't "
    "couldn't hardly if unless whether suppose until before wenn nicht si ne pas cuando не если"
)
_NEGATION_REACH = 2
_NEGATABLE = frozenset(("concession", "shift", "agreement"))
_WORD = re.compile(r"\w+(?:['-]\w+)*")
_UNSPACED_PHRASE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


_Table = dict[tuple[str, ...], list[tuple[tuple[str, ...], CueKind]]]


def _index() -> tuple[_Table, list[tuple[str, CueKind]]]:
    """Return phrases by their first two words (one, before a `*`), and the substrings of unspaced scripts."""
    spaced: _Table = defaultdict(list)
    unspaced: list[tuple[str, CueKind]] = []
    for kind, table in _PHRASES.items():
        for phrase in filter(None, (part.strip() for part in re.split(r"[|\n]", table))):
            if _UNSPACED_PHRASE.search(phrase):
                unspaced.append((phrase, kind))
            else:
                words = tuple(phrase.split())
                key = words[:1] if "*" in words[1:2] else words[:2]
                spaced[key].append((words, kind))
    return dict(spaced), unspaced


_SPACED, _UNSPACED = _index()


def find_cues(sentence: str) -> list[CueWord]:
    """Return the cues of one `sentence`, in order, each kind at most once; negated ones are left out.

    A negated agreement or concession ("I don't agree") is a challenge only where the phrase says so itself.
    """
    folded = sentence.lower().replace("’", "'")
    found: dict[CueKind, int] = {}
    words = list(_WORD.finditer(folded))
    tokens = [word.group() for word in words]
    for at, token in enumerate(tokens):
        for key in ((token,), tuple(tokens[at : at + 2])):
            for phrase, kind in _SPACED.get(key, ()):
                if kind not in found and _matches(phrase, tokens, at) and not _negated(kind, tokens, at):
                    found[kind] = words[at].start()
    found.update(_find_unspaced(folded, found))
    return sorted((CueWord(kind, start) for kind, start in found.items()), key=lambda cue: cue.start)


def _find_unspaced(folded: str, found: Mapping[CueKind, int]) -> dict[CueKind, int]:
    """Return where the phrases of unspaced scripts stand, by kind, for kinds not yet `found`."""
    if not _UNSPACED_PHRASE.search(folded):
        return {}
    more: dict[CueKind, int] = {}
    for phrase, kind in _UNSPACED:
        start = folded.find(phrase) if kind not in found and kind not in more else -1
        if start >= 0 and folded[start - 1 : start] != "不":
            more[kind] = start
    return more


def _matches(phrase: Sequence[str], tokens: Sequence[str], at: int) -> bool:
    """Whether `phrase` stands at token `at`; its `*` takes none to two tokens."""
    if "*" not in phrase:
        return tuple(tokens[at : at + len(phrase)]) == tuple(phrase)
    star = list(phrase).index("*")
    head, tail = phrase[:star], phrase[star + 1 :]
    if tuple(tokens[at : at + star]) != tuple(head):
        return False
    return any(_matches(tail, tokens, at + star + gap) for gap in range(3))


def _negated(kind: CueKind, tokens: Sequence[str], at: int) -> bool:
    before = tokens[max(0, at - _NEGATION_REACH) : at]
    return kind in _NEGATABLE and any(token in _NEGATIONS for token in before)
