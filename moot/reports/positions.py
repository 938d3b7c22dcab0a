"""Position of each debater, and how it changed during the debate."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from statistics import fmean

from moot.claims.claim_extraction import PROPOSAL_CHARS
from moot.claims.claim_status import Ledger, StanceChange
from moot.claims.ledger_from_events import fold_events
from moot.claims.ledger_rendering import board_text, side_conceded, stance_text, stances_text
from moot.documents import ClaimStatusRecord, DebateDocument, PositionChange, Stance, Usage
from moot.reports.markdown_html import group_digits
from moot.reports.verdict_view import Participant, Participants
from moot.state.claim_events import MAIN_QUESTION, OVERALL, Challenge, Evidence, Gap, Question, StanceEvent
from moot.state.conversation import CallReceipt, Omission, Receipt
from moot.state.entries import seq_of, tokens_of

EVIDENCE_SOURCES = {
    "background": "from the background",
    "tool": "from a tool result",
    "message": "from a message",
    "none": "no source",
}
"""Descriptions that reports show for the sources of evidence, keyed by source."""
MAX_ROUNDS = 24
"""Maximum number of cells in a strip of answers. A longer debate shows its last rounds."""
MAX_MOMENTS = 24
"""Maximum number of entries on a debater's timeline. Longer timelines show only changes of mind."""


@dataclass(frozen=True)
class HeldPosition:
    """A debater's position on one claim, with evidence and unanswered challenges."""

    aspect: str
    """Aspect of the topic to which the claim belongs."""
    name: str
    position: str
    evidence: Sequence[str]
    challenged: Sequence[str]


@dataclass(frozen=True)
class Moment:
    """Event on a debater's timeline, either a statement or a change of position."""

    when: str
    kind: str
    """Kind of timeline event: `held` (statement), `shift` (change of position), `move` (change that the judge
    describes), `conditions` (same answer on changed conditions), `start` or `end`."""
    text: str
    before: str = ""
    message_id: str = ""
    cause: str = ""
    """Id of another participant's message that caused the change. Empty if the judge named none."""
    change: str = ""
    """Description of the change, such as `changed position` or `added a condition`. Empty if nothing
    changed."""
    claim: str = ""
    """Claim that the change is about. Empty: the main question."""

    @property
    def quoted(self) -> bool:
        """True if reports show the text of this event in quotation marks."""
        return self.kind not in ("start", "end")


@dataclass(frozen=True)
class DebaterPosition:
    """A debater's positions, agreements, concessions and timeline, as shown in a report."""

    person: Participant
    stance: str
    """Final position of the debater, or the last known stance if the final position is unknown."""
    quoted: str
    """Quotation that states the debater's view on the main question. Empty if `stance` shows it or nothing is
    known."""
    began: str
    """Stance of the debater in the configuration. Empty if `stance` shows it."""
    holdings: Sequence[HeldPosition]
    """Positions on claims, by aspect of the topic."""
    agreements: Sequence[str]
    disagreements: Sequence[str]
    conditional: Sequence[str]
    """Claims on which another debater agrees, but under different conditions."""
    concessions: Sequence[str]
    moments: Sequence[Moment]


