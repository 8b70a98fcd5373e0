"""Many points: worker processes, faults, resume, progress."""
