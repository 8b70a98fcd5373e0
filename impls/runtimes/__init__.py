"""Implementations that other runtimes compute; each imports its runtime when it is built."""
