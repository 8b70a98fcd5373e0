"""The analysis of runs: the summary of records, the fastest at each point, comparisons, growth and profiles."""
