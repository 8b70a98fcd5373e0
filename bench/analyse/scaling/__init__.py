"""How latency and memory grow along an axis, and where the fastest changes."""