def read_positions(document: DebateDocument, people: Participants) -> tuple[DebaterPosition, ...]:
    """Collect debaters' positions from claim events, the verdict and the configuration."""
    standing = document["blackboard"]["standing"]
    ledger = fold_events(document["blackboard"]["claim_events"], document["topic"])
    stances_by_claim = {each["id"]: each["stances"] for each in standing["claims"]}
    # The debater's stance covers the main question, so only other claims are listed.
    other_claims = [each for each in standing["claims"] if each["id"] not in ledger.proposals]
    texts = {each["id"]: each["text"] for each in other_claims}
    all_texts = {each["id"]: each["text"] for each in standing["claims"]}
    all_texts |= {MAIN_QUESTION: "the main question"}
    standings = []
    for person in people.values():
        debater, main_claim = person.id, ledger.main_claim(person.id)
        stance = stances_by_claim.get(main_claim, {}).get(debater)
        holdings = list(_holdings(document, other_claims, debater, ledger))
        aspects = [*dict.fromkeys(each.aspect for each in holdings)]
        holdings.sort(key=lambda each: aspects.index(each.aspect))
        agreements: list[str] = []
        disagreements: list[str] = []
        conditional: list[str] = []
        for other in people.values():
            if other.id == debater:
                continue
            ground = ledger.common_ground(debater, other.id)
            disagreements += [
                f"{other.name}, {ledger.disagreement_strength(key, debater, other.id)}: {all_texts[key]}"
                for key in ground.differing
                if key in all_texts
            ]
            for key in ground.agreed:
                if key in texts:
                    event = ledger.stance(debater, key)
                    condition = f" ({event['condition']})" if event and event["condition"] else ""
                    answer = "no" if ledger.sign(debater, key) < 0 else "yes"
                    agreements.append(f"{other.name}: {answer} to: {texts[key]}{condition}")
            for key in ground.conditional:
                if key in texts:
                    stances = stances_text(
                        ledger, {each.id: each.name for each in people.values()}, key, (debater, other.id)
                    )
                    conditional.append(f"{other.name}: {texts[key]} ({stances})")
        concessions = [
            cited_quotation(each)
            for each in standing["concessions"]
            if each["debater"] == debater
            and not any(each["quote"] in holding.position for holding in holdings)
        ]
        statement, final_position = (
            quoted_stance(stance) if stance else "",
            _final_position(document, debater),
        )
        if main_claim != MAIN_QUESTION:
            statement += f", on the proposal: {board_text(ledger.claims[main_claim]['text'], PROPOSAL_CHARS)}"
        if final_position and stance and stance["kind"] == "withdraws" and not stance.get("gave_up"):
            statement = f"gave up its earlier answer: {cited_quotation(stance)}"
        text = final_position or statement or person.stance
        moments = _timeline(document, person, stance)
        standings.append(
            DebaterPosition(
                person=person,
                stance=text,
                quoted="" if statement == text else statement,
                began="" if person.stance == text else person.stance,
                holdings=holdings,
                agreements=agreements,
                disagreements=disagreements,
                conditional=conditional,
                concessions=concessions,
                moments=moments,
            )
        )
    return tuple(standings)


def quoted_stance(stance: Stance, side: str = "") -> str:
    """Return a stance with its quotation. `side` is what a concession accepts."""
    return f"{stance_text(stance)}{side}: {cited_quotation(stance)}"


def cited_quotation(
    event: Stance | StanceEvent | Evidence | Gap | Question | Challenge | PositionChange,
) -> str:
    """Return a claim event's quotation with the id of the quoted message."""
    return f"“{event['quote']}” [{event['message_id']}]"


def evidence_text(event: Evidence) -> str:
    """Return a piece of evidence as a quotation with its source."""
    source = EVIDENCE_SOURCES.get(event.get("source", ""), "")
    return cited_quotation(event) + (f" ({source})" if source else "")


def _holdings(
    document: DebateDocument, claims: Sequence[ClaimStatusRecord], debater: str, ledger: Ledger
) -> Iterator[HeldPosition]:
    """Yield a debater's positions on claims.

    A claim is included if the debater addressed it or was challenged on it. A position includes the debater's
    evidence and the challenges that the debater has not answered.
    """
    open_challenges = document["blackboard"]["standing"]["open_challenges"]
    evidence, challenges = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for event in document["blackboard"]["claim_events"]:
        if event["type"] == "evidence" and event["debater"] == debater:
            evidence[event["claim"]].append(evidence_text(event))
        elif event["type"] == "challenge" and event["to"] == debater and event["id"] in open_challenges:
            challenges[event["claim"]].append(cited_quotation(event))
    for each in claims:
        key, stance = each["id"], each["stances"].get(debater)
        if stance or key in evidence or key in challenges:
            # The quotation alone is enough if the claim repeats it.
            is_quote = stance is not None and board_text(stance["quote"]).startswith(each["text"].rstrip("…"))
            latest = None if is_quote else ledger.stance(debater, key)
            position = (
                quoted_stance(stance, side_conceded(ledger, latest) if latest else "") if stance else ""
            )
            name = "" if is_quote else each["text"].removesuffix(".")
            yield HeldPosition(each["aspect"], name, position, evidence[key], challenges[key])
    if "" in evidence or "" in challenges:
        yield HeldPosition(OVERALL, "", "", evidence[""], challenges[""])


