import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moot.api import open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig, DebaterConfig
from moot.config.config_files import make_config
from moot.documents import DebateDocument
from moot.models.structured import parse_reply
from moot.prompts.templates import SECTIONS, role_of, shipped_roles
from moot.protocols.council.convergence import Convergence
from moot.reports import render_markdown
from moot.state.entries import critique_labels
from moot.state.errors import ConfigError, ModelError
from tests.support.fakes import FakeModel, fake_reply
from tests.support.snapshots import check_snapshot, prompt_markdown

TOPIC = "Design a rate limiter. It must be fair to small customers."

ReplyFunction = Callable[[ModelCall], Reply]


def council(**settings: Any) -> DebateConfig:
    return make_config({"protocol": "council", "rounds": 2, **settings})


def run(
    tmp_path: Path, config: DebateConfig, reply: ReplyFunction = fake_reply
) -> tuple[DebateDocument, FakeModel]:
    model = FakeModel(reply)
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        return debates.start(TOPIC, config).run(), model


def text_of(call: ModelCall) -> str:
    return "\n".join(message["content"] for message in call.messages)


def phase_of(call: ModelCall) -> str:
    return str(call.hints.get("phase", ""))


def failing(where: Callable[[ModelCall], bool]) -> ReplyFunction:
    return lambda call: Reply(model=call.model, error="out of order") if where(call) else fake_reply(call)


def agreeing(agreement: float) -> ReplyFunction:
    def reply(call: ModelCall) -> Reply:
        if call.purpose == "evaluate":
            return Reply(data={"reasoning": "r", "in_dispute": [], "agreement": agreement}, model=call.model)
        return fake_reply(call)

    return reply


def test_round_has_proposals_then_critiques_then_refinements(tmp_path: Path) -> None:
    document, _ = run(tmp_path, council())
    kinds = [(e["round"], e["kind"]) for e in document["transcript"] if e["kind"] != "topic"]
    first = [(1, "proposal")] * 3 + [(1, "critique")] * 6 + [(1, "refinement")] * 3
    assert kinds == first + [(2, "critique")] * 3 + [(2, "refinement")] * 3
    critiques = [e for e in document["transcript"] if e["kind"] == "critique"]
    assert len({(e["speaker"], *e["targets"]) for e in critiques if e["round"] == 1}) == 6
    compared = {e["speaker"]: e["targets"] for e in critiques if e["round"] == 2}
    assert compared == {
        "architect": ["performance", "testing"],
        "performance": ["architect", "testing"],
        "testing": ["architect", "performance"],
    }
    assert [e["seq"] for e in document["transcript"]] == list(range(len(document["transcript"])))


def test_default_debaters_are_architect_performance_and_testing() -> None:
    assert [debater.id for debater in council().debaters] == ["architect", "performance", "testing"]


def test_the_problem_statement_is_in_every_prompt(tmp_path: Path) -> None:
    config = council(termination={"type": "convergence", "threshold": 0.9})
    _, model = run(tmp_path, config, agreeing(0.1))
    assert {call.purpose for call in model.calls} == {"turn", "evaluate", "judge"}
    assert all(TOPIC in text_of(call) for call in model.calls)


def test_critique_prompt_shows_the_criticised_proposals_and_own_critiques(tmp_path: Path) -> None:
    document, model = run(tmp_path, council())
    entries = {entry["id"]: entry for entry in document["transcript"]}
    for call in model.calls:
        if call.purpose != "turn" or phase_of(call) != "critique":
            continue
        shown = [e for key, e in entries.items() if f"[{key}]:" in text_of(call)]
        assert call.stream_as is not None
        critic = call.stream_as.speaker
        assert {e["speaker"] for e in shown if e["kind"] == "critique"} <= {critic}
        authors = [e["speaker"] for e in shown if e["kind"] != "critique"]
        # In round 1, a critic does not see its own proposal. Later, it compares all of them.
        first = call.hints["round"] == 1
        assert len(set(authors)) == len(authors) == (1 if first else 3)
        assert (critic in authors) is not first


