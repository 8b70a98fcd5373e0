"""Trace a module as a graph of operators, find its attention cores, and replace them."""
