"""The long form: one speaker a turn, whoever gives the floor."""
