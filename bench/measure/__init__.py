"""One point inside a worker process: its workload, the correctness check, the clock, the rounds, memory, dispatch."""
