"""Measurements behind every figure that the README quotes."""
