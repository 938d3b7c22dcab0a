"""Notes by rule: no model, any language, time linear in the entry's length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from moot.nodes.blackboard.bounds import EVIDENCE, SHORT, noted
from moot.nodes.blackboard.notes import OVERALL, Accord, Notes, Opposition
from moot.nodes.reading.facts import Accord as FoundAccord
from moot.nodes.reading.facts import Challenge, Facts, Finding, extract
from moot.nodes.text.terms import term_set, terms
from moot.state.entries import Entry, EntryKind, make_entry, seq_of

SPECIFIC_TERMS = 5
"""A disputed sentence with so many content words, or with a digit, is specific."""
ANSWER_SHARE = 0.2
"""A challenge counts as answered by a message to its author that takes up this share of its terms."""
_OPPOSITIONS = 2
_CONFIDENCE = {"mild": 0.4, "strong": 0.7}


@lru_cache(maxsize=256)
def _facts_of(
    key: str,
    speaker: str,
    kind: EntryKind,
    targets: tuple[str, ...],
    content: str,
    names: frozenset[tuple[str, str]],
) -> Facts:
    entry = make_entry(0, speaker, kind, content, id=key, targets=list(targets))
    return extract(entry, dict(sorted(names)))


def facts_of(entry: Entry, names: Mapping[str, str]) -> Facts:
    """Return what one entry says, by rule, not to be changed; the last few entries are read only once."""
    return _facts_of(
        entry["id"],
        entry["speaker"],
        entry["kind"],
        tuple(entry["targets"]),
        entry["content"],
        frozenset(names.items()),
    )


def notes_by_rule(
    entry: Entry,
    names: Mapping[str, str],
    *,
    aspect: str = OVERALL,
    challenged: Sequence[str] = (),
    transcript: Sequence[Entry] = (),
) -> Notes:
    """Read one entry.

    Args:
        entry: a debater's words.
        names: display names by debater id.
        aspect: the aspect under discussion.
        challenged: the speaker's open challenges, as the ledger has them.
        transcript: everything said, to find who made a challenge.
    """
    facts = facts_of(entry, names)
    position, firm = _position(facts)
    claims = sorted(facts["claims"], key=lambda claim: -claim["score"])
    engaged = _engaged(entry, facts, names)
    return Notes(
        entry=entry,
        aspect=aspect,
        stance=position if firm and aspect == OVERALL else "",
        position=position,
        firm=firm,
        argument=noted(claims[0]["text"]) if claims else "",
        evidence=_texts(facts["evidence"], EVIDENCE),
        concessions=tuple(_accords(facts["concessions"], entry, names)),
        agreements=tuple(_accords(facts["agreements"], entry, names)),
        oppositions=tuple(_oppositions(facts, entry, names)),
        shift=noted(facts["shifts"][-1]["text"]) if facts["shifts"] else "",
        engaged=tuple(engaged),
        answered=tuple(_answered(entry, challenged, engaged, transcript)),
    )


def _position(facts: Facts) -> tuple[str, bool]:
    """Return the position taken and whether it was stated as one."""
    conceded = {concession["order"] for concession in facts["concessions"]}
    stated = facts["shifts"] or [found for found in facts["positions"] if found["order"] not in conceded]
    if stated:
        return noted(stated[-1]["text"]), True
    best = max(facts["claims"], key=lambda claim: claim["score"], default=None)
    return (noted(best["text"]), False) if best else ("", False)


def _texts(found: Sequence[Finding], most: int) -> tuple[str, ...]:
    best = sorted(found, key=lambda item: (-item["score"], item["order"]))[:most]
    return tuple(dict.fromkeys(noted(item["text"], SHORT) for item in best))


def _whom(about: Sequence[str], entry: Entry, names: Mapping[str, str]) -> list[str]:
    """Return whom a finding is about; in a debate of two there is only one other."""
    others = [name for name in names if name != entry["speaker"]]
    known = [name for name in about if name in names and name != entry["speaker"]]
    return known or (others if len(others) == 1 else [])


def _engaged(entry: Entry, facts: Facts, names: Mapping[str, str]) -> list[str]:
    about = [
        *entry["targets"],
        *facts["mentions"],
        *(who for item in (*facts["challenges"], *facts["concessions"]) for who in item["about"]),
    ]
    known = [name for name in dict.fromkeys(about) if name in names and name != entry["speaker"]]
    return known or (_whom((), entry, names) if entry["seq"] > 1 else [])


def _accords(found: Iterable[FoundAccord], entry: Entry, names: Mapping[str, str]) -> Iterable[Accord]:
    for item in found:
        whom = _whom(item["about"], entry, names)
        yield Accord(whom[0] if whom else "", noted(item["text"]))


def _oppositions(facts: Facts, entry: Entry, names: Mapping[str, str]) -> Iterable[Opposition]:
    """Yield the strongest contradictions, at most one a debater contradicted."""
    seen: set[str] = set()
    ranked = sorted(facts["challenges"], key=lambda c: (c["strength"] != "strong", -c["score"], c["order"]))
    for challenge in ranked:
        for who in _whom(challenge["about"], entry, names):
            if who not in seen and len(seen) < _OPPOSITIONS:
                seen.add(who)
                yield _opposition(who, challenge, bool(facts["evidence"]))


def _opposition(who: str, challenge: Challenge, backed: bool) -> Opposition:
    text = noted(challenge["text"])
    specific = any(char.isdigit() for char in text) or len(set(terms(text))) >= SPECIFIC_TERMS
    confidence = _CONFIDENCE[challenge["strength"]] + 0.15 * backed + 0.1 * specific
    return Opposition(who, text, challenge["strength"], round(min(1.0, confidence), 2), specific)


def _answered(
    entry: Entry, challenged: Sequence[str], engaged: Sequence[str], transcript: Sequence[Entry]
) -> Iterable[str]:
    """Yield the open challenges whose author the entry answers, in words that the challenge used."""
    if not challenged:
        return
    said = term_set(entry["content"])
    for challenge in challenged:
        text, source = split_source(challenge)
        author = speaker_of(source, transcript)
        wanted = set(terms(text))
        addressed = author in engaged or source in entry["targets"]
        if addressed and len(wanted & said) >= ANSWER_SHARE * len(wanted):
            yield challenge


def with_source(text: str, message_id: str) -> str:
    """Return a noted text with the id of its message."""
    return f"{text} [{message_id}]"


def split_source(text: str) -> tuple[str, str]:
    """Take a text that `with_source` made apart again."""
    body, _, source = text.rpartition(" [")
    return (body, source.rstrip("]")) if body else (text, "")


def speaker_of(message_id: str, transcript: Sequence[Any]) -> str:
    """Return who said a message, `""` where there is none of that id."""
    seq = seq_of(message_id)
    return str(transcript[seq]["speaker"]) if seq is not None and seq < len(transcript) else ""
