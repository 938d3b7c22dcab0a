"""The `moot.debate/1` document: its types, how a debate becomes one, and how one from outside is read."""

from moot.graph.documents.document import FORMAT, DebateDocument
from moot.graph.documents.making import make_document
from moot.graph.documents.reading import as_far_as_it_goes, whole_document

__all__ = ["FORMAT", "DebateDocument", "as_far_as_it_goes", "make_document", "whole_document"]
