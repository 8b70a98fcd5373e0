"""The parts of `pytest bench`: its options, its progress, what fails a point, and what pytest-benchmark gets."""
