"""Tests of the layers with several inputs, each beside its module."""
