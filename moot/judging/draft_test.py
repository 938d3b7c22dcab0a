"""Test of a draft: debaters look for faults in the judge's decision, and the judge answers each finding.

A finding counts only with a sentence that is quoted verbatim from the draft. The judge corrects the draft by
replacing passages, so the rest of the text cannot get lost. If a pass fails, the draft stands, marked as not
tested.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Annotated, Any, cast, get_args

from pydantic import BaseModel, Field, WithJsonSchema

from moot.calls.effects import errors_update
from moot.calls.model_calls import CallGenerator, Hints, ModelCall, Reply
from moot.claims.claim_extraction import find_quotation
from moot.claims.ledger_rendering import board_text
from moot.config import DebateConfig, DebaterConfig
from moot.judging.facts import fact_notes
from moot.judging.judge_floor import criticisms
from moot.judging.verdict_fields import check_text, debaters_confidence
from moot.prompts.debate_context import DebateContext
from moot.prompts.request import between, many, model_params, narrow_schema, one_of, prompt_budget
from moot.prompts.structured_calls import shown_entries, structured_call, structured_data
from moot.prompts.templates import fenced, load_prompt_template
from moot.state import verdict as verdict_types
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, JsonObject, traits_of
from moot.text.plain_text import clip, count_noun
from moot.text.tokens import truncate_middle

TEST = "test"
"""Name of the phase in which debaters test the draft of the decision."""
TEST_DRAFT = load_prompt_template("test_draft", "topic", "draft")
ANSWER_FINDINGS = load_prompt_template("answer_findings", "judged", "topic", "draft", "fixed")

QUESTIONS: tuple[verdict_types.DraftQuestion, ...] = get_args(verdict_types.DraftQuestion)
TESTED_FIELDS = ("decision", "conditions", "first_step", "would_reverse", "solution_markdown", "checks")
"""Fields of the verdict that somebody carries out."""
MIN_QUOTE_WORDS = 3
"""Minimum number of words in a quotation. Shorter texts occur in a draft by chance."""
QUOTES_NEEDED: Mapping[str, int] = {"fails": 1, "contradicts": 2, "sums": 1, "missing": 1}
"""Number of sentences that a finding must quote, by question."""
MAX_EDITS = 4
"""Maximum number of corrections for one finding. A wrong date may stand in several sentences."""
TOPIC_SHARE = 4
"""The topic takes at most this part of a prompt: one fourth. The draft and the messages need the rest."""
POINT_CHARS = (240, 160, 100, 60)
"""Maximum lengths of a point of criticism to try until all points fit, in characters. 60 hold its title."""
ANSWER_TOKENS = 160
"""Estimated number of tokens in the judge's answer to one finding: a reason and one corrected sentence."""


class Look(BaseModel):
    """A debater's answer to one question about the draft."""

    quotes: list[str] = Field(description="Sentences of the draft, copied word for word.")
    problem: str = Field(description="What is wrong and what follows, or an empty text.")


class DraftReading(BaseModel):
    """A debater's answers to the four questions about the draft."""

    fails: Look
    contradicts: Look
    sums: Look
    missing: Look
    probability: Annotated[float | None, WithJsonSchema({"type": "number", "minimum": 0, "maximum": 100})] = (
        None
    )


class Edit(BaseModel):
    """Replacement of one passage of the draft."""

    replaces: str
    by: str


class FindingAnswer(BaseModel):
    """A judge's answer to one finding."""

    finding: str
    reason: str = ""
    right: bool | None = None
    edits: list[Edit] = []


class DraftAnswers(BaseModel):
    """A judge's answers to all findings."""

    answers: list[FindingAnswer]
    confidence: float | None = None


