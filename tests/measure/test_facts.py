"""What a worker tells of its environment."""

import platform

import torch

from bench.measure.facts import torch_facts


def test_the_environment_is_named_by_its_own_python_and_torch() -> None:
    """A worker of another interpreter than its parent's says so itself."""
    facts = torch_facts()
    assert (facts["python"], facts["torch"]) == (platform.python_version(), torch.__version__)
