"""The table of layers and implementations, held against the adapters and the README."""

from pathlib import Path

import pytest

import impls
from bench.measure import workload
from bench.plan import names
from bench.show.console import rendered
from bench.show.matrix import matrix
from tests.points import of_layer

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SHIPPED = matrix([*names.LAYERS], [*names.IMPLEMENTATIONS], names.CANNOT, names.CONDITIONS)


def test_a_row_says_where_an_implementation_holds() -> None:
    """Each pair that doesn't go together is a no with the number of its reason, which stands below."""
    made = matrix(["a", "b"], ["x", "y"], {("b", "x"): "b has no x", ("a", "y"): "none here"}, {"y": "on a GPU"})
    lines = [line.split() for line in rendered(made).splitlines()]

    assert ["|", "x", "|", "yes", "|", "no", "(1)", "|", "everywhere", "|"] in lines
    assert ["|", "y", "|", "no", "(2)", "|", "yes", "|", "on", "a", "GPU", "|"] in lines
    assert ["(1)", "b", "has", "no", "x."] in lines


def test_the_readme_has_the_table() -> None:
    """What `python -m bench list` prints stands in the README."""
    for line in rendered(SHIPPED).strip().splitlines():
        assert " ".join(line.split()) in " ".join(README.split())


@pytest.mark.parametrize(("layer", "implementation"), names.CANNOT)
def test_what_does_not_go_together_says_so(layer: str, implementation: str) -> None:
    """An adapter refuses the layer with the reason of the table; a kernel refuses it with its own."""
    work = workload.make(of_layer(layer))
    with work.context(), pytest.raises(impls.Unsupported) as refusal:
        workload.subject(work, implementation).function(work.x)

    if implementation != "sdpa_flash":
        assert str(refusal.value) == names.CANNOT[layer, implementation]
    else:
        assert "same last dimension" in str(refusal.value)


def test_conditions_are_of_implementations() -> None:
    """Only what exists has a condition."""
    assert set(names.CONDITIONS) < set(names.IMPLEMENTATIONS)
