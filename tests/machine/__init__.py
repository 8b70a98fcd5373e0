"""What is on disk: records, the journal, the table and the environment."""
