import json
from pathlib import Path

import pytest

from benchmarks.fidelity import main


def test_without_data_the_benchmark_says_so_and_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--data", str(tmp_path)])
    assert "no QMSum files" in capsys.readouterr().out


def test_a_passage_of_one_topic_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
