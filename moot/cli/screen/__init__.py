"""Output on the terminal: results, progress, tables and questions."""
