"""The floor, given to models and to people."""
