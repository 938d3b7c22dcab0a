"""A debate as an Argdown document: claims, and the arguments of each debater that support or attack them.

Argdown is a text format for argument maps: https://argdown.org/syntax/. All text of a debate is escaped, so
that every document parses.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from moot.claims.claim_status import Ledger, leaning
from moot.claims.ledger_from_events import fold_events
from moot.documents import ClaimStatusRecord, DebateDocument, read_document
from moot.reports.markdown_html import clean_strings
from moot.reports.verdict_view import Participants
from moot.state.claim_events import MAIN_QUESTION
from moot.text.plain_text import clip, show_reordering

TEXT_CHARS = 600
"""Maximum length of a text in the argument map, in characters."""
TITLE_CHARS = 60
"""Maximum length of a title in the argument map, in characters."""
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
"""Pattern for the characters that Argdown text must escape. They are all ASCII punctuation. Argdown reads any
escaped character as text."""
_UNTITLED = re.compile(r"[^\w .'-]+|_")
"""Pattern for characters that may not appear in a node title of an argument map."""


@dataclass
class MapNode:
    """Claim or argument in an argument map."""

    reference: str
    """Title of the node in Argdown syntax, written as `[…]` for a claim and as `<…>` for an argument."""
    text: str = ""
    """Text of the node. It is empty if another node with the same title contains it."""
    tag: str = ""
    children: "list[tuple[str, MapNode]]" = field(default_factory=list)
    """Child nodes, each paired with `+` if it supports this node or `-` if it attacks this node."""

    def lines(self, relation: str = "", depth: int = 0) -> Iterator[str]:
        """Yield this node and its descendants as indented lines of Argdown.

        `relation` is the mark before the node: `+` if it supports its parent, `-` if it attacks it, else
        `""`.
        """
        start = f"{'  ' * depth}{relation} " if relation else ""
        tag = f" #({self.tag})" if self.tag else ""
        yield f"{start}{self.reference}{f': {_escaped(self.text)}' if self.text else ''}{tag}"
        for each, child in self.children:
            yield from child.lines(each, depth + 1)


def render_argdown(raw_document: object) -> str:
    """Convert a debate document to an Argdown argument map.

    Without extracted claims, the map shows the reasons for and against each debater's answer that the verdict
    gives.

    Raises:
        InputError: The document is invalid or incomplete. The message names the key.
    """
    document = read_document(clean_strings(raw_document))
    names = {person.id: person.name for person in Participants(document).values()}
    claims = document["blackboard"]["standing"]["claims"]
    extracted = any(claim["stances"] for claim in claims)
    nodes = list(_claim_nodes(document, claims, names) if extracted else _verdict_nodes(document, names))
    title = document["topic"].replace("===", "= = =")  # this mark ends the header
    header = {"title": _one_line(title), "subTitle": document["name"] or document["id"]}
    # The escape keeps a tag from being read as HTML by a page that shows the title.
    front = [
        f"{key}: {json.dumps(value, ensure_ascii=False)}".replace("<", "\\u003c")
        for key, value in header.items()
        if value
    ]
    parts = ["\n".join(["===", *front, "==="]), *("\n".join(node.lines()) for node in nodes)]
    return show_reordering("\n\n".join(parts)) + "\n"


def _claim_nodes(
    document: DebateDocument, claims: Iterable[ClaimStatusRecord], names: Mapping[str, str]
) -> Iterator[MapNode]:
    """Yield a node for each claim, whose children are the arguments for and against it."""
    ledger = fold_events(document["blackboard"]["claim_events"], document["topic"])
    claims_by_id = {each["id"]: each for each in claims}
    for key, claim in claims_by_id.items():
        text = document["topic"] if key == MAIN_QUESTION else claim["text"]
        node = MapNode(_claim(key), text, claim["status"])
        for debater, stance in claim["stances"].items():
            sign = leaning(stance)
            if not sign:
                continue
            argument = MapNode(
                _argument(names, debater, key), f"“{stance['quote']}” [{stance['message_id']}]"
            )
            if stance["condition"]:
                argument.text += f" On the condition: {stance['condition']}"
            argument.children = list(_replies(document, debater, key, names))
            node.children.append(("+" if sign > 0 else "-", argument))
        if key == MAIN_QUESTION:
            node.children += _grounds(ledger, claims_by_id)
        yield node


def _grounds(ledger: Ledger, claims: Iterable[str]) -> Iterator[tuple[str, MapNode]]:
    """Yield the claims that support or attack the main question."""
    relations: dict[tuple[str, str], None] = {}
    for key in claims:
        for debater in ledger.timeline(key).grounds if key != MAIN_QUESTION else ():
            product = ledger.sign(debater) * ledger.sign(debater, key)
            if product:
                relations["+" if product > 0 else "-", key] = None
    return ((relation, MapNode(_claim(key))) for relation, key in relations)


def _replies(
    document: DebateDocument, debater: str, claim: str, names: Mapping[str, str]
) -> Iterator[tuple[str, MapNode]]:
    """Yield the evidence for a debater's stance, and the challenges to it."""
    retracted_ids = {
        each["of"] for each in document["blackboard"]["claim_events"] if each["type"] == "retraction"
    }
    for each in document["blackboard"]["claim_events"]:
        if each["type"] == "evidence" and (each["debater"], each["claim"]) == (debater, claim):
            relation, author, label = "+", debater, f"evidence {each['id']}"
        elif each["type"] == "challenge" and (each["to"], each["claim"]) == (debater, claim):
            relation, author, label = "-", each["debater"], f"challenge {each['id']}"
        else:
            continue
        if each["id"] not in retracted_ids:
            yield (
                relation,
                MapNode(_argument(names, author, label), f"“{each['quote']}” [{each['message_id']}]"),
            )


