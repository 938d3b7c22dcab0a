"""The `moot.debate/1` document: types, writer and reader."""

from moot.documents.document import FORMAT, DebateDocument, make_document
from moot.documents.read_document import load_leniently, whole_document

__all__ = ["FORMAT", "DebateDocument", "load_leniently", "make_document", "whole_document"]
