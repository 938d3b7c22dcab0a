"""Documents in the format `moot.debate/1` for tests of reports."""

from __future__ import annotations

from typing import Any

from moot.documents import DebateDocument, board_document
from moot.judging.response_check import failed_verdict
from moot.state.claim_events import CruxCard, Reflection
from moot.state.conversation import Receipt
from moot.state.entries import entry_id, make_entry
from moot.state.verdict import Verdict
from tests.support.typed_dicts import completed

Document = dict[str, Any]

DEBATERS = [
    {"id": "ada", "name": "Ada Okafor", "role": "Platform lead", "stance": "Modules first"},
    {"id": "grace", "name": "Grace Lindqvist", "role": "Architect", "stance": "Split along team lines"},
]
VERDICT: Verdict = {
    **failed_verdict("Judge 1", ""),
    "status": "ok",
    "judge": "Judge 1",
    "model": "offline",
    "rubric": "debate",
    "order": ["ada", "grace"],
    "reasoning": "The point of **order** decided it (m000003).",
    "scores": {
        "ada": {"evidence": {"score": 8.5, "reason": "Gave figures.", "citations": ["m000001"]}},
        "grace": {"evidence": {"score": 6, "reason": "Gave none.", "citations": ["m000002"]}},
    },
    "totals": {"ada": 83.3, "grace": 55.6},
    "winner": "ada",
    "confidence": 78,
    "read": {"full": 4, "part": 0, "of": 4},
    "considered": [
        {
            "option": "Modules first",
            "outcome": "chosen",
            "because": "One team can release alone.",
            "findings": [
                {"criterion": "cost", "rating": "bad", "finding": "The database stays shared."},
            ],
            "citations": ["m000001"],
        },
        {
            "option": "Split along team lines",
            "outcome": "rejected",
            "because": "Nobody priced it.",
            "findings": [],
            "citations": ["m000002"],
        },
    ],
    "unmet_requirements": [{"text": "No audit trail", "major": True}],
    "checks": [
        {
            "question": "Who owns the schema?",
            "how": "Ask the heads of the teams.",
            "who": "Ada",
            "cost": "an hour",
            "by": "1 May",
            "if_yes": "Begin.",
            "if_no": "Wait.",
        }
    ],
    "solution_markdown": "",
    "tradeoffs": ["One release train for longer"],
    "first_step": "Cut the ledger out first",
    "dropped_citations": 1,
    "dropped_scores": 0,
    "clamped_scores": 0,
    "notes": [],
    "flip": {"orders": [["ada", "grace"], ["grace", "ada"]], "winners": ["ada", "ada"], "flipped": False},
    "lengths": {"ada": 18, "grace": 18},
    "usage": {},
}
FAILED_VERDICT = failed_verdict("Judge 2", "no JSON, twice")
ATTRIBUTION: dict[str, Any] = {"debater": "ada", "by": "model"}
EVENT: dict[str, Any] = {**ATTRIBUTION, "type": "event", "condition": "", "ground": False, "confidence": 0.9}
CLAIM_EVENTS: list[Any] = [
    {
        "type": "claim",
        "id": "p001",
        "text": "A split doubles incidents.",
        "aspect": "overall",
        "seq": 1,
    },
    {"type": "claim", "id": "p002", "text": "The database is shared.", "aspect": "overall", "seq": 1},
    {
        **EVENT,
        "id": "e001",
        "kind": "asserts",
        "claim": "p000",
        "message_id": "m000001",
        "quote": "Modules first",
    },
    {
        **EVENT,
        "id": "e002",
        "kind": "asserts",
        "claim": "p001",
        "message_id": "m000001",
        "quote": "Cheaper",
    },
    {
        **EVENT,
        "id": "e003",
        "kind": "denies",
        "claim": "p001",
        "message_id": "m000002",
        "quote": "No",
        "debater": "grace",
    },
    {
        **EVENT,
        "id": "e004",
        "kind": "asserts",
        "claim": "p002",
        "message_id": "m000001",
        "quote": "One database",
    },
    {
        **EVENT,
        "id": "e005",
        "kind": "asserts",
        "claim": "p002",
        "message_id": "m000002",
        "quote": "Shared",
        "debater": "grace",
    },
    {
        **EVENT,
        "id": "e006",
        "kind": "concedes",
        "claim": "",
        "message_id": "m000003",
        "quote": "Migration was underestimated",
    },
    {
        **EVENT,
        "id": "e007",
        "kind": "denies",
        "claim": "p000",
        "message_id": "m000003",
        "quote": "Modules first, ledger now",
    },
    {
        **ATTRIBUTION,
        "type": "evidence",
        "id": "x001",
        "kind": "source",
        "message_id": "m000001",
        "quote": "deploy log",
        "claim": "p001",
    },
    {
        **ATTRIBUTION,
        "type": "challenge",
        "id": "c001",
        "debater": "grace",
        "to": "ada",
        "message_id": "m000002",
        "quote": "hidden cost",
        "claim": "p001",
    },
    {"type": "extraction_pass", "through": 4, "by": "model", "dropped": {}},
]
REFLECTION: Reflection = {
    "id": "r1",
    "content": "They differ on order.",
    "kind": "pattern",
    "about": ["ada"],
    "message_ids": [],
    "round": 1,
    "importance": 5,
}
CRUX_CARD: CruxCard = {
    "id": "k1",
    "question": "Does a split double incidents?",
    "claim": "p001",
    "sides": {"ada": {"answer": "yes", "reasoning": "Two of three.", "falsifier": "A calm quarter."}},
    "type": "evidence",
    "diagnosis": "Different incidents.",
    "resolved": False,
    "resolution": "",
    "message_ids": ["m000002"],
    "round": 1,
}
TRANSCRIPT: list[Any] = [make_entry(seq, "ada", "speech", "…", round=(seq + 1) // 2) for seq in range(5)]
CRUX_ROOM = {"id": "room-01", "claim": "p001", "closed": False}
BLACKBOARD: Document = {
    **board_document(
        {
            "topic": "Should we split?",
            "claim_events": CLAIM_EVENTS,
            "full_transcript": TRANSCRIPT,
            "crux_cards": {"k1": CRUX_CARD},
            "reflections": [REFLECTION],
            "crux_rooms": {"room-01": CRUX_ROOM},
        }
    )
}


def debate_document(
    turns: int = 4, *, words: str = "We should measure before we split.", **keys: Any
) -> Document:
    """Return a complete document with a number of turns. `keys` replace its fields."""
    speakers = [str(debater["id"]) for debater in DEBATERS]
    entries: list[Any] = [make_entry(0, "user", "topic", "Should we split?")]
    entries += [
        make_entry(
            seq, speakers[(seq - 1) % 2], "speech", f"Turn {seq}. {words}", round=(seq + 1) // 2, tokens=9
        )
        for seq in range(1, turns + 1)
    ]
    document: Document = {
        "format": "moot.debate/1",
        "id": "d1",
        "name": "split",
        "topic": "Should we split?",
        "status": "done",
        "ended_because": "all turns are taken",
        "convergence": [{"round": 1, "agreement": 0.42, "in_dispute": ["Who owns the schema then?"]}],
        "protocol": "round-robin",
        "config": {"debaters": DEBATERS, "memory": {"budget": {"total": 8000}}, "api_key": "sk-secret"},
        "transcript": entries,
        "summaries": [_summary(entries[-1]["seq"])],
        "receipts": [_receipt(seq) for seq in range(1, turns + 1)],
        "verdicts": [VERDICT, FAILED_VERDICT],
        "verdict": VERDICT,
        "solution": "# Keep one deployable\n\nCut the **ledger** out.\n\n### Steps\n\n1. Freeze the schema.",
        "blackboard": BLACKBOARD,
        "usage": {
            "calls": 9,
            "prompt_tokens": 1000,
            "completion_tokens": 90,
            "cached_tokens": 800,
            "cost_usd": 0.5,
        },
        "planned": {"calls": 10, "prompt_tokens": 900},
        "agreement": {"judges": 1, "failed": 1, "alpha": 0.61, "kappa": None, "flip_rate": 0.25},
        "errors": [{"step": 4, "node": "summarize", "error": "A summary was over-long."}],
        "created_at": "2026-01-02T03:04:05Z",
        "updated_at": "2026-01-02T04:04:05Z",
    }
    complete: Document = completed(DebateDocument, {**document, **keys})
    return complete


def _summary(through: int) -> Document:
    return {
        "kind": "rolling",
        "owner": "",
        "version": 3,
        "text": "Ada holds that modules come first.",
        "covers_from_seq": 0,
        "covers_through_seq": through,
        "before_tokens": 2400,
        "after_tokens": 310,
        "method": "rule-based",
        "created_at": "2026-01-02T03:10:00Z",
        "latency_s": 0.2,
        "points": [{"text": "Modules first", "message_ids": ["m000001"]}],
    }


def _receipt(seq: int) -> Receipt:
    return {
        "entry_id": entry_id(seq),
        "seq": seq,
        "speaker": "ada",
        "phase": "speech",
        "round": (seq + 1) // 2,
        "step": seq,
        "call_index": 0,
        "message_ids": [],
        "retrieved": [],
        "summary_version": 3,
        "digest": "",
        "checkpoint": "",
        "budget": 8000,
        "total_tokens": 1300,
        "sections": {"system": 600, "summary": 100, "messages": 500, "turn_suffix": 100},
        "omitted": [{"what": entry_id(0), "why": "older than the window", "tokens": 40}],
    }


ATTACKS = (
    "<script>window.ran=1</script>",
    "<img src=x onerror=window.ran=1>",
    '"><svg onload=window.ran=1>',
    "[click](javascript:window.ran=1)",
    "[click](JaVaScRiPt:window.ran=1)",
    "[click](java\tscript:window.ran=1)",
    "[click](data:text/html,<script>window.ran=1</script>)",
    "[click](vbscript:x)",
    "<javascript:window.ran=1>",
    "![pixel](http://127.0.0.1:9/pixel.png)",
    "![pixel](javascript:window.ran=1)",
    '[x](https://e.org "onmouseover=window.ran=1")',
    "[x](<https://e.org/\" onmouseover='window.ran=1'>)",
    "</template></details></main><script>window.ran=1</script>",
    "</style><script>window.ran=1</script>",
    "</title><script>window.ran=1</script>",
    "{{ 7*7 }}{% raw %}",
    "<style>@import 'http://127.0.0.1:9/x.css'</style>",
    "<base href='http://127.0.0.1:9/'><link rel=stylesheet href=x>",
    "<iframe srcdoc='<script>parent.ran=1</script>'></iframe>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "<!-- <a href='--><script>window.ran=1</script>",
    "]]><script>window.ran=1</script>",
    "[ref]: javascript:window.ran=1\n\n[ref]",
    "`<script>window.ran=1</script>`\n\n```\n</pre><script>window.ran=1</script>\n",
)


def hostile_document() -> Document:
    """Return a document in which every text, name, key and id is an attack."""
    bad = "\n\n".join(ATTACKS)
    name = '"><script>window.ran=1</script><svg onload=window.ran=1>'
    entries = [
        dict(
            make_entry(seq, speaker, "speech", ATTACKS[seq % len(ATTACKS)] + "\x00\ud800\x1b[31m", round=seq)
        )
        for seq, speaker in ((seq, (name, "grace")[seq % 2]) for seq in range(len(ATTACKS)))
    ]
    entries.append({**entries[0], "id": name, "phase": name, "room": name, "targets": [name]})
    scores = {name: {name: {"score": 3, "reason": bad, "citations": [name, "m000001"]}}}
    verdict = {**VERDICT, "judge": name, "model": name, "reasoning": bad, "winner": name, "scores": scores}
    verdict |= {"totals": {name: 3}, "dissent": [bad], "tradeoffs": [bad], "first_step": bad}
    stance = {
        "kind": "asserts",
        "quote": bad,
        "message_id": name,
        "condition": bad,
        "history": [name, "e001"],
    }
    admission = {"event": "e001", "debater": name, "claim": name, "quote": bad, "message_id": name}
    claim_statuses = {
        "claims": [
            {
                "id": key,
                "text": bad,
                "status": "disputed",
                "label": name,
                "was_disputed": True,
                "stances": {name: stance},
            }
            for key in ("p000", name)
        ],
        "concessions": [admission],
        "changes": [{**admission, "before": bad}],
        "rounds": [{"round": 1, "positions": {name: bad}, "new_disputes": [name], "moved": ["e001"]}],
    }
    said = {**ATTRIBUTION, "id": "e001", "debater": name, "quote": bad, "message_id": name, "claim": name}
    events = [
        {**EVENT, **said, "kind": "asserts"},
        {**said, "type": "evidence", "kind": "figure"},
        {**said, "type": "challenge", "to": name},
    ]
    board: Document = {"claim_events": events, "standing": claim_statuses}
    board["cards"] = [
        {"question": bad, "sides": {name: {"answer": "yes", "reasoning": bad}}, "type": "values"}
    ]
    return debate_document(
        id=name,
        name=name,
        topic=bad,
        ended_because=bad,
        convergence=[{"round": 1, "agreement": 0.1, "in_dispute": [bad]}],
        protocol=name,
        config={
            "debaters": [{"id": name, "name": name, "role": name, "stance": bad}, DEBATERS[1]],
            name: bad,
        },
        transcript=entries,
        summaries=[{**_summary(3), "kind": name, "owner": name, "text": bad, "method": name}],
        receipts=[
            {**_receipt(1), "sections": {"system": 9, name: 9}, "omitted": [{"what": name, "why": bad}]}
        ],
        verdicts=[verdict, verdict],
        verdict=verdict,
        solution=bad,
        blackboard=board,
        errors=[{"step": 1, "node": name, "error": bad}],
        agreement={"alpha": 0.5, name: bad},
        created_at=name,
    )
