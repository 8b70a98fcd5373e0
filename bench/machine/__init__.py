"""What is known of the machine: its facts, its GPUs, how quiet it is, and the rates that are possible on it."""
