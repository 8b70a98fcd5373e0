"""The machine: its facts, its GPUs, the load of other processes, and the rates that are possible on it."""
