"""Tests of impls.graph."""
