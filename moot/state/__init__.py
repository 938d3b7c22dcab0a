"""State of a debate: channels, entries, claims, verdicts and configuration."""
