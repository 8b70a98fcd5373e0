"""The table of layers and implementations, held against the adapters."""

import dataclasses

import pytest

import impls
from bench.measure import workload
from bench.plan.layers import LAYERS
from bench.show.terminal.console import rendered
from bench.show.terminal.listing import matrix
from impls.catalogue import NOT_WRITTEN, Entry, Style
from tests.points import of_layer

REFUSED = [
    (layer.name, name)
    for name, entry in impls.IMPLEMENTATIONS.items()
    for layer in LAYERS.values()
    if entry.refusal(layer.class_name)
]


def test_a_row_says_what_an_implementation_supports() -> None:
    """Each pair that doesn't go together is a no with the number of its reason, which stands below."""
    look = Style("#000000", (), "o")
    layers = {name: dataclasses.replace(LAYERS["vit"], name=name, module=f"m:{name}") for name in ("a", "b")}
    entries = {
        "x": Entry("m:x", "x", look, refuses={"b": "b has no x"}),
        "y": Entry("m:y", "y", look, supports="on a GPU", refuses={"a": "none here"}),
        "z": Entry("m:z", "z", look, layers=("b",), supports="with luck"),
    }
    lines = [line.split() for line in rendered(matrix(layers, entries)).splitlines()]

    assert ["|", "x", "|", "yes", "|", "no", "(1)", "|", "everywhere", "|"] in lines
    assert ["|", "y", "|", "no", "(2)", "|", "yes", "|", "on", "a", "GPU", "|"] in lines
    assert ["|", "z", "|", "no", "(3)", "|", "yes", "|", "with", "luck", "|"] in lines
    assert ["(1)", "b", "has", "no", "x."] in lines
    assert ["(3)", *f"{NOT_WRITTEN}.".split()] in lines


@pytest.mark.parametrize(("layer", "implementation"), REFUSED)
def test_what_does_not_go_together_is_unsupported(layer: str, implementation: str) -> None:
    """A pair that the catalogue refuses is refused with its reason when it is built."""
    work = workload.make(of_layer(layer))
    with work.gradient_mode(), pytest.raises(impls.Unsupported) as refusal:
        workload.subject(work, implementation).function(work.x)

    assert str(refusal.value) == impls.IMPLEMENTATIONS[implementation].refusal(LAYERS[layer].class_name)
