"""Claims of debaters, with their extraction, status, display, crux cards and reflections."""