def _verdict_nodes(document: DebateDocument, names: Mapping[str, str]) -> Iterator[MapNode]:
    """Yield the nodes of the argument map if no claims were extracted.

    The nodes are the main question, the decision and each debater's answer. The children of an answer are the
    reasons for and against it.
    """
    verdict = document["verdict"]
    valid_verdict = (
        verdict if verdict and verdict["status"] == "ok" and not verdict.get("placeholder") else None
    )
    yield MapNode(_claim(MAIN_QUESTION), document["topic"])
    if valid_verdict is None:
        return
    if valid_verdict["decision"]:
        yield MapNode("[Decision]", valid_verdict["decision"])
    for debater, position in valid_verdict.get("final_position", {}).items():
        name = _title(names.get(debater, debater), debater)
        yield MapNode(f"[Answer of {name}]", position or "No position")
    for number, option in enumerate(valid_verdict.get("considered", []), 1):
        node = MapNode(f"[Option {number}]", f"{option['option']} ({option['outcome']}). {option['because']}")
        for finding in option["findings"]:
            if not (relation := {"good": "+", "bad": "-"}.get(finding["rating"])):
                continue
            title = _title(f"option {number} - {finding['criterion']}", "finding")
            node.children.append((relation, MapNode(f"<{title}>", finding["finding"])))
        yield node


def _claim(key: str) -> str:
    return f"[{_title(key, 'claim')}]"


def _argument(names: Mapping[str, str], debater: str, label: str) -> str:
    return f"<{_title(names.get(debater, debater), debater)} - {_title(label, 'argument')}>"


def _title(text: str, fallback: str) -> str:
    """Return a node's title of at most `TITLE_CHARS` valid characters, or else `fallback`."""
    title = " ".join(_UNTITLED.sub(" ", text).split())[:TITLE_CHARS].strip(" .'-")
    return title or _UNTITLED.sub(" ", fallback).strip() or "unnamed"


def _one_line(text: str) -> str:
    return clip(" ".join(text.split()), TEXT_CHARS)


def _escaped(text: str) -> str:
    """Escape a text for Argdown, and put it on one line."""
    return _PUNCTUATION.sub(lambda mark: f"\\{mark[0]}", _one_line(text))
