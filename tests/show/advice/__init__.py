"""Tests of the answers of `advise`."""
