"""Memory of a debate, with recent messages, summaries, retrieval and answers to questions."""
