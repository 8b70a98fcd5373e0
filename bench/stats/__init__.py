"""Statistics over rounds and processes: estimates, intervals, tests and what they can detect."""
