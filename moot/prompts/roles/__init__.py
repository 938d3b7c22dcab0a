"""Built-in roles, one Markdown file each."""
