"""Council: a design debate."""
