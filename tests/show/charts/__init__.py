"""Charts, by their data and their marks."""
