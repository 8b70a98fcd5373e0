"""Runs over many points: worker processes, their failures, and resuming."""
