"""Tests of the graph of a module."""
