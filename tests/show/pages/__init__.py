"""Tests of the pages of runs, comparisons and histories."""