def test_refinement_prompt_shows_every_critique_of_the_own_proposal(tmp_path: Path) -> None:
    document, model = run(tmp_path, council())
    for call in [call for call in model.calls if phase_of(call) == "refine" and call.hints["round"] == 2]:
        assert call.stream_as is not None
        own = call.stream_as.speaker
        received = [e for e in document["transcript"] if e["kind"] == "critique" and own in e["targets"]]
        assert len(received) == 4
        assert all(entry["content"] in text_of(call) for entry in received)


def test_refinement_prompt_orders_proposals_and_criticisms(
    tmp_path: Path,
) -> None:
    _, model = run(tmp_path, council(language="German"))
    refining = [call for call in model.calls if call.hints.get("speaker") == "Testing"][-1]
    headings = [
        message["content"].split("\n")[0] for message in refining.messages if message["role"] == "user"
    ]
    start = headings.index("# Criticism 1A of Architect's earlier proposal")
    assert headings[start : start + 7] == [
        "# Criticism 1A of Architect's earlier proposal",
        "# Your criticism 1B of Architect's earlier proposal",
        "# Architect's current proposal",
        "# Criticism 1C of Performance's earlier proposal",
        "# Your criticism 1D of Performance's earlier proposal",
        "# Performance's current proposal",
        "# Your criticism 2C of Architect's and Performance's current proposals",
    ]
    assert "# Criticism 2A of your and Performance's proposals" in headings
    assert "# Criticism 2B of your and Architect's proposals" in headings
    assert "unless a criticism of these parts convinces you" in text_of(refining)
    assert "- Write in German." in text_of(refining)


@pytest.mark.parametrize("budget", [4_600, 3_200])
def test_a_refinement_drops_answered_criticism_before_new_criticism(tmp_path: Path, budget: int) -> None:
    def reply(call: ModelCall) -> Reply:
        text = f"{call.digest[:8]} because {'a flaw of the plan matters. ' * 40}The end."
        return Reply(text=text, model=call.model) if call.schema is None else fake_reply(call)

    config = council(memory={"budget": {"phases": {"refine": budget}}})
    document, model = run(tmp_path, config, reply)
    last = [call for call in model.calls if call.hints.get("speaker") == "Testing"][-1]
    others = [e for e in document["transcript"] if e["kind"] == "critique" and "testing" not in e["targets"]]
    whole = {e["id"]: e["content"] in text_of(last) for e in others}
    assert [whole[e["id"]] for e in others if e["round"] == 2] == [True]
    assert not all(whole[e["id"]] for e in others if e["round"] == 1)
    current = [e for e in document["transcript"] if e["kind"] == "refinement" and e["round"] == 1]
    assert all(e["content"] in text_of(last) for e in current)
    answered = [e for e in document["transcript"] if e["kind"] == "critique" and e["round"] == 1]
    own = [e["content"] in text_of(last) for e in answered if "testing" in e["targets"]]
    assert own == [budget > 4_000] * 2  # answered criticism of the own proposal is dropped next


def test_member_without_a_role_gets_no_text_about_roles() -> None:
    role = role_of(DebaterConfig(name="Ada", id="ada"))
    assert not [section for section in SECTIONS if "role" in role.says(section)]


def test_every_criticism_has_a_unique_label(tmp_path: Path) -> None:
    document, model = run(tmp_path, council())
    labels = critique_labels(document["transcript"])
    assert sorted(labels.values()) == ["1A", "1B", "1C", "1D", "1E", "1F", "2A", "2B", "2C"]
    named: dict[int, list[str]] = {}
    for call in model.calls:
        if phase_of(call) == "refine" and call.hints["speaker"] == "Architect":
            found = re.findall(r"# Criticism (\w+) of (your|.*'s) (?:and \w+'s )?proposals?", text_of(call))
            named[call.hints["round"]] = own = [label for label, whose in found if whose == "your"]
            assert f"{own[0]}.3 is point 3" in text_of(call)
            assert len({label for label, _ in found}) == len(found)
        if phase_of(call) == "critique" and call.hints["round"] == 2:
            found_labels = re.findall(r"# Your criticism (\w+) of \w+'s earlier proposal", text_of(call))
            assert "The new proposals answer it under its label." in text_of(call)
            assert {label[0] for label in found_labels} == {"1"}
            assert len(found_labels) == 2
    assert named == {1: ["1A", "1B"], 2: ["2B", "2C"]}


