"""People in a debate: interjections, questions and replies."""
