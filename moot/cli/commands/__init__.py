"""The built-in `moot` commands, defined in one file for each command or group of similar commands."""
