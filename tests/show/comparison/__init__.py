"""Tests of the output of comparisons."""
