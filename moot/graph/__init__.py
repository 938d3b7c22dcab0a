"""How a debate is wired and used: the graph, the Python API, the command line and reports."""
