"""Text as every reader of it sees it: tokens, terms, sentences."""
