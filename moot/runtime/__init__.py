"""Node runner, environment, permissions and spans."""
