"""What the measurements say: statistics over rounds and processes, and comparisons of results."""