def _timeline(document: DebateDocument, person: Participant, main_stance: Stance | None) -> list[Moment]:
    """Return the events on a debater's timeline, in the order of the debate.

    Changes come from the claim ledger and from the judge's `moved`. If both cite the same message, or a
    change on the main question in the same round, the judge's wording counts. A move stands at the debater's
    own message, not at the message that caused it.
    """
    rounds: Mapping[str, int] = {entry["id"]: entry["round"] for entry in document["transcript"]}
    positions = {message_id: position for position, message_id in enumerate(rounds)}
    moves = _moves(document, person, rounds)
    judged_ids = {moment.message_id for moment in moves if moment.message_id}
    judged_rounds = {moment.when for moment in moves if rounds.get(moment.message_id)}
    statements = list(_statements(document, person, main_stance, rounds, judged_rounds))
    moments = [*(each for each in statements if each.message_id not in judged_ids), *moves]
    moments.sort(key=lambda each: positions.get(each.message_id or each.cause, len(positions)))
    if not moments:
        return []
    if len(moments) > MAX_MOMENTS:
        moments = [moment for moment in moments if moment.kind != "held"]
    if person.stance:
        moments.insert(0, Moment("At the start", "start", person.stance))
    final_position = _final_position(document, person.id)
    if final_position and final_position not in (moment.text for moment in moments):
        moments.append(Moment("At the end", "end", final_position))
    return moments


def _final_position(document: DebateDocument, debater: str) -> str:
    """Return the final position that the judge attributes to a debater, or `""` if there is none."""
    verdict = document["verdict"]
    if not verdict or verdict["status"] == "failed" or verdict.get("placeholder"):
        return ""
    return verdict.get("final_position", {}).get(debater, "").strip()


def _moves(document: DebateDocument, person: Participant, rounds: Mapping[str, int]) -> list[Moment]:
    """Return the debater's changes of position that the judge found.

    A move has the date of the first message that can state it. That is no criticism, was written after the
    step of the message that caused the move, and is not the debater's first message, the opening position.
    """
    verdict, steps = document["verdict"], {each["entry_id"]: each["step"] for each in document["receipts"]}
    own_entries = [entry for entry in document["transcript"] if entry["speaker"] == person.id]
    stating_ids = [entry["id"] for entry in own_entries[1:] if entry["kind"] != "critique"]
    moments = []
    for move in verdict.get("moved", []) if verdict else []:
        if move["debater"] != person.id or not move["after"]:
            continue
        others = rounds.keys() - {entry["id"] for entry in own_entries}
        cause = move["caused_by"] if move["caused_by"] in others else ""
        later_ids = [
            each for each in stating_ids if each > cause and steps.get(each, each) != steps.get(cause, cause)
        ]
        stated_ids = [each for each in later_ids if each >= move["stated_in"]]
        message_id = stated_ids[0] if stated_ids and (move["stated_in"] or cause) else ""
        moments.append(
            Moment(
                when=_when(message_id or cause, rounds),
                kind="move",
                text=move["after"],
                before=move["before"],
                message_id=message_id,
                cause=cause,
                change="changed position",
            )
        )
    return moments


def _statements(
    document: DebateDocument,
    person: Participant,
    main_stance: Stance | None,
    rounds: Mapping[str, int],
    judged_rounds: Set[str],
) -> Iterator[Moment]:
    """Yield timeline events for a debater's statements and changes of position.

    The statements are about the main question, changes also about other claims. Changes on the main question
    in `judged_rounds` are left out, because the judge reports them.
    """
    standing = document["blackboard"]["standing"]
    changes = {each["event"]: each for each in standing["changes"]}
    proposals = {each["claim"] for each in document["blackboard"]["claim_events"] if each["type"] == "amends"}
    others = (each for each in standing["claims"] if each["id"] not in {MAIN_QUESTION, *proposals})
    side_claims = {each["id"]: board_text(each["text"]).removesuffix(".") for each in others}
    history = set(main_stance["history"]) if main_stance else set()
    for event in document["blackboard"]["claim_events"]:
        if event["type"] != "event" or event["debater"] != person.id:
            continue
        when = _when(event["message_id"], rounds)
        change = changes.get(event["id"])
        if change and event["claim"] == MAIN_QUESTION and when in judged_rounds:
            continue
        if change or event["id"] in history:
            conditions = change["new_conditions"] if change else ""
            yield Moment(
                when=when,
                kind="conditions" if conditions else "shift" if change else "held",
                text=event["quote"],
                before=change["before"] if change else "",
                message_id=event["message_id"],
                change=conditions or ("changed position" if change else ""),
                claim=side_claims.get(event["claim"], ""),
            )


