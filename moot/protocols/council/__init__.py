"""Protocol `council`, in which debaters design a solution together."""
