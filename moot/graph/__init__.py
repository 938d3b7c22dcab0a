"""State graph of a debate: nodes and edges, routing, the runnable, and its JSON schemas."""
