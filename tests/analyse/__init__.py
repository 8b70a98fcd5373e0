"""Summaries, comparisons, growth and profiles, on planted rows."""
