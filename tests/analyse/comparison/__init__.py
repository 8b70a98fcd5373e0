"""Comparisons of two planted tables."""
