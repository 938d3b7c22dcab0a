"""Evidence tools: what debaters may look up and work out. Off unless a debater lists them."""
