"""Tools of debaters that need nothing of a debate."""