def test_judge_sees_criticism_labels_and_cannot_choose_a_tie(tmp_path: Path) -> None:
    document, model = run(tmp_path, council())
    labels = critique_labels(document["transcript"])
    (judging,) = [call for call in model.calls if call.purpose == "judge"]
    asked = text_of(judging)
    assert judging.schema is not None
    assert "tie" not in judging.schema.model_json_schema()["properties"]["winner"]["description"]
    for entry in document["transcript"]:
        if entry["kind"] == "critique":
            assert f"[{entry['id']}]: (criticism {labels[entry['id']]} of " in asked


def test_the_only_round_of_a_council_is_not_numbered(tmp_path: Path) -> None:
    _, model = run(tmp_path, council(rounds=1))
    asked = [text_of(call) for call in model.calls if phase_of(call) in ("propose", "critique", "refine")]
    assert asked
    assert all("This is the only round." in text and "of at most" not in text for text in asked)


def test_second_round_compares_the_last_refinements(tmp_path: Path) -> None:
    document, model = run(tmp_path, council())
    refined = {
        e["speaker"]: e for e in document["transcript"] if e["kind"] == "refinement" and e["round"] == 1
    }
    second = [call for call in model.calls if phase_of(call) == "critique" and call.hints["round"] == 2]
    assert len(second) == 3
    for call in second:
        assert all(entry["content"] in text_of(call) for entry in refined.values())
        assert "at most 450 words" in text_of(call)


def test_a_comparison_settles_the_points_in_dispute_first(tmp_path: Path) -> None:
    def disputing(call: ModelCall) -> Reply:
        data = {"reasoning": "r", "in_dispute": ["Gateway or service?"], "agreement": 0.1}
        return Reply(data=data, model=call.model) if call.purpose == "evaluate" else fake_reply(call)

    settle = "For each of them, say which side is right, which one fact would decide it, and who can find"
    asked: dict[object, list[str]] = {}
    side = "Take a side on each of the points in dispute that are listed above."
    for reply in (disputing, agreeing(0.1)):
        _, model = run(tmp_path / str(len(asked)), council(), reply)
        refining = [c for c in model.calls if phase_of(c) == "refine" and c.hints["round"] == 2]
        assert all((side in text_of(call)) is (reply is disputing) for call in refining)
        asked[reply] = [
            text_of(c) for c in model.calls if phase_of(c) == "critique" and c.hints["round"] == 2
        ]
    assert all(settle in text and "- Gateway or service?" in text for text in asked[disputing])
    assert not any(settle in text for reply in asked if reply is not disputing for text in asked[reply])


PLAN = """I use one cluster.

Costs are EUR 1,200 a month, paid by Ops.

## Answers
1A.1 adopted: Costs are now in it.
1A.2 adopted.
1B.1 rejected because nobody needs it."""


