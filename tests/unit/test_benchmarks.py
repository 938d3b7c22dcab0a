"""Tests of the benchmarks, and of those of their targets that are quick to check."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import agreement, escalate, overhead, summaries
from benchmarks.__main__ import main
from benchmarks.prefix import PRICE_TARGET, SHARE_TARGET, cached_shares, share_and_price
from moot.text.tokens import counter

ROOT = Path(__file__).parents[2]


def _body(*texts: str) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": text} for text in texts]}).encode()


def test_only_the_prefix_of_an_earlier_request_counts_as_cached() -> None:
    one, two, three = cached_shares([_body("rules", "a"), _body("rules", "b"), _body("other", "a")])
    message = counter()('{"role": "user", "content": "rules"}')
    frame = counter()('{"role": "user", "content": "')
    assert one.cached == 0
    assert two.cached == message + frame
    assert three.cached == frame


def test_a_cached_token_costs_a_tenth_and_an_uncached_one_a_quarter_more() -> None:
    shares = list(cached_shares([_body("rules")] * 4))
    share, price = share_and_price(shares)
    assert share == 0.75
    assert price == pytest.approx(0.75 * 0.1 + 0.25 * 1.25)


@pytest.mark.slow
def test_the_prefix_benchmark_meets_its_targets() -> None:
    run = [
        sys.executable,
        "-m",
        "benchmarks.prefix",
        "--quick",
    ]  # a separate process, because its clients stay open
    shown = subprocess.run(run, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    figures = re.search(r"shared +([\d.]+)% of tokens in a cached prefix, price × ([\d.]+)", shown)
    assert figures
    assert float(figures[1]) / 100 >= SHARE_TARGET
    assert float(figures[2]) <= PRICE_TARGET


def test_an_unknown_benchmark_name_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["speed"])
    assert "no benchmark is called speed" in capsys.readouterr().err


def test_a_failing_benchmark_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    monkeypatch.setattr("benchmarks.drift.main", lambda arguments: 1 / 0)
    monkeypatch.setenv("MOOT_QMSUM", str(tmp_path))
    main(["drift", "retrieval"])
    shown = capsys.readouterr()
    assert "ZeroDivisionError" in shown.err
    assert "no QMSum files" in shown.out


def test_the_rule_based_summary_scores_above_every_baseline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plans = [f"Plan {n} moves the {'tram' if n % 2 else 'bus'} depot to quay {n * 7}." for n in range(60)]
    statements = [plan for plan in plans for _ in range(4)]
    turns = [
        {"speaker": f"S{n % 3}", "content": f"{text} Well, you know, I mean, we should all really do that."}
        for n, text in enumerate(statements)
    ]
    queries = [{"query": "?", "answer": " ".join(plans[::4]), "relevant_text_span": []}]
    meeting = {"meeting_transcripts": turns, "specific_query_list": queries}
    (tmp_path / "a.json").write_text(json.dumps(meeting))
    summaries.main(["--data", str(tmp_path), "--json"])
    shares = json.loads(capsys.readouterr().out)
    assert {"longest sentences", "lead", "random", "TextRank", "LexRank"} < shares.keys()
    trivial = [share for name, share in shares.items() if not name.startswith("rule-based")]
    assert shares["rule-based"] > max(trivial)


def test_escalate_saves_calls_where_agreement_is_informative() -> None:
    result = escalate.measure("independent", 1_000, seed=1)
    assert 82 <= result.agreed <= 88
    assert result.calls_share <= escalate.CALLS_TARGET
    assert result.lost <= escalate.LOST_TARGET
    assert result.false_converged <= escalate.FALSE_TARGET


def test_a_higher_agreement_intensity_gives_more_agreement_in_fewer_turns() -> None:
    low, high = agreement.measure(0.1, 200), agreement.measure(0.9, 200)
    assert low.agreed < 60 < 90 < high.agreed
    assert high.turns < low.turns


@pytest.mark.skipif(not overhead.SAMPLES.is_dir(), reason="the recorded debates are not beside the checkout")
def test_the_replay_of_a_recorded_dialogue_uses_fewer_tokens_than_it() -> None:
    measured = overhead.measure(overhead.RECORDINGS["dialogue"], overhead.SAMPLES)
    assert measured.messages > 24  # those outside crux rooms
    assert measured.calls["reflect"] >= 2
    assert measured.calls["judge"] == 1
    assert measured.tokens_per_message < overhead.RECORDINGS["dialogue"].before


def test_the_partner_is_read_from_a_crux_room_prompt() -> None:
    assert overhead._partner("You are in a room with Ishani alone. The two of you disagree") == "Ishani"
    assert overhead._partner("You are in a private room with Ada Quay, about this claim: x") == "Ada Quay"
    assert overhead._partner("This is round 2 of 4.") == ""
