"""Estimates, intervals and tests, held against simulation and published values."""
