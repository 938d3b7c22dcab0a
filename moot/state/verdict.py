"""Verdicts as they are stored: their fields, the verdict of one judge, and the verdict of a panel.

`VerdictContent` defines every field that a judge fills in. One line holds the field's type, label, order,
description for the model, and rules for combining two presentation orders and a panel. The schema of the
reply, the record and every rendering loop over `VERDICT_FIELDS`. To add a field, add a line to
`VerdictContent`.

All values are JSON types. State, documents, exports and reports hold them; `moot.judging` makes them.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NotRequired, get_args, get_type_hints

from typing_extensions import TypedDict

from moot.state.entries import EntryUsage

Rule = Literal["mean", "majority", "ranked", "approval", "unanimous"]
"""Name of the rule that combines the votes of a panel's judges into a decision. `RULES` in `moot.judging`
describes each rule."""

TIE = "tie"
"""Value of `winner` if no debater outperformed the others."""
SYNTHESIS = "synthesis"
"""Value of `winner` if the best answer combines the answers of several debaters."""


def import_note(imported_at: str) -> str:
    """Return a warning with the date if a verdict was imported, or `""`."""
    if not imported_at:
        return ""
    return (
        f"Imported on {imported_at[:10]}: Moot did not judge this debate. The verdict comes from the "
        "imported file."
    )


NO_WINNER = {TIE: "a tie", SYNTHESIS: "a synthesis of several"}
"""Texts shown instead of a winner's name for a tie or a synthesis of several answers."""
UNDECIDED = "undecided"
"""Decision that Moot records if none of a debate's options is chosen."""
PLACEHOLDER = "placeholder: no model judged this"
"""Text shown instead of a winner if the verdict comes from the offline model."""
PANEL = "panel"
"""Judge id used for the combined verdict of a panel."""


def tenths(figure: float) -> float:
    """Round a score or total to one decimal place."""
    return round(figure + 0.0, 1)


class CriterionScale(TypedDict):
    """Name, scale and weight of a rubric criterion.

    The values are stored so that a verdict can be shown without its rubric.
    """

    id: str
    name: str
    scale_min: float
    scale_max: float
    weight: float


class ScoreRecord(TypedDict):
    """Score of one debater for one criterion of the rubric.

    The score has been validated.
    """

    score: float
    """Score on the criterion's scale, rounded to one decimal place."""
    reason: str
    citations: list[str]
    """Ids of the messages that the judge cites for this score. Duplicates and unknown messages are
    removed."""


class OptionFinding(TypedDict):
    """What the debate showed about an option by one criterion."""

    criterion: str
    """Id of a criterion of the rubric, or a word such as "cost"."""
    rating: Literal["good", "neutral", "bad"]
    finding: str
    """What was said, with its figures."""


class ConsideredOption(TypedDict):
    """Option that the debate considered, and why the decision takes or rejects it."""

    option: str
    outcome: Literal["chosen", "part of the decision", "rejected"]
    because: str
    findings: list[OptionFinding]
    citations: list[str]
    """Ids of the messages that the judge cites. Duplicates and unknown messages are removed."""


class CriterionResult(TypedDict):
    """How far the decision meets one criterion of the rubric."""

    criterion: str
    """Id of the criterion."""
    met: Literal["met", "partly met", "not met"]
    because: str


class OpenCheck(TypedDict):
    """Open question to answer before somebody acts on the decision. Unknown parts are empty."""

    question: str
    how: str
    """How the question can be answered."""
    who: str
    cost: str
    by: str
    """Date by which the answer is needed."""
    if_yes: str
    """What the answer "yes" changes in the decision."""
    if_no: str


class Unmet(TypedDict):
    """Requirement in the topic that the debate's result does not meet."""

    text: str
    major: bool
    """True if the result is unusable until this requirement is met."""


class Flip(TypedDict):
    """Comparison of two verdicts by one judge.

    The judge saw the debaters in a different order each time.
    """

    orders: list[list[str]]
    """Order of the debaters in each judging pass."""
    winners: list[str]
    """Winner of each judging pass that did not fail."""
    flipped: bool | None
    """True if the two judging passes chose different winners. A tie or a synthesis counts as no winner.
    `None` if either pass failed, or if there was only one."""


