"""Three tiers of memory and the views assembled from them."""