def test_an_adopted_point_needs_a_sentence_of_the_new_proposal(tmp_path: Path) -> None:
    claimed = [
        ("1A.1", "Costs are **EUR 1,200** a month, paid by Ops."),
        ("1A.2", "We add a second cluster."),  # stands nowhere
        ("1B.1", "1B.1 rejected because nobody needs it."),  # only answers the criticism
        ("9Z.1", "I use one cluster."),  # no such criticism
    ]

    def reply(call: ModelCall) -> Reply:
        if call.purpose == "turn":
            phase = phase_of(call)
            points = "1. **No costs.** Who pays?\n   Change: name them.\n2. One cluster fails.\n\nKeep: it."
            text = points if phase == "critique" else PLAN
            return Reply(text=text, model=call.model)
        if call.purpose != "evaluate":
            return fake_reply(call)
        rows = [{"proposal": "m000010", "point": point, "sentence": text} for point, text in claimed]
        data = {"reasoning": "r", "adopted": rows, "in_dispute": [], "agreement": 0.5}
        return Reply(data=data, model=call.model)

    document, model = run(tmp_path, council(rounds=1), reply)
    (check,) = [call for call in model.calls if call.purpose == "evaluate"]
    assert "- 1A.1: No costs. Who pays? Change: name them.\n- 1A.2: One cluster fails.\n" in text_of(check)
    (record,) = document["convergence"]
    assert record["adopted"] == [
        {"message_id": "m000010", "point": "1A.1", "sentence": "Costs are EUR 1,200 a month, paid by Ops."},
        {"message_id": "m000010", "point": "1A.2", "sentence": ""},
        {"message_id": "m000010", "point": "1B.1", "sentence": ""},
    ]
    (judging,) = [call for call in model.calls if call.purpose == "judge"]
    told = (
        "In round 1, the proposals say that they adopt 3 points. No sentence of the new proposal does this "
        "for 1A.2 [m000010], 1B.1 [m000010]."
    )
    assert told in text_of(judging)
    report = render_markdown(document)
    assert "Adopted 1A.1" in report
    assert report.count("not found in the proposal") == 2


def test_configured_system_prompt_replaces_the_one_of_the_role(tmp_path: Path) -> None:
    debaters = [
        {"name": "Ann", "role": "security", "system_prompt": "You only mind door locks."},
        {"name": "Bo", "role": "KISS"},
    ]
    _, model = run(tmp_path, council(debaters=debaters))
    ann = next(text_of(c) for c in model.calls if c.stream_as and c.stream_as.speaker == "ann")
    bo = next(text_of(c) for c in model.calls if c.stream_as and c.stream_as.speaker == "bo")
    assert "door locks" in ann
    assert shipped_roles()["security"].says("system") not in ann
    assert shipped_roles()["simplicity"].says("system") in bo


def test_every_shipped_role_has_every_section() -> None:
    assert len(shipped_roles()) == 7
    assert all(role.says(section) for role in shipped_roles().values() for section in SECTIONS)


@pytest.mark.parametrize(
    ("named", "role"),
    [
        ("KISS", "simplicity"),
        ("Data modelling", "data-modeling"),
        ("lawyer", "member"),
        ("", "member"),
    ],
)
def test_role_is_found_by_name_with_a_generic_fallback(named: str, role: str) -> None:
    assert role_of(DebaterConfig(id="x", name="X", role=named)).name == role


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"debaters": [{"name": "Ann"}]}, "at least 2 debaters"),
        ({"rounds": 0}, "rounds"),
        ({"termination": {"type": "convergence", "threshold": 2}}, "threshold"),
        ({"memory": {"perspectives": {"method": "magic"}}}, "magic"),
    ],
    ids=["one debater", "no rounds", "threshold", "method"],
)
def test_invalid_council_is_refused_before_any_call(
    settings: dict[str, Any], error: str, tmp_path: Path
) -> None:
    model = FakeModel()
    with (
        open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates,
        pytest.raises(ConfigError, match=error),
    ):
        debates.start(TOPIC, council(**settings))
    assert model.calls == []


def test_debate_records_a_missing_critique_and_continues(tmp_path: Path) -> None:
    def where(call: ModelCall) -> bool:
        critic = call.stream_as.speaker if call.stream_as else ""
        return (
            phase_of(call) == "critique" and critic == "testing" and "Architect" in str(call.hints["targets"])
        )

    document, model = run(tmp_path, council(rounds=1), failing(where))
    (notice,) = [e for e in document["transcript"] if e["kind"] == "notice"]
    assert notice["content"] == "The critique of Architect by Testing is missing: its call failed."
    assert notice["speaker"] == "moot"
    assert [e["seq"] for e in document["transcript"]] == list(range(len(document["transcript"])))
    refining = next(
        c
        for c in model.calls
        if phase_of(c) == "refine" and c.stream_as and c.stream_as.speaker == "architect"
    )
    assert notice["content"] in text_of(refining)
    assert document["status"] == "done"
    assert document["errors"][0]["error"] == "out of order"


