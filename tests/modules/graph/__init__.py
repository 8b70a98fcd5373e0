"""Tests of bench.modules.graph."""