def _when(message_id: str, rounds: Mapping[str, int]) -> str:
    return f"Round {rounds[message_id]}" if rounds.get(message_id) else "During the debate"


@dataclass(frozen=True)
class Cell:
    """A debater's answer to the main question at the end of a round."""

    round: int
    answer: str
    """`yes`, `no`, `conditional`, `open`, or the label of another answer. Empty if no claim states it."""
    text: str
    """Answer in words, for readers who do not see the color."""
    turns: Sequence[Moment]
    """Changes of position in this round."""


@dataclass(frozen=True)
class Strip:
    """A debater's answers by round."""

    person: Participant
    cells: Sequence[Cell]


def answer_strips(document: DebateDocument, standings: Sequence[DebaterPosition]) -> list[Strip]:
    """Return each debater's answers by round, from the claim events and the moves that the judge named.

    Without extracted claims, the answers are unknown, and the cells only show the changes of position. The
    result is empty if the debate has no rounds, or if nothing is known about any debater's position.
    """
    rounds = {entry["id"]: entry["round"] for entry in document["transcript"]}
    last_round = max(rounds.values(), default=0)
    shown_rounds = range(max(1, last_round - MAX_ROUNDS + 1), last_round + 1)
    timeline = fold_events(document["blackboard"]["claim_events"], document["topic"]).timeline(MAIN_QUESTION)
    strips = []
    for side in standings:
        by_round: dict[int, StanceChange] = {}
        turns: dict[int, list[Moment]] = {}
        for change in timeline:
            if change.event["debater"] == side.person.id:
                by_round[rounds.get(change.event["message_id"], 0)] = change
        for moment in side.moments:
            is_main = moment.message_id in {each.event["message_id"] for each in timeline.changes}
            if (moment.kind == "move" or (moment.change and is_main)) and moment.message_id in rounds:
                turns.setdefault(rounds[moment.message_id], []).append(moment)
        cells, answer = [], ("", "not stated")
        for number in range(1, last_round + 1):
            answer = _answer(by_round[number]) if number in by_round else answer
            if number in shown_rounds:
                cells.append(Cell(number, *answer, turns.get(number, ())))
        if side.person.turns and any(cell.answer or cell.turns for cell in cells):
            strips.append(Strip(side.person, cells))
    return strips


def _answer(change: StanceChange) -> tuple[str, str]:
    if not change.side:
        return "open", stance_text(change.event)
    if change.side == "yes" and change.conditions:
        return "conditional", "yes, on a condition"
    return change.side, change.side + (", on a condition" if change.conditions else "")


def answers_shown(strips: Sequence[Strip]) -> Mapping[str, str]:
    """Return the class of the color of each answer in the strips, keyed by answer, in order of appearance."""
    known = {"yes", "no", "conditional", "open"}
    answers = dict.fromkeys(cell.answer for strip in strips for cell in strip.cells if cell.answer)
    others = [answer for answer in answers if answer not in known]
    return {answer: answer if answer in known else f"s{others.index(answer) % 7}" for answer in answers}


class Prompts:
    """Statistics about the prompts of a debate, computed from the records of its model calls."""

    def __init__(self, receipts: Sequence[Receipt], calls: Sequence[CallReceipt] = ()) -> None:
        self.receipts = receipts
        budgets = [receipt["budget"] for receipt in receipts]
        totals = [receipt["total_tokens"] for receipt in receipts]
        self.budget = max(budgets, default=None)
        """Largest token budget of any prompt, or `None` if there are no prompts."""
        self.largest = max(totals, default=0)
        self.mean = fmean(totals) if totals else 0.0
        self.over_budget = sum(total > budget for total, budget in zip(totals, budgets, strict=True))
        """Number of prompts that exceed their token budget."""
        times: Counter[tuple[str, str]] = Counter()
        tokens: Counter[tuple[str, str]] = Counter()
        judge_calls = [call for call in calls if call["purpose"] == "judge"]
        for receipt in (*receipts, *judge_calls):
            for omission in receipt["omitted"]:
                # Omitted messages share one row, because there can be thousands.
                what = "messages" if seq_of(omission["what"]) is not None else omission["what"]
                what = what if "speaker" in receipt else f"{what}, for the judge"
                key = (what, omission["why"])
                times[key] += 1
                tokens[key] += omission["tokens"]
        self.omissions: Sequence[Omission] = [
            {"what": key[0], "why": key[1], "tokens": total, "count": times[key]}
            for key, total in tokens.most_common(12)
        ]
        """The 12 largest groups of omitted content, by content and reason."""


