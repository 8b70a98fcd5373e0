"""The same random numbers for every test, so that a failure can be repeated; a compiler for some."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _repeatable() -> None:
    torch.manual_seed(0)


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    """Reset torch.compile before and after a test."""
    torch.compiler.reset()
    yield
    torch.compiler.reset()
