"""Dialogue: personas on a topic, aspect by aspect."""
