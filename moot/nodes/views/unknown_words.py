"""Which words of a question nobody ever said: content words alone, for grammar and names say nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from moot.nodes.prompts.rendering import PEOPLE
from moot.nodes.text.plain import word_set
from moot.nodes.text.terms import terms as content_terms

if TYPE_CHECKING:
    from moot.nodes.memory.retrieval import Question

# Words of asking and of grammar, in the languages whose stop words `extraction.terms` knows.
_ASKING = word_set(
    "many long often far please kindly qu wer wen wem wessen was warum wieso weshalb wo wann woher wohin "
    "welche welcher welches welchen welchem wieviel wieviele viel viele über unter gegen ohne durch "
    "zwischen sagt sagte sagten sagen gesagt meint meinte meinten meinen denkt dachte hält hielt hielten "
    "sprach sprachen erwähnt erwähnte etwas alle alles dieser diese dieses diesem diesen jeder jede jedes "
    "sein seine ihr ihre ihren hatte hatten wurde wurden würde würden soll sollte sollten können konnte "
    "gibt gab dazu davon darüber dafür dagegen bitte zum zur beim vom quoi quel quelle quels quelles "
    "quand où comment pourquoi combien dit disent disait disaient ont été avait avaient contre sans entre "
    "chez leur leurs propos sujet pense pensent pensait cet qué quién quiénes cuál cuáles cuándo dónde "
    "cómo cuánto cuánta cuántos cuántas sobre dijo dijeron dice dicen decir piensa piensan opina opinan "
    "sin entre contra ha han fue fueron había este esta estos estas acerca что кто кого кому где когда "
    "почему зачем какой какая какое какие сколько о об обо про при сказал сказала сказали говорит говорил "
    "говорила говорили думает думал думала был была было были есть ли"
)
# The same of Chinese, longest first, and all that is not Han or Katakana: Hiragana is Japanese grammar.
_BETWEEN = re.compile(
    "为什么|為什麼|怎么样|怎麼樣|什么|什麼|怎么|怎麼|怎样|怎樣|为何|為何|如何|哪些|哪个|哪個|哪里|哪裡|多少|是否|有没有|"
    "有沒有|关于|關於|对于|對於|认为|認為|觉得|覺得|提到|讨论|討論|表示|看法|意见|意見|观点|觀點|我们|我們|你们|你們|他们|他們|"
    "[的了吗嗎呢吧啊谁誰说說讲講谈談对對是在和与與把被都也就这這那哪何]|"
    "[^\u3005\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]"
)


def unsaid(question: Question, names: Mapping[str, str], *, ids: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the content words of a question that the transcript never uses, in lower case, in order.

    Where words are written without spaces between them, what is returned is each stretch of Chinese or
    Katakana in which no two characters stand together as they do in the transcript; in other such scripts a
    word's bounds are not known, and nothing is.

    Args:
        question: as retrieval read it.
        names: display names by debater id.
        ids: of existing messages that the question names.
    """
    from moot.nodes.memory.retrieval.terms import frame_terms, is_unspaced, spelled, terms

    called = frozenset(terms(" ".join([*names, *names.values(), *PEOPLE, *PEOPLE.values(), *ids])))
    unknown = frozenset(question.unknown) - called - frame_terms()
    found: dict[str, None] = {}
    for run in map(str.casefold, spelled(question.text)):
        if is_unspaced(run):
            found |= dict.fromkeys(_stretches(run, unknown))
        elif not unknown.isdisjoint(terms(run)) and _is_content(run):
            found[run] = None
    return tuple(found)


def _is_content(word: str) -> bool:
    return len(word) > 1 and word not in _ASKING and bool(content_terms(word))


def _stretches(run: str, unknown: frozenset[str]) -> list[str]:
    """Return the stretches of a run without spaces that no known pair of characters touches."""
    said = set[int]()
    for place in range(len(run) - 1):
        if run[place : place + 2] not in unknown:
            said |= {place, place + 1}
    open_places = "".join(" " if place in said else character for place, character in enumerate(run))
    return [part for part in _BETWEEN.sub(" ", open_places).split() if len(part) > 1]
