"""What a judging came to, as it is stored: judges' verdicts, the decision, and how far the judges agree.

JSON types only. The state's channels, documents, exports and reports all hold these; `judging` makes them.
"""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from moot.state.entries import EntryUsage

Rule = Literal["mean", "majority", "ranked", "approval", "unanimous"]
"""How a panel decides; what each does and counts is in the table of rules, `RULES`."""

TIE = "tie"
"""The winner where no debater is ahead."""
SYNTHESIS = "synthesis"
"""The winner where the best answer unites several debaters."""
NO_WINNER = {TIE: "a tie", SYNTHESIS: "a synthesis of several"}
"""What stands in words where a debater would."""
PLACEHOLDER = "placeholder: no model judged this"
"""What stands where a winner would, of a verdict that the offline model made."""
PANEL = "panel"
"""Who a decision is by, where several judges sat."""


def tenths(figure: float) -> float:
    """Return a score or a total as it is stored, compared and shown: so that equal figures are equal."""
    return round(figure + 0.0, 1)


class CriterionScale(TypedDict):
    """What a criterion is called and how it is scored: what reads a verdict need not find its rubric."""

    id: str
    name: str
    scale_min: float
    scale_max: float
    weight: float


class ScoreRecord(TypedDict):
    """A checked score."""

    score: float
    """Within the criterion's scale, in tenths."""
    reason: str
    citations: list[str]
    """Ids of messages that exist, without repetitions."""


class Reason(TypedDict):
    """One reason about the matter itself."""

    text: str
    citations: list[str]
    """Ids of messages that exist, without repetitions."""


class Case(TypedDict):
    """What the debate left standing for one debater's answer, and against it; the strongest first."""

    pros: list[Reason]
    cons: list[Reason]


class Unmet(TypedDict):
    """Something that was asked for and that no proposal gives."""

    text: str
    major: bool
    """Whether the result cannot be used without it."""


class Flip(TypedDict):
    """What judging in two presentation orders showed."""

    orders: list[list[str]]
    """Debaters in the order in which each pass presented them."""
    winners: list[str]
    """The winner of each pass that did not fail."""
    flipped: bool | None
    """Whether the passes disagree; `None` where only one pass counts."""


class Verdict(TypedDict):
    """What Moot records of one judge. Ids are real ones, not the labels that a judge was shown."""

    status: Literal["ok", "failed"]
    """`failed`: nothing in here is anybody's judgement."""
    error: str
    """Why it failed, else empty."""
    judge: str
    """Slug id."""
    model: str
    rubric: str
    """Name of the rubric."""
    criteria: NotRequired[list[CriterionScale]]
    """The rubric's criteria, where there are scores."""
    placeholder: NotRequired[bool]
    """Set where the offline model answered for the judge: nothing in here is anybody's judgement."""
    judging: NotRequired[int]
    """Which judging of the debate it belongs to, from 1: the decision has the same number."""
    order: list[str]
    """Debaters in the order in which they were presented."""
    reasoning: str
    scores: dict[str, dict[str, ScoreRecord]]
    """Debater to criterion to score."""
    totals: dict[str, float]
    """Debater to weighted total, 0–100 in tenths; without those who got no score."""
    winner: str
    """Id of a debater, `tie` or `synthesis`; empty where the verdict failed."""
    confidence: float | None
    """Whole, 0–100; at most 40 while a major requirement is unmet; `None` for a tie, and where it failed."""
    cases: NotRequired[dict[str, Case]]
    """Debater to the reasons for and against its answer; verdicts of earlier builds have none."""
    unmet_requirements: list[Unmet]
    open_questions: list[str]
    solution_markdown: str
    tradeoffs: list[str]
    recommendations: list[str]
    dropped_citations: int
    """Citations of messages that do not exist."""
    dropped_scores: int
    """Scores of unknown debaters or criteria, without a finite number, or given twice."""
    clamped_scores: int
    """Scores outside their scale."""
    notes: list[str]
    """What checking changed or found odd, one sentence each."""
    flip: Flip
    lengths: dict[str, int]
    """Debater to tokens spoken, to be read beside its score."""
    usage: EntryUsage


class Dissent(TypedDict):
    """A judge whose own choice differs from the outcome."""

    judge: str
    winner: str


class Outcome(TypedDict):
    """What a rule comes to over a panel's ballots."""

    rule: Rule
    winner: str
    """Id of a debater, `tie` or `synthesis`."""
    tally: dict[str, float]
    """What the rule counted, by debater (or choice): mean, votes, Borda points or approvals."""
    tied: list[str]
    """Who shares the first place, sorted, where the winner is `tie`; else empty."""
    mean_scores: dict[str, float]
    """Debater to mean total over the judges that scored it, whatever the rule."""
    dissent: list[Dissent]
    """Judges whose choice is another one, sorted by id."""
    judges: int
    """Ballots counted."""


class Rate(TypedDict):
    """A proportion with its Wilson score interval."""

    k: int
    """How many of `n`."""
    n: int
    rate: float | None
    """`k / n`; `None` where `n` is 0."""
    low: float
    """Lower end of the interval, 0–1; 0 where `n` is 0."""
    high: float
    """Upper end of the interval, 0–1; 1 where `n` is 0."""


class PairAgreement(TypedDict):
    """Two judges over the units that both rated."""

    first: str
    second: str
    n: int
    """Units rated by both."""
    agreement: float | None
    """Share of them rated alike; `None` where `n` is 0."""
    kappa: float | None


class PanelReport(TypedDict, total=False):
    """How far judges agree on one debate; without any key where no judge sat.

    `None` is what cannot be said, such as α of one judge.
    """

    judges: int
    """Those whose verdict did not fail."""
    failed: int
    alpha: float | None
    """Krippendorff's α, interval, over the scores that at least two judges gave."""
    kappa: float | None
    """Mean of the pairwise κ that are defined."""
    flip_rate: float | None
    """Share of the verdicts judged in two orders whose winner changed with the order."""
    flips: Rate
    """The same with its 95 % interval."""
    flip_rates: dict[str, Rate]
    """By judge, over all its verdicts on this debate."""
    pairs: list[PairAgreement]
    """Cohen's κ of every two judges on who is ahead, over criteria and pairs of debaters."""
    unanimous: bool | None
    """Whether all chose the same winner; `None` for fewer than two judges."""
    mean_scores: dict[str, float]
    """Debater to mean total, 0–100."""
    dissent: list[Dissent]
    """Judges whose choice is not the decision."""


class Decision(Verdict):
    """What a debate's judging comes to: a panel's mean scores, and the words of a judge who agrees with it.

    Without an outcome where every judge failed, without agreement where no judge sat: a vote is counted.
    """

    speaker: NotRequired[str]
    """The judge of a panel whose reasoning, solution and open questions these are."""
    outcome: NotRequired[Outcome]
    agreement: NotRequired[PanelReport]
