"""Protocol `dialogue`, in which personas discuss a topic aspect by aspect."""
