"""The page of a run's profiles."""
