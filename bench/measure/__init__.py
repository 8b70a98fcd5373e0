"""The processes that measure: the server that forks them, the judge, and a worker's case with its checks and clock."""
