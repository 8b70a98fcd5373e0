"""Layers and models from any package: make one from its name, find its inputs, and replace its core."""
