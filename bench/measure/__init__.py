"""The processes that measure: the server that forks them, the judge, and a case with its workload, checks and clock."""