@dataclass(frozen=True)
class Figure:
    """Number in a report, with a label and a note."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """A planned and an actual amount of usage, such as a number of tokens."""

    name: str
    planned: float
    actual: float

    @property
    def ratio(self) -> str:
        """Actual amount as a percentage of the planned amount, such as `80 %`."""
        return f"{100 * self.actual / self.planned:.0f} %" if self.planned else "–"

    def share(self, value: float) -> int:
        """Return the length of the bar for `value`, in percent of the longest bar."""
        return round(100 * value / (max(self.planned, self.actual) or 1))


def read_usage(usage: Usage) -> tuple[Figure, ...]:
    """Return how many calls and tokens a debate used, and their cost, as figures for a report."""
    if not usage["calls"] and not tokens_of(usage):
        return ()
    prompt, cached, cost = usage["prompt_tokens"], usage["cached_tokens"], usage["cost_usd"]
    return (
        Figure("Model calls", group_digits(usage["calls"])),
        Figure("Prompt tokens", group_digits(prompt)),
        Figure("Reply tokens", group_digits(usage["completion_tokens"])),
        Figure("Cached share", f"{100 * cached / prompt:.0f} %" if prompt else "–", f"{cached:,} tokens"),
        Figure("Cost", f"${cost:,.4f}" if cost else "–", "" if cost else "no prices configured"),
    )


def read_plan(document: DebateDocument) -> tuple[Comparison, ...]:
    """Return comparisons of a debate's planned and actual usage, such as numbers of tokens."""
    planned = document.get("planned", {})
    actual = {key: amount for key, amount in document["usage"].items() if isinstance(amount, int | float)}
    rows = []
    for key, value in planned.items():
        bound = next((each for each in ("at_least", "at_most") if key.endswith(f"_{each}")), "")
        amount = key.removesuffix(f"_{bound}")
        if (
            amount in actual
            and isinstance(value, int | float)
            and not (bound and value == planned.get(amount))
        ):
            name = ", ".join(filter(None, (amount, bound))).replace("_", " ").capitalize()
            rows.append(Comparison(name, value, actual[amount]))
    return tuple(rows)


SECTIONS = ("system", "topic", "summary", "messages", "turn_suffix", "blackboard", "retrieved")
"""Prompt sections, in the order in which reports show them."""
MAX_BARS = 60
"""Maximum number of bars in the chart of prompts. A bar stands for several prompts if there are more."""


@dataclass(frozen=True)
class PromptChart:
    """Stacked bars of the tokens in prompts, from 0 to 100 % of the largest prompt or the budget."""

    sections: Sequence[Sequence[tuple[float, float]]]
    """Bars of each section, each with its top and its height in percent."""
    budget: float | None
    """Height of the budget in percent from the top, or `None` if it is unknown."""


def prompt_chart(prompts: Prompts) -> PromptChart | None:
    """Return the chart of all prompts, or `None` if there are fewer than two."""
    receipts = prompts.receipts
    if len(receipts) < 2:
        return None
    size = -(-len(receipts) // MAX_BARS)
    groups = [receipts[start : start + size] for start in range(0, len(receipts), size)]
    largest = max(prompts.budget or 0, prompts.largest) or 1
    base, sections = [100.0] * len(groups), []
    for name in SECTIONS:
        shares = [100 * fmean(each["sections"].get(name, 0) for each in group) / largest for group in groups]
        base = [top - share for top, share in zip(base, shares, strict=True)]
        sections.append([*zip(base, shares, strict=True)])
    budget = 100 - 100 * prompts.budget / largest if prompts.budget else None
    return PromptChart(sections, budget)
