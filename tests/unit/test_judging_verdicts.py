"""Rubrics, and verdicts made from the response of a judge."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from moot.calls.model_calls import Reply
from moot.config import rubrics
from moot.config.config_files import make_config
from moot.config.rubrics import Criterion, Rubric, load_rubric, parse_rubric, shipped_rubrics
from moot.judging.judge_prompt import BY_CRITERION, CONTEST, OPTIONS, SCORES, VERDICT, VERDICT_ALONE
from moot.judging.panel import as_decision, ballots_of
from moot.judging.response_check import ResponseCheck, failed_verdict
from moot.judging.response_schema import (
    CriterionScore,
    JudgeResponse,
    UnmetRequirement,
    WeighedOption,
    response_schema,
    response_type,
)
from moot.judging.rubrics import rubric_for
from moot.judging.verdict_fields import changed_text, shown
from moot.models.structured import parse_reply
from moot.protocols.registry import protocol_named
from moot.protocols.result import verdict_text
from moot.state.conversation import DebateQuestion
from moot.state.errors import ConfigError
from moot.state.verdict import Judging, Verdict, asked_fields

RUBRIC = Rubric(
    name="small",
    criteria=(
        Criterion(id="evidence", name="Evidence", weight=3),
        Criterion(id="clarity", name="Clarity", scale_min=0, scale_max=4),
    ),
)
SOLUTION = response_type("design")
KNOWN = {"m000001", "m000002"}
NAMES = {"ada": "Ada", "bo": "Bo Ray"}


def score(debater: str, criterion: str, value: float, *citations: str) -> CriterionScore:
    return CriterionScore(debater=debater, criterion=criterion, score=value, citations=list(citations))


def response(
    winner: str = "ada", *scores: CriterionScore, confidence: float = 80, **more: Any
) -> JudgeResponse:
    kind = response_type("contest" if scores else "design")
    return kind(reasoning="Because.", winner=winner, scores=list(scores), confidence=confidence, **more)


def check(judge_response: JudgeResponse) -> Verdict:
    check = ResponseCheck(RUBRIC, ["ada", "bo"], KNOWN, "j1", {"ada": 9, "bo": 4}, NAMES)
    return check.response_verdict(judge_response, Reply(model="m"))


def test_valid_response_becomes_a_verdict() -> None:
    judge_response = response(
        "ada", score("ada", "evidence", 10, "m000001"), score("ada", "clarity", 2), score("bo", "evidence", 1)
    )
    verdict = check(judge_response)
    assert (verdict["status"], verdict["winner"], verdict["confidence"]) == ("ok", "ada", 80)
    assert verdict["scores"]["ada"]["evidence"] == {"score": 10, "reason": "", "citations": ["m000001"]}
    assert verdict["totals"] == {"ada": pytest.approx(87.5), "bo": 0}
    assert verdict["lengths"] == {"ada": 9, "bo": 4}
    assert (verdict["order"], verdict["notes"]) == (["ada", "bo"], [])


def test_citations_of_unknown_messages_are_dropped_and_counted() -> None:
    verdict = check(response("ada", score("ada", "evidence", 5, "[m000002]", "m000002", "m999999", "none")))
    assert verdict["scores"]["ada"]["evidence"]["citations"] == ["m000002"]
    assert verdict["dropped_citations"] == 2


def test_scores_are_clamped_to_their_scale() -> None:
    verdict = check(response("ada", score("ada", "evidence", 99), score("ada", "clarity", -3)))
    assert [one["score"] for one in verdict["scores"]["ada"].values()] == [10, 0]
    assert verdict["clamped_scores"] == 2


@pytest.mark.parametrize(
    "bad",
    [
        score("cy", "evidence", 5),
        score("ada", "charm", 5),
        score("ada", "evidence", float("nan")),
        score("bo", "evidence", 2),
    ],
    ids=["unknown debater", "unknown criterion", "not a number", "duplicate"],
)
def test_invalid_score_is_dropped_and_counted(bad: CriterionScore) -> None:
    verdict = check(response("bo", score("bo", "evidence", 5), bad))
    assert verdict["dropped_scores"] == 1
    assert verdict["totals"].keys() == {"bo"}


def test_changed_text_lists_the_corrections_of_a_response() -> None:
    scores = (score("ada", "evidence", 99, "m999999"), score("bo", "clarity", -3), score("cy", "evidence", 5))
    assert changed_text(check(response("ada", *scores))) == (
        "Corrected in the judge's reply: 1 score ignored (no debater's, unknown criterion, or given "
        "twice); 2 scores outside the scale, set to its nearest end; 1 citation ignored (not shown to the "
        "judge)."
    )
    assert changed_text(check(response("ada", score("ada", "evidence", 5)))) == ""


def test_criteria_and_debaters_match_in_any_case() -> None:
    assert check(response(" Ada ", score("ADA", "Evidence", 5)))["scores"]["ada"].keys() == {"evidence"}


@pytest.mark.parametrize(
    ("winner", "recorded"), [("Tie", "tie"), ("SYNTHESIS", "synthesis"), ("**Bo Ray**.", "bo")]
)
def test_winner_is_a_debater_a_tie_or_a_synthesis(winner: str, recorded: str) -> None:
    assert check(response(winner, score("ada", "evidence", 5)))["winner"] == recorded


def test_an_unknown_winner_is_no_tie_but_a_failed_verdict() -> None:
    verdict = check(response("cy", score("ada", "evidence", 5)))
    assert (verdict["status"], verdict["winner"]) == ("failed", "")
    assert "'cy'" in verdict["error"]


def test_a_verdict_most_of_whose_scores_were_dropped_is_defective() -> None:
    useless = [score("cy", "evidence", 5), score("ada", "charm", 5)]
    verdict = check(response("ada", score("ada", "evidence", 5), *useless, confidence=100))
    assert (verdict["status"], verdict["winner"], verdict["confidence"]) == ("failed", "", None)
    assert "2 of 3 scores cannot be used" in verdict["error"]


def test_one_text_in_three_fields_is_noted() -> None:
    text = "Two of nine people know the queue."
    notes = check(response("ada", decision=text, first_step=text, dissent=[text]))["notes"]
    assert notes == [f"The judge gave one text in several fields (Decision, First step, Dissent): {text}"]


def test_a_placeholder_of_the_instruction_is_noted() -> None:
    notes = check(response("ada", decision="[Your Position]", dissent=["[m000001]"]))["notes"]
    assert notes == ["The judge left a placeholder in Decision: [Your Position]"]


UNEQUAL_SCORES = (score("ada", "evidence", 9), score("bo", "evidence", 2))


def test_note_explains_a_winner_with_the_lower_total_by_name() -> None:
    verdict = check(response("bo", *UNEQUAL_SCORES, despite_scores="Its one point decides."))
    assert verdict["winner"] == "bo"
    note = (
        "The judge named Bo Ray in spite of a lower total (Ada has 88.9 of 100, Bo Ray 11.1): Its one point"
    )
    assert verdict["notes"] == [f"{note} decides."]


def test_unexplained_winner_with_the_lower_total_becomes_a_tie() -> None:
    verdict = check(response("bo", *UNEQUAL_SCORES))
    assert (verdict["winner"], verdict["confidence"], verdict["flip"]["winners"]) == ("tie", None, ["tie"])
    assert "Bo Ray and does not say why" in verdict["notes"][0]


def test_note_on_a_confidence_cap_names_the_unmet_requirement() -> None:
    judge_response = response(unmet_requirements=[UnmetRequirement(text="offline use", major=True)])
    assert check(judge_response)["notes"] == [
        "Confidence capped at 40: a major requirement is unmet: offline use"
    ]


def test_unmet_requirements_cap_no_confidence_without_a_solution() -> None:
    unmet = [UnmetRequirement(text="offline use", major=True)]
    judge_response = response_type("contest")(
        reasoning="So.", winner="ada", confidence=80, unmet_requirements=unmet
    )
    verdict = check(judge_response)
    assert (verdict["confidence"], verdict["notes"]) == (80, [])
    assert verdict["unmet_requirements"] == [{"text": "offline use", "major": True}]


@pytest.mark.parametrize(
    ("stated", "major", "recorded"),
    [
        (80, True, 40),
        (30, True, 30),
        (80, False, 80),
        (170, False, 100),
        (-5, False, 0),
        (float("nan"), False, 0),
    ],
)
def test_confidence_is_bounded_and_capped_by_major_unmet_requirements(
    stated: float, major: bool, recorded: float
) -> None:
    judge_response = response(
        confidence=stated, unmet_requirements=[UnmetRequirement(text="offline use", major=major)]
    )
    assert check(judge_response)["confidence"] == recorded


def test_response_without_winner_and_scores_is_a_failed_verdict() -> None:
    verdict = check(response("whoever", score("cy", "evidence", 9), solution_markdown="Do it."))
    assert (verdict["status"], verdict["winner"], verdict["solution_markdown"]) == ("failed", "", "")
    assert "'whoever'" in verdict["error"]


def test_verdict_text_contains_no_nul_or_surrogate() -> None:
    response_data = response(solution_markdown="a\x00b\ud800", dissent=["\x00why?"]).model_dump()
    verdict = check(SOLUTION.model_validate(parse_reply(SOLUTION, "", response_data).data))
    assert (verdict["solution_markdown"], verdict["dissent"]) == ("ab?", ["why?"])


@settings(deadline=None)
@given(
    winner=st.text(max_size=6) | st.sampled_from(["ada", "bo", "tie"]),
    scores=st.lists(
        st.builds(
            CriterionScore,
            debater=st.sampled_from(["ada", "bo", "cy"]),
            criterion=st.sampled_from(["evidence", "clarity", "charm"]),
            score=st.floats(),
            citations=st.lists(st.sampled_from(["m000001", "m000009", "x"]), max_size=3),
        ),
        max_size=6,
    ),
    confidence=st.floats(),
    major=st.booleans(),
)
def test_any_response_gives_a_consistent_verdict(
    winner: str, scores: list[CriterionScore], confidence: float, major: bool
) -> None:
    unmet = [UnmetRequirement(text="x", major=major)]
    verdict = check(response(winner, *scores, confidence=confidence, unmet_requirements=unmet))
    assert json.loads(json.dumps(verdict, allow_nan=False)) == verdict
    assert verdict["winner"] in ("ada", "bo", "tie", "synthesis", "")
    assert (verdict["winner"] == "") == (verdict["status"] == "failed")
    assert 0 <= (verdict["confidence"] or 0) <= (40 if major else 100)
    assert verdict["confidence"] is None or verdict["winner"] != "tie"
    assert all(0 <= total <= 100 for total in verdict["totals"].values())
    cited = {
        c for records in verdict["scores"].values() for one in records.values() for c in one["citations"]
    }
    assert cited <= KNOWN


def test_response_schema_puts_reasons_before_scores() -> None:
    assert next(iter(SOLUTION.model_json_schema()["properties"])) == "reasoning"
    assert list(CriterionScore.model_fields)[-1] == "score"


@pytest.mark.parametrize("protocol", ["round-robin", "dialogue", "council", "vote"])
def test_every_response_field_is_described_once_to_the_judge(protocol: str) -> None:
    spec = protocol_named(protocol).judge_spec
    parts = BY_CRITERION if spec.solution else f"{SCORES} {CONTEST}"
    ending = f"{parts} {spec.instruction}"
    prompt = (VERDICT if spec.interactive else VERDICT_ALONE).render(ending=ending)
    schema = response_schema(RUBRIC, ["A", "B"], ["m000001"], judging=spec.judging)
    fields = schema.model_json_schema()["properties"]
    assert [name for name, field in fields.items() if "description" not in field and name not in prompt] == []
    prompt_only = ("considered", "confidence", "final_position", "scores", "winner_confidence")
    assert [name for name in prompt_only if "description" in fields.get(name, {})] == []


@pytest.mark.parametrize("judging", ["contest", "design", "synthesis"])
def test_response_lists_unmet_requirements_before_the_confidence(judging: Judging) -> None:
    names = [field.name for field in asked_fields(judging)]
    assert names.index("unmet_requirements") < names.index("confidence") < names.index("winner")


def test_schema_for_scores_only_offers_no_synthesis() -> None:
    schema = response_schema(RUBRIC, ["A", "B"], [], judging="scores").model_json_schema()
    assert schema["properties"]["winner"]["enum"] == ["A", "B", "tie"]


@pytest.mark.parametrize("protocol", ["round-robin", "vote"])
def test_judge_prompt_explains_the_confidence_once(protocol: str) -> None:
    spec = protocol_named(protocol).judge_spec
    ending = f"{OPTIONS} {spec.instruction}"
    prompt = (VERDICT if spec.interactive else VERDICT_ALONE).render(ending=ending)
    assert prompt.count("`confidence`") == 1


def test_failed_verdicts_cast_no_ballot() -> None:
    verdict = check(response("bo", *UNEQUAL_SCORES, despite_scores="So."))
    assert ballots_of([verdict, failed_verdict("j2", "timeout")]) == [
        {"judge": "j1", "winner": "bo", "scores": verdict["totals"], "approved": ["ada", "bo"]}
    ]


def test_total_is_the_weighted_mean_of_scores_out_of_100() -> None:
    assert RUBRIC.total({"evidence": 10, "clarity": 0}) == 75
    assert RUBRIC.total({"clarity": 4}) == 100
    assert RUBRIC.total({}) is None


def test_design_rubric_has_seven_criteria_from_one_to_ten() -> None:
    criteria = shipped_rubrics()["design"].criteria
    assert len(criteria) == 7
    assert {(one.scale_min, one.scale_max, one.weight) for one in criteria} == {(1, 10, 1)}


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_rubric_is_read_from_a_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rubric{suffix}"
    path.write_text(RUBRIC.model_dump_json(), encoding="utf-8")
    assert load_rubric(path) == RUBRIC


def test_shipped_rubric_is_found_by_name() -> None:
    assert shipped_rubrics()["debate"].name == "debate"


def test_every_file_of_the_rubrics_folder_is_a_shipped_rubric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "charm.yaml").write_text("name: charm\ncriteria: [{id: wit, name: Wit}]\n", encoding="utf-8")
    monkeypatch.setattr(rubrics, "SHIPPED", tmp_path)
    config = make_config({"debaters": [{"name": "Ada"}, {"name": "Bo"}], "judge": {"rubric": "charm"}})
    assert list(shipped_rubrics()) == ["charm"]
    assert [one.id for one in rubric_for(config.judge.judges()[0], config).criteria] == ["wit"]


def test_rubric_of_a_panel_judge_overrides_the_questions_criteria() -> None:
    panel = [{"id": "a", "rubric": "design"}, {"id": "b"}]
    members = [{"name": "Ada", "role": "beekeeper"}, {"name": "Bo", "role": "grower"}]
    config = make_config({"protocol": "council", "debaters": members, "judge": {"panel": panel}})
    question = DebateQuestion(criteria=[{"name": "Yield", "description": "Honey in a year."}])
    for asked, other in ((None, "decision"), (question, "question")):
        named = [rubric_for(judge, config, "design", asked).name for judge in config.judge.judges()]
        assert named == ["design", other]


def test_shipped_rubrics_have_the_names_of_their_files() -> None:
    assert {name: rubric.name for name, rubric in shipped_rubrics().items()} == {
        "debate": "debate",
        "decision": "decision",
        "design": "design",
        "answers": "answers",
    }


GOOD = {"id": "x", "name": "X"}


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ({"criteria": [GOOD]}, "name"),
        ({"name": "r", "criteria": []}, "criteria"),
        ({"name": "r", "criteria": [{**GOOD, "weight": 0}]}, r"criteria\.0\.weight"),
        ({"name": "r", "criteria": [GOOD, {"id": "Y!", "name": "Y"}]}, r"criteria\.1\.id"),
        ({"name": "r", "criteria": [{**GOOD, "scale_max": 1}]}, r"criteria\.0"),
        ({"name": "r", "criteria": [{**GOOD, "wieght": 2}]}, r"criteria\.0\.wieght"),
        ({"name": "r", "criteria": [GOOD, GOOD]}, "share the id 'x'"),
        ({"name": "r", "criteria": [{**GOOD, "scale_max": float("inf")}]}, r"criteria\.0\.scale_max"),
        ("rubric", "mine: rubric"),
    ],
)
def test_error_names_the_invalid_key_of_a_rubric(data: Any, key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        parse_rubric(data, "mine")


@pytest.mark.parametrize(
    ("name", "text"), [("r.yaml", "a: [b"), ("r.json", "{"), ("r.yaml", "a: !!python/object:x {}")]
)
def test_error_names_a_malformed_rubric_file(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=f"{re.escape(repr(str(path)))} is malformed"):
        load_rubric(path)


def test_error_for_an_unknown_rubric_lists_the_shipped_ones() -> None:
    with pytest.raises(ConfigError, match=r"'nosuch' is neither a rubric's name \('answers', 'debate',"):
        load_rubric(Path("nosuch"))


def test_citations_of_options_are_checked() -> None:
    option = WeighedOption(option="Trams", outcome="rejected", citations=["m000001", "m000009"])
    verdict = check(response(considered=[option]))
    assert verdict["considered"][0]["citations"] == ["m000001"]
    assert verdict["dropped_citations"] == 1


def test_ids_of_missing_messages_are_marked_and_counted_in_prose() -> None:
    checker = ResponseCheck(RUBRIC, ["ada", "bo"], KNOWN, "j1", transcript_ids=KNOWN)
    reply = response(decision="Wait, as m000001 and m000077 say.", conditions=["m000099 holds."])
    verdict = checker.response_verdict(reply, Reply(model="m"))
    assert verdict["decision"] == "Wait, as m000001 and m000077 (no such message) say."
    assert verdict["conditions"] == ["m000099 (no such message) holds."]
    assert verdict["dropped_citations"] == 2


def test_figures_without_a_source_are_marked_where_somebody_acts_on_them() -> None:
    checker = ResponseCheck(RUBRIC, ["ada", "bo"], KNOWN, "j1")
    reply = response(
        decision="Pay EUR 150 a month.",
        conditions=["EUR 150 suffices, not EUR 1500 or EUR 150.5."],
        unsourced=["EUR 150", "12", "The team is free."],
        dissent=["EUR 150 is a guess for 12 months."],
    )
    verdict = checker.response_verdict(reply, Reply(model="m"))
    assert verdict["decision"] == "Pay EUR 150 (no source) a month."
    assert verdict["conditions"] == ["EUR 150 (no source) suffices, not EUR 1500 or EUR 150.5."]
    assert verdict["dissent"] == ["EUR 150 (no source) is a guess for 12 months."]
    assert verdict["unsourced"] == ["EUR 150", "12", "The team is free."]


def test_who_argued_best_is_not_shown_as_the_decision() -> None:
    verdict = response_type("contest")(
        reasoning="So.", winner="ada", decision="Wait.", scores=[score("ada", "evidence", 6)]
    )
    lines = {field.name: field for field in shown(check(verdict), NAMES)}
    assert lines["winner"].label == "Argued best"
    assert lines["winner"].text == "Ada (56). This is not the decision."
    assert not lines["winner"].lead
    config = {"debaters": [{"id": key, "name": name} for key, name in NAMES.items()]}
    record = as_decision(check(verdict))
    answer = verdict_text(record, {"config": config, "verdict": record})
    assert "Argued best: Ada (56). This is not the decision." in answer.split("\n\n")
