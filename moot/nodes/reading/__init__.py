"""Rule-based reading of what was said: no model, no downloads, any script."""
