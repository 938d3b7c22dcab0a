"""People in a debate: what they are asked, and how their answers are read."""
