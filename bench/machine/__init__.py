"""What is known of the machine: its facts, its rates, how quiet it is, and whether it is ready to measure."""
