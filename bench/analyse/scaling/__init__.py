"""The growth of latency and memory along an axis, and the changes of the fastest."""
