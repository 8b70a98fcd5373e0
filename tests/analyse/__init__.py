"""Summaries, comparisons, scaling and profiles, on planted rows."""
