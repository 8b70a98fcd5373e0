"""Tests of bench/machine."""