def test_failed_refinement_keeps_the_last_proposal_and_adds_a_notice(tmp_path: Path) -> None:
    def where(call: ModelCall) -> bool:
        return phase_of(call) == "refine" and call.hints["round"] == 1 and call.hints["speaker"] == "Testing"

    document, model = run(tmp_path, council(), failing(where))
    proposal = next(
        e for e in document["transcript"] if e["kind"] == "proposal" and e["speaker"] == "testing"
    )
    (notice,) = [e for e in document["transcript"] if e["kind"] == "notice"]
    assert f"Its last one, [{proposal['id']}], stays valid." in notice["content"]
    of_testing = [
        c
        for c in model.calls
        if phase_of(c) == "critique" and c.hints["round"] == 2 and "Testing" in str(c.hints["targets"])
    ]
    assert len(of_testing) == 2  # the other two members compare it
    assert all(proposal["content"] in text_of(call) for call in of_testing)


def test_member_without_a_proposal_gets_no_critique_but_may_refine(tmp_path: Path) -> None:
    def where(call: ModelCall) -> bool:
        return phase_of(call) == "propose" and call.hints["speaker"] == "Testing"

    document, _ = run(tmp_path, council(rounds=1), failing(where))
    kinds = Counter(e["kind"] for e in document["transcript"])
    assert kinds == {"topic": 1, "proposal": 2, "notice": 1, "critique": 4, "refinement": 3}


def test_debate_fails_if_all_calls_of_a_phase_fail_and_can_resume(tmp_path: Path) -> None:
    model = FakeModel(failing(lambda call: phase_of(call) == "critique"))
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debate = debates.start(TOPIC, council(rounds=1))
        with pytest.raises(ModelError):
            debate.run()
        assert debate.document()["status"] == "failed"
        model.reply = fake_reply
        assert debate.run()["status"] == "done"
    assert Counter(phase_of(c) for c in model.calls)["propose"] == 3


def test_convergence_stops_the_debate(tmp_path: Path) -> None:
    config = council(rounds=5, termination={"type": "convergence", "threshold": 0.7})
    document, model = run(tmp_path, config, agreeing(0.75))
    assert max(e["round"] for e in document["transcript"]) == 1
    assert Counter(c.purpose for c in model.calls) == {"turn": 12, "evaluate": 1, "judge": 1}


def test_without_convergence_all_rounds_run(tmp_path: Path) -> None:
    config = council(rounds=3, termination={"type": "convergence", "threshold": 0.7})
    document, model = run(tmp_path, config, agreeing(0.69))
    assert max(e["round"] for e in document["transcript"]) == 3
    assert Counter(c.purpose for c in model.calls)["evaluate"] == 3


def test_a_fixed_council_never_ends_early(tmp_path: Path) -> None:
    document, model = run(tmp_path, council(termination={"type": "fixed"}), agreeing(1.0))
    assert max(e["round"] for e in document["transcript"]) == 2
    assert Counter(c.purpose for c in model.calls)["evaluate"] == 2


def test_failed_convergence_check_is_recorded_as_disagreement(tmp_path: Path) -> None:
    config = council(termination={"type": "convergence", "threshold": 0.0})
    document, _ = run(tmp_path, config, failing(lambda call: call.purpose == "evaluate"))
    assert "convergence was not checked" in document["errors"][0]["error"]
    assert max(e["round"] for e in document["transcript"]) == 2


def test_next_round_sees_long_disputed_points_in_full(tmp_path: Path) -> None:
    point = "How many urgent visits are northern: 380 (Finance), " + "between those figures " * 10 + "or 680."

    def reply(call: ModelCall) -> Reply:
        if call.purpose == "evaluate":
            return Reply(data={"reasoning": "r", "in_dispute": [point], "agreement": 0.1}, model=call.model)
        return fake_reply(call)

    _, model = run(tmp_path, council(), reply)
    later = [call for call in model.calls if call.hints.get("round") == 2 and call.purpose == "turn"]
    assert later
    assert all(f"- {point}" in text_of(call) for call in later)


