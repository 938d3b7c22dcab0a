"""Summarisers: what stands in a view for the messages that have left the window."""
