"""Drills: what the suite claims of itself, shown on this machine. Each prints figures; none is a test."""
