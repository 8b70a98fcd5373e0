"""Tests of cores, each beside its module."""
