"""Tests of the pages of runs, comparisons and profiles."""
