"""The rules of each kind of debate."""
