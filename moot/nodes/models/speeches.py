"""The offline model's speeches: two to four short sentences, chosen by hash, on the topic's noun phrases.

Slots: `{a}`, `{b}` noun phrases, where singular and plural do alike; `{topic}` the topic in short; `{who}`
whom it answers and `{quote}` a few of their words; `{goal}` what the speaker's side wants, `{risk}` what it
fears. The model knows no facts and states none.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random

from moot.nodes.calls import Hints, Utterance
from moot.nodes.models.noun_phrases import noun_phrases
from moot.nodes.text.plain import clip, word_set
from moot.nodes.text.sentences import split_sentences

GOALS = {
    1: ("a clear commitment", "early action", "an open yes", "a full start"),
    -1: ("restraint", "a plain no", "the proven arrangement", "a halt for now"),
    0: ("a staged trial", "a reversible first step", "a conditional yes", "a pilot"),
}
RISKS = {
    1: ("drift", "a decision made by default", "paying for delay"),
    -1: ("a rushed start", "costs that arrive late", "harm that cannot be undone"),
    0: ("false certainty", "a choice without a measure", "treating unlike cases alike"),
}
ANSWERS = {1: "yes", -1: "no", 0: "yes, on conditions"}
AGAINST = word_set("against con no not oppose opposed opposes sceptic sceptical skeptic skeptical anti")
FAVOUR = word_set("for pro yes favour favor support supports supporter advocate optimist")
COMMON = ("the budget", "public trust", "the people affected", "the first year")
"""What any topic touches."""

OPEN = (
    "On “{topic}” I am for {goal}.",
    "My position on “{topic}” is {goal}.",
    "I argue for {goal}: that is my answer to “{topic}”.",
    "I hold that {goal} would be the right answer to “{topic}”.",
)
STAND = ("I speak for this side: “{stance}”.", "My stance is “{stance}”.")
REASON = (
    "What decides it for me is the effect on {a}, because a mistake there would be hard to undo.",
    "The first question should be about {a}; the rest can wait.",
    "I would look at {a} before {b}.",
    "Without a plan for {a}, nobody can promise anything about {b}.",
    "We should ask who would pay for {a} and who would decide about {b}.",
    "The danger is {risk}, and it would show first in {a}.",
    "A small trial would tell us more about {a} than another year of talk.",
    "I give more weight to {a} than to {b}, because people would notice it every day.",
    "Whatever we choose, {a} should not suffer for the sake of {b}.",
    "The same rule should hold for {a} and for {b}.",
    "If we are wrong about {a}, we can change course; if we are wrong about {b}, we cannot.",
    "Doing nothing is a choice too, and it has a price for {a}.",
    "We need a measure of success for {a} before we start.",
    "The effect on {a} would come slowly, so we should judge it after years and not after weeks.",
    "Those who live with {a} should have the first word.",
    "There must be a limit to what we ask of {a}, and we should name it now.",
    "My worry is {risk}, for {a} as much as for {b}.",
    "What is good for {a} may still be bad for {b}.",
    "Nobody has shown me yet how {a} and {b} would fit together.",
    "I would trust a promise about {a} only if it came with a date.",
    "The hard part is {a}; the rest could be settled in a week.",
    "Before we talk about {b}, we should agree on what we want for {a}.",
    "If {a} must change, then {b} must be part of the plan.",
    "The price of waiting would fall on {a}, and the price of haste on {b}.",
)
REBUT = (
    "{who} says “{quote}”; I disagree, because that leaves out {a}.",
    "I doubt this claim of {who}: “{quote}”.",
    "“{quote}”, says {who}, but that overlooks the cost for {a}.",
    "I disagree with {who}: “{quote}” does not settle the question of {a}.",
    "{who} tells us “{quote}”, and I dispute that it would hold for {a}.",
    "“{quote}” is no answer to my question about {a}, {who}.",
)
BUILD = (
    "I agree with {who} on this: “{quote}”.",
    "{who} rightly says “{quote}”, and I would say the same of {a}.",
    "{who} and I share a premise, “{quote}”; we differ on {a}.",
)
CONCEDE = (
    "I concede one thing to {who}: “{quote}”.",
    "{who} has a point, to which I gave too little weight: “{quote}”.",
    "I grant {who} this much: “{quote}”.",
)
SHIFT = (
    "I have changed my mind on {a}: {who} is right.",
    "I now think that {who} is right about {a}.",
)
QUESTION = (
    "{who}, what would change your mind about {a}?",
    "How would {who} measure the effect on {a}?",
    "Would {who} say the same about {b}?",
    "{who}, who would answer for a failure of {a}?",
    "What would {who} give up first, {a} or {b}?",
)
CLOSE = (
    "So I stay with {goal}.",
    "That is why I am for {goal}.",
    "On balance I prefer {goal}.",
    "My answer remains {goal}.",
    "I would rather have {goal} than {risk}.",
    "For the sake of {a} I ask for {goal}.",
    "I see no better way for {a} than {goal}.",
    "Only {goal} would do justice to {a}.",
)
STEELMAN = (
    "At its best, the case of {who} is this: “{quote}”.",
    "The strongest thing that {who} says is “{quote}”.",
)
STEP = (
    "Write down who decides about {a}.",
    "Begin with {a}, for a fixed time.",
    "Measure the effect on {a}, and publish it.",
    "Set a date for a review of {a}.",
    "Keep a way back as long as {b} may suffer.",
)
MERIT = (
    "{who} is right to ask about {a}.",
    "The question of {a} is well put.",
    "I share the concern of {who} for {a}.",
)
CHANGE = (
    "Because of what {who} says [{id}], I would look again at {a}.",
    "{who} asked about {a} [{id}]; that now comes first.",
    "What {who} says of {a} [{id}] is a risk, and I name it now.",
)
CLARIFY = (  # of whoever set the topic
    "What must not change for {a}?",
    "Who decides about {a}, and by when?",
    "Which would you give up first, {a} or {b}?",
    "How would you measure success for {a}?",
)

_SLOT = re.compile(r"\{\w+\}")
WORDS_QUOTED, CHARS_QUOTED = 16, 24
"""Most words of a quotation, and most characters where the script has no spaces."""
_NESTED, _NO_STATEMENT = frozenset('“”"«»*#'), frozenset("?？:")


class Speech:
    """One answer in the making: draws phrases that were not used lately, and fills their slots."""

    def __init__(self, hints: Hints, topic: str, dice: Random) -> None:
        self.hints, self.topic, self.dice = hints, topic, dice
        said, speaker = list(hints.get("said", ())), hints.get("speaker")
        self._recent = "\n".join(each["text"] for each in said)
        self.others = [each for each in said if each["who"] != speaker and _quotable(each["text"])]
        asked = [each for each in self.others if each["who"] in hints.get("targets", ())]
        self.other = next(reversed(asked or self.others), None)
        side = side_of(hints)
        self.answer = ANSWERS[side]
        self._goal, self._risk = _own_dice(hints).choice(GOALS[side]), dice.choice(RISKS[side])
        phrases = noun_phrases(topic)
        self._phrases = phrases if len(phrases) > 1 else (*phrases, *COMMON)

    def draw(self, pool: Sequence[str], to: Utterance | None = None) -> str:
        """Return a filled phrase of the pool, one whose wording is not among the last things said."""
        order = self.dice.sample(pool, len(pool))
        chosen = next((phrase for phrase in order if _mark(phrase) not in self._recent), order[0])
        self._recent += f"\n{_mark(chosen)}"
        about = to or self.other
        quote = self.dice.choice(_quotable(about["text"])) if about else ""
        a, b = sorted(self.dice.sample(self._phrases, 2), key=lambda phrase: phrase in quote)
        text = chosen.format(
            a=a,
            b=b,
            topic=clip(self.topic, 80).rstrip("?!. "),
            goal=self._goal,
            risk=self._risk,
            stance=clip(self.hints.get("stance", ""), 60),
            who=about["who"] if about else "the other side",
            id=about["id"] if about else "",
            quote=quote,
        )
        return text[0].upper() + text[1:]

    def say(self, *pools: Sequence[str]) -> str:
        """Return a phrase of each pool, as one paragraph."""
        return " ".join([self.draw(pool) for pool in pools])


def compose(hints: Hints, topic: str, dice: Random) -> str:
    """Return the speech that fits a phase."""
    return _FORMS.get(hints.get("phase", ""), speech)(Speech(hints, topic, dice))


def speech(draft: Speech) -> str:
    """Answer another (mostly against, sometimes with or conceding), argue, end: the ordinary turn."""
    if draft.other is None:
        return draft.say(OPEN, REASON, CLOSE)
    answer = draft.say(*draft.dice.choices((REBUT, BUILD, CONCEDE), (7, 3, 2)), REASON)
    return f"{answer} {draft.say(*draft.dice.choices((CLOSE, QUESTION, SHIFT), (16, 7, 1)))}"


def opening(draft: Speech) -> str:
    """Say where one stands and why."""
    stand = [draft.draw(STAND)] if draft.hints.get("stance") else []
    return " ".join((draft.draw(OPEN), *stand, draft.say(REASON, REASON)))


def alone(draft: Speech) -> str:
    """Answer a question, with a last line that can be counted."""
    return f"{draft.say(OPEN, REASON)}\n\nAnswer: {draft.answer}"


def closing(draft: Speech) -> str:
    """What one grants, what remains."""
    return draft.say(*([CONCEDE] if draft.other else []), REASON, CLOSE)


def steelman(draft: Speech) -> str:
    """The other side's case at its best, and what it leaves open."""
    return draft.say(STEELMAN if draft.other else OPEN, REASON)


