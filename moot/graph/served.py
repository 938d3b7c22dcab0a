"""Graphs that only a LangGraph server loads: those in which each phase of a protocol is a node."""

from collections.abc import Mapping

from moot.graph.debate import graph, served_graph
from moot.graph.runnable import DebateGraph

council, dialogue = served_graph("council"), served_graph("dialogue")

SERVED: Mapping[str, DebateGraph] = {"debate": graph, "council": council, "dialogue": dialogue}
"""Graphs that a LangGraph server offers. The keys are the graphs' names in `langgraph.json`."""
