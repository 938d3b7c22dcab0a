"""What happens in a debate: one node a file, and the machinery beside them."""
