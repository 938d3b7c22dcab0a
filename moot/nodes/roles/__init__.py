"""Roles that ship with Moot, one Markdown file each."""
