"""The description of a duel's modules."""

from typing import Any

import pytest

import impls
from bench.measure import described as of_modules
from bench.sampling.requests import Describe
from tests.make.points import point
from tests.measure.stub import Announcements


def described(layer: str, implementation: str = "as_is") -> dict[str, Any]:
    """Return the description of a module and an implementation."""
    return of_modules.described(Describe(point(layer=layer), implementation), Announcements())


def test_a_module_is_described_by_shapes_and_by_the_code_that_it_brings_in() -> None:
    """Weights have the module's own names; packages have their file, a digest and their version.

    Code of an implementation counts too, and so do earlier imports if the user's name contains them.
    """
    seen = described("tests.tiny_models:Net[input=1x5x16]", "impls.attend.eager:adapt")
    assert (seen["input"], seen["output"]) == ("[2, 5, 16]", "[2, 5, 16]")
    assert not any(name.startswith("inner.") for name, _ in seen["weights"])
    assert {*seen["modules"]} >= {"tests", "impls"}
    file, digest, version = seen["modules"]["tests"]
    assert file.endswith(".py")
    assert digest
    assert version == ""
    assert [name for name, _ in described("tests.own_layers:Separate")["weights"]][:2] == ["gain", "query.weight"]
    with pytest.raises(impls.Unresolved):
        described("tests.own_layers:Nothing")