class Move(TypedDict):
    """Change of a debater's position during the debate."""

    debater: str
    before: str
    """Debater's position before the change."""
    after: str
    stated_in: str
    """Id of the message in which the debater first states the new position. Empty if the judge cited none."""
    caused_by: str
    """Id of the message that changed the debater's position. Empty if the judge cited no existing message."""


Judging = Literal["contest", "design", "synthesis", "scores"]
"""Kind of judging, which determines what a verdict must contain. `contest` asks for the better argument,
`design` for a design, and `synthesis` for a synthesis of independent answers. `scores` is the second
presentation order, which only scores again."""
EVERY: tuple[Judging, ...] = ("contest", "design", "synthesis")
SCORED: tuple[Judging, ...] = (*EVERY, "scores")
"""Kinds of judging in which the judge scores the debaters. Every presentation order asks for these fields."""
SOLVED: tuple[Judging, ...] = ("design", "synthesis")
"""Kinds of judging in which the judge also writes a solution."""
Section = Literal["title", "answer", "reasons", "scores", "solution", "hidden"]
"""Part of a displayed verdict, such as the title or the answer."""
Combination = Literal["first", "union", "mean", "speaker", "own"]
"""Method for combining several values of a field, such as `union` or `mean`. `first` takes the first
non-empty value. Some methods are rules of the field in `moot.judging`."""


@dataclass(frozen=True)
class VerdictField:
    """Rules for requesting, combining and displaying one field of a verdict."""

    label: str
    """Label of the field in displayed verdicts."""
    ask: str
    """Description of the field in the JSON schema, which tells the model what to write. Empty: the prompt
    describes the field."""
    asked_for: tuple[Judging, ...] = EVERY
    required: bool = False
    """True if the JSON schema marks this field as required. Replies without it are still accepted."""
    ask_order: int = 50
    """Sort position of the field in the model's reply; lower numbers come first. Fields with equal numbers
    keep the order of definition."""
    show_order: int = 50
    """Sort position of the field in a displayed verdict; lower numbers come first. Fields with equal
    numbers keep the order of definition."""
    section: Section = "answer"
    lead: bool = False
    """True if screens and reports show this field in the short answer at the top."""
    orders: Combination = "first"
    """Method for combining the values of the two judging passes. Each pass presents the debaters to the judge
    in a different order."""
    panel: Combination = "speaker"
    """Method for combining the values of all judges on a panel."""
    tokens: int = 60
    """Expected length of this field in the judge's reply, in tokens. If the field has rows, the number
    applies to each debater's row."""
    name: str = ""
    """Name of this field in `VerdictContent` and in stored verdicts."""
    kind: Any = str
    """Type of the value stored in this verdict field. It is copied from the field's annotation in
    `VerdictContent`."""