def proposal(draft: Speech, heading: str = "Proposal") -> str:
    """A proposal in Markdown."""
    steps = "\n".join(f"{number}. {draft.draw(STEP)}" for number in (1, 2))
    return f"## {heading}\n\n{draft.say(OPEN, REASON)}\n\n{steps}"


def refinement(draft: Speech) -> str:
    """The proposal again, with what its critics changed."""
    critics = {each["who"]: each for each in draft.others}.values()
    listed = "\n".join(f"- {draft.draw(CHANGE, to=each)}" for each in critics) or f"- {draft.draw(STEP)}"
    return f"## What changes\n\n{listed}\n\n{proposal(draft, 'Refined proposal')}"


def critique(draft: Speech) -> str:
    """What is sound in a proposal, what is not, and a question."""
    holds, fails = (MERIT, REBUT) if draft.other else (OPEN, REASON)
    parts = {"What holds": holds, "What does not": fails, "Question": QUESTION}
    return "\n\n".join(f"**{label}.** {draft.draw(pool)}" for label, pool in parts.items())


def side_of(hints: Hints) -> int:
    """Return 1 for, -1 against, 0 in between: from the stance's words, else by the speaker's name."""
    words = set(re.findall(r"\w+", hints.get("stance", "").lower()))
    if bool(words & AGAINST) != bool(words & FAVOUR):
        return -1 if words & AGAINST else 1
    return _own_dice(hints).choice((1, -1, 0))


