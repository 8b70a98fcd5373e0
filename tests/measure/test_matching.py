"""What a duel asks of the modules of its sides."""

from pathlib import Path
from typing import Any

import pytest

import impls
from bench.measure import matching
from bench.plan.weights import matches
from tests.make.points import point
from tests.measure.stub import Announcements


def described(layer: str, implementation: str = "as_is") -> dict[str, Any]:
    """Return the description of a module and an implementation."""
    return matching.described({"point": vars(point(layer=layer)), "implementation": implementation}, Announcements())


def test_a_module_is_described_by_shapes_and_by_the_code_that_it_brings_in() -> None:
    """Names of weights are those of the module itself; packages have their file, a digest and their version.

    Code of an implementation counts too, and what was imported before if a name of the user's says it.
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


@pytest.mark.parametrize(
    ("name", "is_found"), [("Renamed", True), ("Packed", True), ("Skewed", False), ("Whole", False)]
)
def test_weights_are_matched_if_outputs_agree(name: str, is_found: bool, tmp_path: Path) -> None:
    """Renamed and packed ones, and beside new ones; never in a layer that computes something else."""
    before, after = (f"tests.own_layers:{each}" for each in ("Separate", name))
    path, seen = str(tmp_path / "weights.pt"), described(after)
    ways = matches(described(before)["weights"], seen["weights"], seen["heads"])
    matching.computed({"point": vars(point(layer=before)), "path": path}, Announcements())
    found = matching.matched({"point": vars(point(layer=after)), "path": path, "ways": ways}, Announcements())
    assert (found["number"] is not None) is is_found
    assert found["tried"] <= len(ways)
