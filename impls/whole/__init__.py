"""Implementations that replace the whole layer, not its core alone."""
