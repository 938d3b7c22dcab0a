"""Memory of a debate, with recent messages, passages and summaries."""
