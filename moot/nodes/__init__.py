"""Nodes of the debate graph, one per file."""
