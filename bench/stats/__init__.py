"""Statistics over rounds and processes: estimates, intervals and bounds."""
