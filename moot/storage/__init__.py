"""Databases of debates, with checkpoints, leases, catalogue, journal and inbox."""
