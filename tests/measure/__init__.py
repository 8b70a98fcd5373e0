"""Tests of bench/measure."""
