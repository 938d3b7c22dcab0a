"""Readers for transcripts, chats and exported conversations in the forms that people have."""
