"""What a debate is: its state, configuration, storage and errors. Imports nothing else of Moot's."""
