"""Questions about a debate: quotation, selection, answer and chat."""
