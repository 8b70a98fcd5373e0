"""The analysis of runs: the summary of records, the fastest of each point, comparisons, growth and profiles."""
