"""What a run says: the summary of its records, the fastest of each point, comparisons and scaling."""
