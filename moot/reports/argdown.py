"""The argument map of a debate: claims, and the arguments of each debater that support or attack them.

The map is an Argdown document, or the rows of a drawing for each claim.

Argdown is a text format for argument maps: https://argdown.org/syntax/. All text of a debate is escaped, so
that every document parses.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from moot.claims.claim_status import Ledger, leaning
from moot.claims.ledger_from_events import fold_events
from moot.claims.ledger_rendering import short_stance_text
from moot.documents import ClaimStatusRecord, DebateDocument, read_document
from moot.reports.markdown_html import clean_strings
from moot.reports.verdict_view import Participants
from moot.state.claim_events import MAIN_QUESTION
from moot.text.plain_text import clip, show_reordering

NODE_CHARS = 600
"""Maximum length of a text in the argument map, in characters."""
NODE_TITLE_CHARS = 60
"""Maximum length of a title in the argument map, in characters."""
MAX_MAP_ROWS = 24
"""Maximum number of arguments in the drawing of a claim's map."""
ROW_HEIGHT = 48
"""Height of an argument in the drawing, in SVG units: three lines of text."""
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
    claim: str = ""
    """Id of the claim. Empty for an argument."""
    debater: str = ""
    """Id of the debater who gives the argument. Empty for a claim."""
    label: str = ""
    """What the argument is, such as `yes`, `evidence` or `challenge`."""
    quote: str = ""
    message_id: str = ""
    children: "list[tuple[str, MapNode]]" = field(default_factory=list)
    """Child nodes, each paired with `+` if it supports this node or `-` if it attacks this node."""

    def lines(self, relation: str = "", depth: int = 0) -> Iterator[str]:
        """Yield this node and its descendants as indented lines of Argdown.

        `relation` is the mark before the node: `+` if it supports its parent, `-` if it attacks it, else
        `""`.
        """
        start = f"{'  ' * depth}{relation} " if relation else ""
        tag = f" #({self.tag})" if self.tag else ""
        quotation = f"“{self.quote}” [{self.message_id}]" if self.quote else ""
        text = f"{quotation}{self.text}"
        yield f"{start}{self.reference}{f': {_escaped(text)}' if text else ''}{tag}"
        for each, child in self.children:
            yield from child.lines(each, depth + 1)


def render_argdown(raw_document: object) -> str:
    """Convert a debate document to an Argdown argument map.

    Without extracted claims, the map shows the options that the verdict compares, with its findings for and
    against each.

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
        node = MapNode(_claim(key), text, claim["status"], key)
        for debater, stance in claim["stances"].items():
            sign = leaning(stance)
            if not sign:
                continue
            condition = f" On the condition: {stance['condition']}" if stance["condition"] else ""
            argument = MapNode(
                _argument(names, debater, key),
                condition,
                debater=debater,
                label=short_stance_text(stance),
                quote=stance["quote"],
                message_id=stance["message_id"],
                children=list(_replies(document, debater, key, names)),
            )
            node.children.append(("+" if sign > 0 else "-", argument))
        if key == MAIN_QUESTION:
            node.children += _grounds(ledger, claims_by_id)
        yield node


@dataclass(frozen=True)
class MapRow:
    """An argument in the map of a claim."""

    node: MapNode
    attacks: bool
    """True if the argument attacks its parent, False if it supports it."""
    x: int
    y: int
    parent_y: int


@dataclass(frozen=True)
class ClaimMap:
    """Arguments for and against a claim, each under what it supports or attacks."""

    rows: Sequence[MapRow]
    omitted: int
    """Number of further arguments, which the map does not show."""


def claim_maps(document: DebateDocument, people: Participants) -> dict[str, ClaimMap]:
    """Return the map of each claim on which a debater took a position, by claim id."""
    names = {person.id: person.name for person in people.values()}
    maps = {}
    for node in _claim_nodes(document, document["blackboard"]["standing"]["claims"], names):
        rows: list[MapRow] = []
        for relation, child, depth, parent in _below(node):
            parent_y = rows[parent].y + 14 if parent >= 0 else 0
            rows.append(MapRow(child, relation == "-", 16 * depth, 6 + ROW_HEIGHT * len(rows), parent_y))
        maps[node.claim] = ClaimMap(rows[:MAX_MAP_ROWS], max(0, len(rows) - MAX_MAP_ROWS))
    return {key: each for key, each in maps.items() if each.rows}


def _below(node: MapNode) -> Iterator[tuple[str, MapNode, int, int]]:
    """Yield the arguments below a node with relation, depth, and the number of the parent (-1: the node)."""
    number = 0
    for relation, child in node.children:
        yield relation, child, 1, -1
        parent, number = number, number + 1
        for reply_relation, reply in child.children:
            yield reply_relation, reply, 2, parent
            number += 1


def _grounds(ledger: Ledger, claims: Iterable[str]) -> Iterator[tuple[str, MapNode]]:
    """Yield the claims that support or attack the main question."""
    relations: dict[tuple[str, str], None] = {}
    for key in claims:
        for debater in ledger.timeline(key).grounds if key != MAIN_QUESTION else ():
            product = ledger.sign(debater) * ledger.sign(debater, key)
            if product:
                relations["+" if product > 0 else "-", key] = None
    return ((relation, MapNode(_claim(key), claim=key)) for relation, key in relations)


def _replies(
    document: DebateDocument, debater: str, claim: str, names: Mapping[str, str]
) -> Iterator[tuple[str, MapNode]]:
    """Yield the evidence for a debater's stance, and the challenges to it."""
    retracted_ids = {
        each["of"] for each in document["blackboard"]["claim_events"] if each["type"] == "retraction"
    }
    for each in document["blackboard"]["claim_events"]:
        if each["type"] == "evidence" and (each["debater"], each["claim"]) == (debater, claim):
            relation, author = "+", debater
        elif each["type"] == "challenge" and (each["to"], each["claim"]) == (debater, claim):
            relation, author = "-", each["debater"]
        else:
            continue
        if each["id"] not in retracted_ids:
            reference = _argument(names, author, f"{each['type']} {each['id']}")
            quote, message_id = each["quote"], each["message_id"]
            yield (
                relation,
                MapNode(reference, debater=author, label=each["type"], quote=quote, message_id=message_id),
            )


def _verdict_nodes(document: DebateDocument, names: Mapping[str, str]) -> Iterator[MapNode]:
    """Yield the nodes of the argument map if no claims were extracted.

    The nodes are the main question, the decision, each debater's answer and each option. The children of an
    option are the findings for and against it.
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
    """Return a node's title of at most `NODE_TITLE_CHARS` valid characters, or else `fallback`."""
    title = " ".join(_UNTITLED.sub(" ", text).split())[:NODE_TITLE_CHARS].strip(" .'-")
    return title or _UNTITLED.sub(" ", fallback).strip() or "unnamed"


def _one_line(text: str) -> str:
    return clip(" ".join(text.split()), NODE_CHARS)


def _escaped(text: str) -> str:
    """Escape a text for Argdown, and put it on one line."""
    return _PUNCTUATION.sub(lambda mark: f"\\{mark[0]}", _one_line(text))