def test_convergence_check_reads_the_background(tmp_path: Path) -> None:
    (tmp_path / "brief.md").write_text("The covenant requires a profit of SEK 15 m.")
    config = council(context=str(tmp_path / "brief.md"))
    _, model = run(tmp_path, config)
    checks = [call for call in model.calls if call.purpose == "evaluate"]
    assert len(checks) == 2
    for check in checks:
        assert "The covenant requires a profit" in text_of(check)
        assert check.prompt
        assert not check.prompt.omitted


@pytest.mark.parametrize("agreement", [20, 85, 1.01, -0.5, float("nan")])
def test_agreement_outside_0_to_1_is_recorded_and_ends_nothing(agreement: float, tmp_path: Path) -> None:
    config = council(termination={"type": "convergence", "threshold": 0.9})
    document, _ = run(tmp_path, config, agreeing(agreement))
    assert max(e["round"] for e in document["transcript"]) == 2
    assert "convergence was not checked" in document["errors"][0]["error"]


def test_agreement_in_percent_is_a_parse_error() -> None:
    text = '{"reasoning": "r", "in_dispute": [], "agreement": 85}'
    assert "less than or equal to 1" in parse_reply(Convergence, text).error


def test_judge_is_asked_for_a_solution_and_sees_which_proposals_are_final(
    tmp_path: Path,
) -> None:
    document, model = run(tmp_path, council())
    (judging,) = [call for call in model.calls if call.purpose == "judge"]
    final = [e for e in document["transcript"] if e["kind"] == "refinement" and e["round"] == 2]
    assert all(f"[{entry['id']}]" in text_of(judging) for entry in final)
    earlier = [
        e for e in document["transcript"] if e["kind"] in ("proposal", "refinement") and e["round"] == 1
    ]
    assert earlier
    marks = {"proposal": "first proposal", "refinement": "revised proposal of round 1"}
    assert all(f"[{e['id']}]: ({marks[e['kind']]}, replaced since) <<" in text_of(judging) for e in earlier)
    assert text_of(judging).count("replaced since)") == len(earlier)
    assert text_of(judging).count("(final proposal)") == len(final)
    assert "solution_markdown" in text_of(judging)
    assert "requirements_fulfillment" in text_of(judging)


def test_judge_prompt_says_that_it_judges_a_council(tmp_path: Path) -> None:
    _, model = run(tmp_path, council())
    (judging,) = [call for call in model.calls if call.purpose == "judge"]
    assert text_of(judging).startswith("You judge a council")
    assert "contest" not in text_of(judging)


def test_running_a_finished_council_again_adds_one_round(tmp_path: Path) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debate = debates.start(TOPIC, council(rounds=1))
        debate.run()
        document = debate.run(turns=1)
    assert max(e["round"] for e in document["transcript"]) == 2


@pytest.mark.parametrize("phase", ["propose", "critique", "refine"])
def test_council_prompts_match_their_snapshots(phase: str, tmp_path: Path) -> None:
    _, model = run(tmp_path, council())
    calls = {
        call.stream_as.entry_id: call
        for call in model.calls
        if call.stream_as and call.stream_as.speaker == "testing" and phase_of(call) == phase
    }
    check_snapshot(f"council-{phase}", prompt_markdown(calls[max(calls)].messages))


@pytest.mark.parametrize("purpose", ["judge", "evaluate"])
def test_council_judge_prompts_match_their_snapshots(purpose: str, tmp_path: Path) -> None:
    config = council(termination={"type": "convergence"}, judge={"blind": False})
    _, model = run(tmp_path, config, agreeing(0.1))
    *_, call = [c for c in model.calls if c.purpose == purpose]
    check_snapshot(f"council-{purpose}", prompt_markdown(call.messages))
