"""Promises about statistics, rows and verdicts."""
