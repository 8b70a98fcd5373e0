"""The parts of `pytest bench`: its options, its progress, the reasons for failure, and the link to pytest-benchmark."""