def _own_dice(hints: Hints) -> Random:
    """Return dice that fall alike for a speaker in the whole debate."""
    return Random(f"{hints.get('speaker', '')} {hints.get('topic', '')}")  # noqa: S311  # a choice of words


@lru_cache(maxsize=256)
def _quotable(said: str) -> Sequence[str]:
    """Return the longest sentences of an utterance that quote nobody, verbatim, or their beginnings."""
    pieces = []
    for sentence in split_sentences(said[:4_000]):
        text = sentence.text.rstrip(" .。！!")
        if sentence.kind != "prose" or text[-1:] in _NO_STATEMENT or _NESTED & set(text):
            continue
        words = text.split()
        if len(words) >= 5:
            pieces.append(text if len(words) <= WORDS_QUOTED else " ".join(words[:WORDS_QUOTED]) + "…")
        elif not text.isascii():
            pieces.append(clip(text, CHARS_QUOTED))
    return sorted(pieces, key=len)[-2:]


def _mark(phrase: str) -> str:
    return max(_SLOT.split(phrase), key=len).strip()


_FORMS: dict[str, Callable[[Speech], str]] = {
    "propose": proposal,
    "critique": critique,
    "refine": refinement,
    "answer": alone,
    "opening": opening,
    "take": opening,
    "closing": closing,
    "crux-steelman": steelman,
}
