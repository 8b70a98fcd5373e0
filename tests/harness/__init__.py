"""The parts of `pytest bench`."""