class VerdictContent(TypedDict):
    """Fields of a verdict that the judge fills in, in display order.

    Each line defines one field.
    """

    # fmt: off
    question: Annotated[str, VerdictField("Question", "The debated question, in one line.", section="title", required=True, ask_order=30)]  # noqa: E501  # one line for each field
    decision: Annotated[str, VerdictField("Decision", "One sentence of at most 20 words that somebody can act on.", required=True, lead=True, ask_order=31)]  # noqa: E501
    confidence: Annotated[float | None, VerdictField("Confidence", "", required=True, lead=True, ask_order=39, orders="mean", panel="mean", tokens=10)]  # noqa: E501
    raised_by: Annotated[str, VerdictField("What would raise the confidence", "The one finding that would raise your confidence most, in at most 20 words.", section="hidden", ask_order=39, tokens=40)]  # noqa: E501
    conditions: Annotated[list[str], VerdictField("Conditions", "Every condition under which the decision holds.", lead=True, ask_order=32, orders="union", tokens=120)]  # noqa: E501
    first_step: Annotated[str, VerdictField("First step", "Who does what first, and by which date.", lead=True, ask_order=34)]  # noqa: E501
    would_reverse: Annotated[list[str], VerdictField("What would reverse it", "Findings that would reverse the decision, each with the date by which it shows.", lead=True, ask_order=33, orders="union", tokens=120)]  # noqa: E501
    tradeoffs: Annotated[list[str], VerdictField("Trade-offs", "What the solution gives up, and for what.", asked_for=SOLVED, ask_order=36, orders="union", tokens=120)]  # noqa: E501
    winner: Annotated[str, VerdictField("Verdict", "", required=True, lead=True, ask_order=70, show_order=90, orders="own", panel="own", tokens=10, asked_for=SCORED)]  # noqa: E501
    despite_scores: Annotated[str, VerdictField("Despite the scores", "If the winner's scores are not the highest, why; otherwise empty.", section="hidden", ask_order=71, tokens=40, asked_for=SCORED)]  # noqa: E501
    winner_confidence: Annotated[float | None, VerdictField("Confidence in the winner", "", asked_for=("contest", "scores"), required=True, lead=True, ask_order=72, show_order=91, orders="own", panel="own", tokens=10)]  # noqa: E501
    dissent: Annotated[list[str], VerdictField("Dissent", "What somebody who rejects the decision would rightly say.", ask_order=35, orders="union", panel="union", tokens=120)]  # noqa: E501
    final_position: Annotated[dict[str, str], VerdictField("Final positions", "", ask_order=20, orders="union", tokens=60)]  # noqa: E501
    moved: Annotated[list[Move], VerdictField("Who moved", "Each change of a position.", ask_order=21, orders="union", tokens=90)]  # noqa: E501
    agreed: Annotated[list[str], VerdictField("Agreed", "What all debaters agree on at the end.", ask_order=22, orders="union", tokens=120)]  # noqa: E501
    checks: Annotated[list[OpenCheck], VerdictField("Before you decide", "Questions whose answers would change the decision, the most important first.", ask_order=34, tokens=250)]  # noqa: E501
    unsourced: Annotated[list[str], VerdictField("Unsourced", "Figures of your texts, copied word for word, and facts that have no source.", ask_order=40, orders="union", tokens=120)]  # noqa: E501
    unmet_requirements: Annotated[list[Unmet], VerdictField("Requirements not met", "What the topic asks for and your decision does not give.", ask_order=38, orders="union", tokens=120)]  # noqa: E501
    reasoning: Annotated[str, VerdictField("Reasons", "In at most 200 words.", section="reasons", required=True, ask_order=10, orders="own", tokens=300, asked_for=SCORED)]  # noqa: E501
    considered: Annotated[list[ConsideredOption], VerdictField("Options", "", section="reasons", ask_order=25, tokens=150)]  # noqa: E501
    by_criterion: Annotated[list[CriterionResult], VerdictField("The decision by criterion", "", section="reasons", asked_for=SOLVED, ask_order=38, tokens=0)]  # noqa: E501
    scores: Annotated[dict[str, dict[str, ScoreRecord]], VerdictField("Scores", "", section="scores", ask_order=60, orders="own", panel="own", tokens=0, asked_for=("contest", "scores"))]  # noqa: E501
    solution_markdown: Annotated[str, VerdictField("Solution", "In Markdown, in at most 700 words.", section="solution", asked_for=SOLVED, ask_order=37, tokens=1_100)]  # noqa: E501
    # fmt: on


def _fields_of(content: type) -> dict[str, VerdictField]:
    hints = get_type_hints(content, include_extras=True)
    args = {name: get_args(hint) for name, hint in hints.items()}
    return {name: replace(field, name=name, kind=kind) for name, (kind, field) in args.items()}


VERDICT_FIELDS: dict[str, VerdictField] = _fields_of(VerdictContent)
"""All fields of the verdict, keyed by field name."""


def asked_fields(judging: Judging) -> list[VerdictField]:
    """Return the fields that the judge's reply must contain, in the order of the reply."""
    fields = (field for field in VERDICT_FIELDS.values() if judging in field.asked_for)
    return sorted(fields, key=lambda field: field.ask_order)


def shown_fields(*sections: Section) -> list[VerdictField]:
    """Return the verdict fields that belong to the given sections, in display order."""
    fields = (field for field in VERDICT_FIELDS.values() if field.section in sections)
    return sorted(fields, key=lambda field: field.show_order)


class AnswerCounts(TypedDict):
    """How many different answers the debaters gave to the main question, conditions aside."""

    debaters: int
    openings: int
    """Number of different answers in the openings."""
    end: int
    """Number of different answers at the end."""


class MessagesRead(TypedDict):
    """Number of the debaters' messages that a judge's prompt showed."""

    full: int
    part: int
    """Number of messages that the prompt showed in part."""
    of: int
    """Number of all messages of the debaters."""


DraftQuestion = Literal["fails", "contradicts", "sums", "missing"]
"""Question about the draft of a decision: a step that fails, two contradicting sentences, a wrong sum, or an
adopted point that is missing."""