def draft_test_due(state: ConversationState, config: DebateConfig, *, by_default: bool) -> bool:
    """Return True if debaters must test the decision before the debate ends.

    `by_default` applies if the setting `judge.test` is not set.
    """
    verdict: verdict_types.PanelVerdict | None = state.get("verdict") or None
    enabled = by_default if config.judge.test is None else config.judge.test
    if not enabled or verdict is None or verdict["status"] != "ok" or "test" in verdict:
        return False
    is_draft = verdict["judge"] != verdict_types.COUNT and not verdict.get("placeholder")
    return is_draft and bool(verdict["decision"] or verdict["solution_markdown"])


def draft_text(verdict: Mapping[str, Any]) -> str:
    """Return the parts of a verdict that somebody carries out, as Markdown."""
    parts = []
    for name in TESTED_FIELDS:
        if value := verdict.get(name):
            items = [item if isinstance(item, str) else check_text(item) for item in value]
            text = value if isinstance(value, str) else "\n".join(f"- {item}" for item in items)
            parts.append(f"## {verdict_types.VERDICT_FIELDS[name].label}\n{text}")
    return "\n\n".join(parts)


def asked_debaters(debate: DebateContext, verdict: verdict_types.PanelVerdict) -> list[DebaterConfig]:
    """Return the debaters who test the draft: all, or the losing side if the judge wrote no solution.

    People are not asked, because a person has the last word anyway.
    """
    speakers = {entry["speaker"] for entry in debate.state["full_transcript"]}
    members = [each for each in debate.config.debaters if each.id in speakers and not each.is_human]
    if verdict["solution_markdown"] or verdict["winner"] == verdict_types.SYNTHESIS or not members:
        return members
    losers = [each for each in members if each.id != verdict["winner"]] or members
    return [min(losers, key=lambda each: verdict["totals"].get(each.id, 0.0))]


def run_draft_test(debate: DebateContext, end: str = "") -> CallGenerator[JsonObject]:
    """Let debaters test the decision, let the judge answer, and return a state update.

    `end` is the reason why no more calls are allowed, or `""`. The draft then stands, marked as not tested.
    """
    verdict = debate.state["verdict"]
    members = asked_debaters(debate, verdict)
    test = verdict_types.DraftTest(
        status="not tested",
        error=end,
        members=[],
        quoted_answers=0,
        questions=0,
        dropped=0,
        probabilities={},
        findings=[],
    )
    if end or not members:
        test["error"] = end or "no model took part in the debate"
        return _update(verdict, test)
    draft = draft_text(verdict)
    failures: list[str] = []
    replies = yield [_reading_call(debate, member, draft) for member in members]
    for member, reply in zip(members, replies, strict=True):
        data = structured_data(DraftReading, reply)
        if data is None or reply.placeholder:
            failures.append(f"{member.name} did not test the draft: {_error(reply)}")
        else:
            _read(test, member.id, data, draft)
    test["questions"] = len(members) * len(QUESTIONS)
    corrected = verdict
    if not test["members"]:
        test["error"] = failures[0]
    elif not test["findings"]:
        test["status"] = "tested"
    else:
        call = _answer_call(debate, verdict, draft, test["findings"])
        (reply,) = yield [call]
        answers = structured_data(DraftAnswers, reply)
        if answers is None or reply.placeholder:
            test["error"] = f"the judge did not answer the findings: {_error(reply)}"
            failures.append(test["error"])
        else:
            test["status"] = "tested"
            corrected = _answered(verdict, test["findings"], answers, debate.config)
    return {**_update(corrected, test), **errors_update(debate.state, "judge", failures)}


def _error(reply: Reply) -> str:
    return reply.error or "the reply does not have the required form"


def _update(verdict: verdict_types.PanelVerdict, test: verdict_types.DraftTest) -> JsonObject:
    notes = [draft_test_note(test), *verdict["notes"]]
    changed: verdict_types.PanelVerdict = {**verdict, "test": test, "notes": notes}
    return {"verdict": changed, "solution": changed["solution_markdown"]}


