"""Maps of arguments: Kialo, Argdown and AIF. They contain claims and relations, so they are refused."""

import re

from moot.importers import ParsedTranscript, Reader, Source
from moot.state.errors import InputError

_KIALO = re.compile(r"\s*\d+(?:\.\d+)+\.?\s+(?P<relation>[^\W\d_]+):\s")
_ARGDOWN_HEAD = re.compile(r"\s*(?:[+\-_]\s*)?(?:\[[^\]\n]+\]|<[^>\n]+>)(?::\s|\s*$)")
_ARGDOWN_RELATION = re.compile(r"\s+(?:[+\-_]|[+\-_]?>|<[+\-_]?|><)\s+(?:\[|<)")


def _refusal(form: str) -> InputError:
    return InputError(
        f"the file is {form}. It contains claims and their relations, and does not say who speaks. Import "
        "the discussion as a transcript, or give the file to a new debate with --context"
    )


def _read_text(source: Source) -> ParsedTranscript | None:
    relations = [match["relation"] for line in source.lines if (match := _KIALO.match(line))]
    filled = sum(bool(line.strip()) for line in source.lines)
    # An outline has two words for its relations, Pro and Con in English, at nearly each line.
    if relations and len(set(relations)) <= 2 and 2 * len(relations) >= filled - 2:
        raise _refusal("an outline of arguments, such as Kialo exports")
    if source.suffix in (".argdown", ".ad") or (
        any(map(_ARGDOWN_RELATION.match, source.lines)) and any(map(_ARGDOWN_HEAD.match, source.lines))
    ):
        raise _refusal("an Argdown map")
    return None


def _read_json(source: Source) -> ParsedTranscript | None:
    value = source.json
    nodes = value.get("nodes") if isinstance(value, dict) else None
    if isinstance(nodes, list) and nodes and isinstance(value, dict) and "edges" in value:
        if all(isinstance(node, dict) and {"type", "nodeID"} <= node.keys() for node in nodes):
            raise _refusal("an argument map in the Argument Interchange Format (AIF)")
        if all(isinstance(node, dict) for node in nodes) and not any("speaker" in node for node in nodes):
            raise _refusal("a graph of nodes and edges")
    if isinstance(value, dict) and {"statements", "arguments"} <= value.keys():
        raise _refusal("an Argdown map")
    return None


TEXT = Reader("argument map", "text", _read_text)
JSON = Reader("argument map", "json", _read_json)
