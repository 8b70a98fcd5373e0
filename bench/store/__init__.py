"""What was measured, on disk: records, the journal, the table of results, and the machine it came from."""
