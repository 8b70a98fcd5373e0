"""Tests of the page of a run's profiles."""
