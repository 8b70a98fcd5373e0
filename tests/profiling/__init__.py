"""Tests of bench/profiling."""
