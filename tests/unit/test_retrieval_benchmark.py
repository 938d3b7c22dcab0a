"""The retrieval benchmark on small data sets."""

import json
from pathlib import Path

import pytest

from benchmarks.retrieval import main


def test_benchmark_without_data_prints_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--data", str(tmp_path)])
    assert "no QMSum files" in capsys.readouterr().out


def test_benchmark_finds_a_passage_about_one_topic(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = ["harbour", "carbon", "school", "market"]
    transcript = [
        {"speaker": f"Speaker {n % 2}", "content": f"The {topic} was point {n} of the long agenda that day."}
        for topic in topics
        for n in range(120)
    ]
    question = {"query": "Summarize the discussion about carbon", "relevant_text_span": [["120", "139"]]}
    meeting = {"meeting_transcripts": transcript, "specific_query_list": [question]}
    (tmp_path / "a.json").write_text(json.dumps(meeting), encoding="utf-8")
    main(["--data", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1 questions")
    assert next(line for line in lines if line.startswith("moot ask")).split()[-1] == "1.000"


def test_benchmark_ranks_the_turns_of_a_conversation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("Ann", "Bob")
    sessions = {
        f"session_{s}": [
            {
                "speaker": names[n % 2],
                "dia_id": f"D{s}:{n}",
                "text": f"Nothing much happened on day {s}, {n}.",
            }
            for n in range(60)
        ]
        for s in (1, 2)
    }
    sessions["session_2"][9] |= {"text": "Look at this.", "blip_caption": "a red canoe"}
    asked = [
        {"question": "What canoe did Bob show?", "answer": "red", "evidence": ["D2:9; D2:9"], "category": 4},
        {"question": "Why?", "evidence": [], "category": 1},
    ]
    times = {f"{key}_date_time": f"1:00 pm on {key[-1]} May, 2023" for key in sessions}
    data = {"conversation": {"speaker_a": "Ann", "speaker_b": "Bob", **sessions, **times}, "qa": asked}
    (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
    main(["--data", str(tmp_path), "--json"])
    results = json.loads(capsys.readouterr().out)
    assert results["prompt"].keys() == {"1000", "2000", "4000", "8000"}
    assert results["prompt"]["1000"] == {"overall": 1.0, "single-hop": 1.0}
    assert results["memories"] == {"overall": 1.0, "single-hop": 1.0}
    assert results["recall"] == {str(k): {"overall": 1.0, "single-hop": 1.0} for k in (5, 50)}