class DraftEdit(TypedDict):
    """Passage of a draft that the judge replaced."""

    replaces: str
    by: str
    field: NotRequired[str]
    """Field of the verdict that holds the passage. Missing in debates stored by older versions."""


class DraftFinding(TypedDict):
    """Fault that a debater found in the draft of a decision, and what came of it."""

    member: str
    """Id of the debater."""
    question: DraftQuestion
    quotes: list[str]
    """Passages of the draft, verbatim."""
    problem: str
    outcome: Literal["corrected", "rejected", "not found", "unanswered"]
    """`corrected`: a correction was carried out. `rejected`: the judge calls the finding wrong, and says why.
    `not found`: its correction names a passage that the draft does not contain or must keep. `unanswered`:
    the judge neither corrected the draft nor rejected the finding."""
    reason: str
    """Judge's reason why the finding is right or wrong."""
    edits: list[DraftEdit]
    """Corrections that were carried out."""


class DraftTest(TypedDict):
    """Test of the draft of a decision by debaters."""

    status: Literal["tested", "not tested"]
    error: str
    """Reason why the draft was not tested, or `""`."""
    members: list[str]
    """Ids of the debaters who tested the draft."""
    quoted_answers: int
    """Number of questions answered with a sentence quoted from the draft."""
    questions: int
    """Number of questions asked: four to each debater."""
    dropped: int
    """Number of findings that were dropped because they quote nothing from the draft."""
    probabilities: dict[str, float]
    """Probability with which each debater expects the draft to hold, from 0 to 100, keyed by debater id."""
    findings: list[DraftFinding]


class Verdict(VerdictContent):
    """Stored verdict of one judge."""

    status: Literal["ok", "failed"]
    """Status of the verdict, either `ok` or `failed`. Ignore the content of a `failed` verdict."""
    error: str
    """Reason for the judging failure, or empty if judging succeeded."""
    judge: str
    """Slug that identifies the judge who gave this verdict."""
    model: str
    rubric: str
    """Name of the rubric that the judge used."""
    criteria: NotRequired[list[CriterionScale]]
    """Criteria by which the judge scored the debaters. Missing if the verdict contains no scores."""
    placeholder: NotRequired[bool]
    """True if the built-in offline model wrote the verdict instead of a real judge. The content is then
    meaningless."""
    options: NotRequired[list[str]]
    """Possible answers to the debated question. The decision is one of them or `undecided`. Missing if the
    question has no options."""
    read: NotRequired[MessagesRead]
    """How many messages the judge's prompt showed. Of several prompts, the one with the fewest in full."""
    judging: NotRequired[int]
    """Sequence number of this judgement within the debate, starting at 1. The combined verdict has the same
    number."""
    order: list[str]
    """Ids of the debaters, in the order in which the judge saw them."""
    totals: dict[str, float]
    """Weighted total score of each debater, from 0 to 100. It is rounded to one decimal place. Debaters
    without scores are omitted."""
    dropped_citations: int
    """Number of citations that were dropped because the cited message does not exist."""
    dropped_scores: int
    """Number of the judge's scores that were dropped because they were invalid. A score is invalid if it is a
    duplicate, is not finite, or has an unknown debater or criterion."""
    clamped_scores: int
    """Number of the judge's scores that were outside a criterion's scale. Each of them was set to the nearest
    limit of the scale."""
    notes: list[str]
    """Remarks from the validation of the verdict, one sentence each."""
    flip: Flip
    lengths: dict[str, int]
    """Number of tokens in each debater's messages. The numbers show whether longer messages get higher
    scores."""
    usage: EntryUsage


COUNT = "count"
"""Judge id of a verdict that counts the debaters' answers."""


class FinalAnswer(TypedDict):
    """Final answer that a debater gave individually after the discussion."""

    debater: str
    answer: str
    """Answer in the debater's own words, or one of the options if the question has options."""
    confidence: float | None
    """Confidence stated by the debater, from 0 to 100, or None if the debater stated none."""
    reasoning: str
    model: str
    placeholder: bool
    """True if the answer is a placeholder written by the offline model. It is then not counted."""
    error: str
    """Reason why the debater gave no answer, or empty if the debater answered."""
    turns: int
    """Number of completed turns when the debater gave the answer."""
    by_call: NotRequired[bool]
    """True if a model call read the answer from the debater's words."""
    counts_as: NotRequired[str]
    """Normalised form of another final answer that says the same, according to a model call."""


