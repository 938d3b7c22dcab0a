"""Postgres storage and the work queue."""
