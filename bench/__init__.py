"""Measures attention layers: from sweep files to verdicts and pictures."""
