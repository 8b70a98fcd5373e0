"""Implementations that replace the whole layer, not only its core."""
