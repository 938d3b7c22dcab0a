"""What carries out what nodes ask for: calls, questions, local work."""
