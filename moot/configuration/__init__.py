"""Processing of a configuration, and readers for the sources of its settings."""
