"""Makers of test data, a module for each kind."""
