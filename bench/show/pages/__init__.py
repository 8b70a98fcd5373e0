"""The page of a run: one file that needs no network."""