class Stage(TypedDict):
    """Cost and result of one stage of a multi-stage debate."""

    name: str
    calls: int
    """Number of model calls in this stage of the debate. Each answer or message of a debater is one call."""
    answer: str
    """Answer that leads after this stage, or empty if none does."""
    votes: dict[str, float]
    """Number of votes for each answer at the end of this stage."""


class Dissent(TypedDict):
    """Judge who chose a different winner than the panel."""

    judge: str
    winner: str


class RuleResult(TypedDict):
    """Result of applying a decision rule to the votes of a panel's judges."""

    rule: Rule
    winner: str
    """Id of the winning debater, or `tie` or `synthesis`."""
    tally: dict[str, float]
    """Points of each debater under the decision rule. Depending on the rule, these are mean scores, votes,
    Borda points or approvals. If answers are counted, the votes of each answer."""
    tied: list[str]
    """Ids of the debaters tied for first place, in sorted order. Empty unless `winner` is `tie`."""
    mean_scores: dict[str, float]
    """Each debater's total score, averaged over the judges who scored that debater."""
    dissent: list[Dissent]
    """Judges who chose a different winner than the panel, sorted by judge id."""
    judges: int
    """Number of ballots cast by the judges."""


class Rate(TypedDict):
    """Observed proportion with its Wilson score interval."""

    k: int
    """Number of successes among `n` observations."""
    n: int
    rate: float | None
    """Observed proportion `k / n`, or None if `n` is 0."""
    low: float
    """Lower bound of the Wilson score interval, from 0 to 1. The bound is 0 if `n` is 0."""
    high: float
    """Upper bound of the Wilson score interval, from 0 to 1. The bound is 1 if `n` is 0."""


class PairAgreement(TypedDict):
    """Agreement between two judges on the items that both rated."""

    first: str
    second: str
    n: int
    """Number of items that both judges rated."""
    agreement: float | None
    """Share of items that both judges rated identically, or None if they rated no items in common."""
    kappa: float | None


class PanelReport(TypedDict, total=False):
    """Statistics on how far a debate's judges agree. Empty if the debate has no judges.

    `None` marks figures that are undefined, such as α of one judge.
    """

    judges: int
    """Number of judges who gave a verdict. Judges who failed are not counted."""
    failed: int
    alpha: float | None
    """Krippendorff's α for interval data. It is computed from cases that at least two judges scored."""
    kappa: float | None
    """Mean of Cohen's κ over all pairs of judges. Pairs for which κ is undefined are left out."""
    flip_rate: float | None
    """Share of judgements in which reversing the order of the debaters changed the winner. Only judgements
    with two passes count."""
    flips: Rate
    """How often reversing the order of the debaters changed the winner. The rate has a 95 % confidence
    interval. Only judgements with two passes count."""
    flip_rates: dict[str, Rate]
    """How often reversing the order of the debaters changed a judge's winner, keyed by judge id. Only
    judgements with two passes count."""
    pairs: list[PairAgreement]
    """Cohen's κ for each pair of judges. It compares which debater leads for each criterion and pair of
    debaters."""
    unanimous: bool | None
    """True if all judges chose the same winner, or None if there are fewer than two judges."""
    mean_scores: dict[str, float]
    """Mean total score of each debater over all judges, from 0 to 100."""
    dissent: list[Dissent]
    """Judges who chose a different winner than the panel."""


class PanelVerdict(Verdict):
    """Combined verdict of all judges.

    The verdict has mean scores and the reasoning of a judge who agrees with it. `outcome` is missing if every
    judge failed. `agreement` is missing if there was no judge, as in a vote.
    """

    speaker: NotRequired[str]
    """Id of the judge who wrote the texts in the combined verdict. These are the reasoning, the solution and
    the open questions."""
    outcome: NotRequired[RuleResult]
    answers: NotRequired[AnswerCounts]
    """Agreement before and after the debate. Missing if the answer of a debater is not known for certain."""
    test: NotRequired[DraftTest]
    """Test of the draft of this decision. Missing if no test was due."""
    stages: NotRequired[list[Stage]]
    """Results of the stages of the debate. Only protocols that stop once a stage has a clear answer have
    stages."""
    agreement: NotRequired[PanelReport]
