"""Makers of test data: each module makes what its name says."""
