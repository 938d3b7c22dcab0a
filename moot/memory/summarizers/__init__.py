"""Summarizers, one in each module."""
