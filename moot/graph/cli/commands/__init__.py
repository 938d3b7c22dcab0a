"""The commands of `moot`, one a file."""
