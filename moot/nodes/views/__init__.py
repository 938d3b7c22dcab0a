"""What one speaker gets to see."""
