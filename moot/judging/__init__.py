"""Rubrics, panels, presentation orders and blinding."""
