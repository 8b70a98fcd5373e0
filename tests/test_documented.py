"""The generated lists of the documents held against the declarations, and refusals against the adapters."""

import pytest

import impls
from bench.measure import subjects, workload
from bench.plan.layers import LAYERS
from impls.catalogue import IMPLEMENTATIONS
from tests.documented import ROOT, TABLES, with_tables
from tests.make.points import of_layer

REFUSED = [
    (layer.name, name)
    for name, entry in IMPLEMENTATIONS.items()
    for layer in LAYERS.values()
    if entry.refusal(layer.class_name)
]


@pytest.mark.parametrize("name", TABLES)
def test_the_documentation_is_up_to_date(name: str) -> None:
    """Each list in a file matches the declarations; the command in its mark rewrites it."""
    file, make = TABLES[name]
    text = (ROOT / file).read_text(encoding="utf-8")
    assert make() in text
    assert with_tables(text) == text


@pytest.mark.parametrize(("layer", "implementation"), REFUSED)
def test_what_does_not_go_together_is_unsupported(layer: str, implementation: str) -> None:
    """A pair that the catalogue refuses is refused with its reason when it is built."""
    work = workload.make(of_layer(layer))
    with work.gradient_mode(), pytest.raises(impls.Unsupported) as refusal:
        subjects.subject(work, implementation).function(*work.inputs())

    assert str(refusal.value) == IMPLEMENTATIONS[implementation].refusal(LAYERS[layer].class_name)