def _reading_call(debate: DebateContext, member: DebaterConfig, draft: str) -> ModelCall:
    config, count = debate.config, debate.count
    system = TEST_DRAFT.render(topic=_topic(debate), draft=fenced(draft, config.fence))
    transcript = debate.state["full_transcript"]
    total = config.memory.budget.total
    adopted = _adopted_text(debate, max(0, prompt_budget(total, DraftReading, count) - count(system)) // 3)
    remaining = max(0, total // 2 - count(draft) - count(adopted))
    # What all members see comes first, so that a provider's prefix cache applies to it.
    entries = [*fact_notes(transcript), *_latest_proposals(transcript, member.id)]
    messages = list[str](shown_entries(entries, config, remaining, count) if remaining else ())
    messages.insert(len(fact_notes(transcript)) if messages else 0, adopted)
    hints: Hints = {"phase": TEST, "speaker": member.name}
    question = f"You are {debate.names[member.id]}. Test the draft."
    params = model_params(config, member)
    return structured_call(
        "evaluate",
        config,
        system,
        [*filter(None, messages), question],
        DraftReading,
        count,
        params=params,
        hints=hints,
    )


def _adopted_text(debate: DebateContext, remaining: int) -> str:
    """Return adopted points of criticism in at most `remaining` tokens, at the worst only the newest."""
    checks = debate.state.get("convergence") or []
    labels = {row["point"] for check in checks for row in check.get("adopted", [])}
    points = [each for each in criticisms(debate.state["full_transcript"]) if each.label in labels]
    shortest = ((left_out, POINT_CHARS[-1]) for left_out in range(1, len(points)))
    for left_out, chars in (*((0, chars) for chars in POINT_CHARS), *shortest) if points else ():
        lines = [f"- {each.label}: {board_text(each.point, chars)}" for each in points[left_out:]]
        lines += [f"- Left out: {count_noun(left_out, 'earlier point')}."] if left_out else []
        text = fenced("\n".join(lines), debate.config.fence, "# Criticism that proposals adopted")
        if debate.count(text) <= remaining:
            return text
    return ""


def _topic(debate: DebateContext) -> str:
    config = debate.config
    limit = config.memory.budget.total // TOPIC_SHARE
    return fenced(truncate_middle(debate.state["topic"], limit, debate.count), config.fence)


def _latest_messages(transcript: Sequence[Entry], speaker: str) -> list[Entry]:
    """Return a debater's messages of its last round."""
    arguments = [entry for entry in transcript if entry["speaker"] == speaker and traits_of(entry).argues]
    return [entry for entry in arguments if entry["round"] == arguments[-1]["round"]]


def _quoted(quotes: Sequence[str], draft: str) -> list[str]:
    """Return the passages of the draft that the quotations match."""
    passages = []
    for quote in quotes:
        span = find_quotation(quote, draft) if len(quote.split()) >= MIN_QUOTE_WORDS else None
        if span and draft[slice(*span)] not in passages:
            passages.append(draft[slice(*span)])
    return passages


def _read(test: verdict_types.DraftTest, member: str, data: JsonObject, draft: str) -> None:
    """Add a debater's findings to the test. Findings without a quotation of the draft are counted only."""
    test["members"].append(member)
    if (probability := data["probability"]) is not None and 0 <= probability <= 100:
        test["probabilities"][member] = float(round(probability))
    for question in QUESTIONS:
        quotes, problem = _quoted(data[question]["quotes"], draft), data[question]["problem"].strip()
        test["quoted_answers"] += bool(quotes)
        if problem and len(quotes) < QUOTES_NEEDED[question]:
            test["dropped"] += 1
        elif problem:
            finding = verdict_types.DraftFinding(
                member=member,
                question=question,
                quotes=quotes,
                problem=problem,
                outcome="unanswered",
                reason="",
                edits=[],
            )
            test["findings"].append(finding)


def _labels(findings: Sequence[verdict_types.DraftFinding]) -> list[str]:
    return [f"F{number}" for number in range(1, 1 + len(findings))]


def _answer_call(
    debate: DebateContext,
    verdict: verdict_types.PanelVerdict,
    draft: str,
    findings: Sequence[verdict_types.DraftFinding],
) -> ModelCall:
    config, count, transcript = debate.config, debate.count, debate.state["full_transcript"]
    labels = _labels(findings)
    lines = [
        f"{label}: {finding['problem']} Quoted: {' / '.join(finding['quotes'])}"
        for label, finding in zip(labels, findings, strict=True)
    ]
    fixed = " Do not change the decision: it must stay one of the given options." if config.options else ""
    system = ANSWER_FINDINGS.render(
        judged="a debate", topic=_topic(debate), draft=fenced(draft, config.fence), fixed=fixed
    )
    latest = [entries[-1] for each in config.debaters if (entries := _latest_proposals(transcript, each.id))]
    remaining = max(0, config.memory.budget.total // 2 - count(system) // 2)
    messages = [
        *(shown_entries(latest, config, remaining, count) if remaining else []),
        f"{fenced(chr(10).join(lines), config.fence, 'Findings')}\nAnswer each finding.",
    ]
    judge = config.judge.judges()[0]
    hints: Hints = {"phase": TEST, "speaker": judge.id}
    return structured_call(
        "judge",
        config,
        system,
        messages,
        _answer_schema(labels),
        count,
        least=ANSWER_TOKENS * len(findings),
        params=model_params(config, judge),
        hints=hints,
    )


def _latest_proposals(transcript: Sequence[Entry], speaker: str) -> list[Entry]:
    """Return a debater's last proposal in a list, or else its messages of its last round."""
    proposals = [entry for entry in transcript if entry["speaker"] == speaker and traits_of(entry).proposes]
    return proposals[-1:] or _latest_messages(transcript, speaker)


def _answer_schema(labels: Sequence[str]) -> type[DraftAnswers]:
    answer = narrow_schema(FindingAnswer, {"finding": one_of(labels), "edits": many(Edit, 0, MAX_EDITS)})
    return narrow_schema(
        DraftAnswers,
        {"answers": many(answer, len(labels), len(labels)), "confidence": between(0, 100) | None},
    )


def _answered(
    verdict: verdict_types.PanelVerdict,
    findings: Sequence[verdict_types.DraftFinding],
    answers: JsonObject,
    config: DebateConfig,
) -> verdict_types.PanelVerdict:
    """Return the corrected verdict, and record in each finding what came of it."""
    corrected = deepcopy(verdict)
    done: list[verdict_types.DraftEdit] = []  # one correction may settle several findings
    by_label = {each["finding"]: each for each in reversed(answers["answers"])}
    for label, finding in zip(_labels(findings), findings, strict=True):
        answer = by_label.get(label)
        if answer is None:
            continue
        finding["reason"] = answer["reason"].strip()
        edits = [
            edit for edit in answer["edits"][:MAX_EDITS] if edit["by"].strip() != edit["replaces"].strip()
        ]
        for edit in edits:
            repeated = (
                each for each in done if (each["replaces"], each["by"]) == (edit["replaces"], edit["by"])
            )
            carried_out = next(repeated, None) or _edit(corrected, edit, config)
            finding["edits"] += filter(None, [carried_out])
        done += finding["edits"]
        if finding["edits"]:
            finding["outcome"] = "corrected"
        elif edits:
            finding["outcome"] = "not found"
        elif finding["reason"] and answer["right"] is False:
            finding["outcome"] = "rejected"
    confidence, draft_confidence = answers["confidence"], verdict["confidence"]
    if confidence is not None and draft_confidence is not None:
        confidence = float(round(min(max(confidence, 0.0), 100.0)))
        # A cap for a major unmet requirement stays in force.
        capped = any(each["major"] for each in verdict["unmet_requirements"])
        corrected["confidence"] = min(confidence, draft_confidence) if capped else confidence
    return corrected


def _edit(
    verdict: verdict_types.PanelVerdict, edit: Mapping[str, str], config: DebateConfig
) -> verdict_types.DraftEdit | None:
    """Replace a passage of the draft, and return the correction, or `None` if it was not carried out.

    The decision is never emptied, and stays one of the options if the debate has options.
    """
    fields = cast(dict[str, Any], verdict)
    for name in TESTED_FIELDS:
        value = fields.get(name) or []
        for index, item in enumerate([value] if isinstance(value, str) else value):
            for part, text in ({"": item} if isinstance(item, str) else item).items():
                span = find_quotation(edit["replaces"], text)
                new = text[: span[0]] + edit["by"] + text[span[1] :] if span else text
                new = new.strip()
                is_fixed = name == "decision" and (config.options or not new)
                if span is None or is_fixed or new == text:
                    continue
                if isinstance(value, str):
                    fields[name] = new
                else:
                    row = {**item, part: new} if part and (new or part != "question") else new
                    fields[name] = [each for each in (*value[:index], row, *value[index + 1 :]) if each]
                return verdict_types.DraftEdit(replaces=edit["replaces"], by=edit["by"], field=name)
    return None


_OUTCOMES = {
    "corrected": "corrected",
    "rejected": "rejected with a reason",
    "not found": "with a correction that could not be carried out",
    "unanswered": "not answered by the judge",
}
"""Words for what came of findings, by outcome."""


def draft_test_note(test: verdict_types.DraftTest) -> str:
    """Return a sentence that says whether the decision was tested, and what came of it."""
    if test["status"] != "tested":
        return f"The decision was not tested: {test['error'].rstrip('.')}."
    findings, dropped = test["findings"], test["dropped"]
    counts = Counter(_OUTCOMES[each["outcome"]] for each in findings)
    parts = [f"{counts[words]} {words}" for words in _OUTCOMES.values() if counts[words]]
    result = f"{count_noun(len(findings), 'finding')} ({', '.join(parts)})" if findings else "no findings"
    looked = f"{test['quoted_answers']} of {test['questions']} questions were answered with a quotation"
    unquoted = f" {count_noun(dropped, 'finding')} without a quotation did not count." if dropped else ""
    spread = debaters_confidence(test)
    holds = f" They said with {spread} of 100 that the draft holds." if spread else ""
    count = count_noun(len(test["members"]), "debater")
    return f"{count} tested the decision: {result}; {looked}.{unquoted}{holds}"


def finding_lines(verdict: verdict_types.PanelVerdict, names: Mapping[str, str]) -> list[str]:
    """Return one line for each finding of the test, with its author and what came of it.

    `names` maps debater ids to display names.
    """
    lines, shown_edits = [], list[verdict_types.DraftEdit]()

    def quoted(text: str) -> str:
        return f"“{clip(text, SHOWN_CHARS).rstrip('.')}”"

    def correction(edit: verdict_types.DraftEdit) -> str:
        label = verdict_types.VERDICT_FIELDS[edit["field"]].label if "field" in edit else ""
        return f"{f'in “{label}”: ' * bool(label)}{quoted(edit['by'])}"

    for finding in verdict["test"]["findings"] if "test" in verdict else ():
        quotes, reason = " / ".join(map(quoted, finding["quotes"])), finding["reason"]
        name = names.get(finding["member"], finding["member"])
        new = "; ".join(correction(edit) for edit in finding["edits"] if edit not in shown_edits)
        shown_edits += finding["edits"]
        outcomes = {
            "corrected": f"Corrected {new}." if new else "Corrected as above.",
            "rejected": f"Rejected because: {reason}",
            "not found": "The judge's correction could not be carried out: check this point.",
            "unanswered": f"Not answered by the judge{f', who wrote: {reason}' if reason else '.'}",
        }
        lines.append(f"{name}: {finding['problem']} {quotes}. {outcomes[finding['outcome']]}")
    return lines


SHOWN_CHARS = 240
"""Maximum length of a quotation in the list of findings, in characters. A long sentence has about 240."""
