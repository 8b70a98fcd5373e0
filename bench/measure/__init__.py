"""One point inside a worker process: its workload, the gate, the clock, the rounds, memory and dispatch."""
