"""Benchmarks, which measure the figures in `docs/figures.md`."""
