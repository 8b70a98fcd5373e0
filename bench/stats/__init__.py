"""Statistics over rounds and processes: estimates, intervals, tests and their power."""
