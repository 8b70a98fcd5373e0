"""The generated tables of the documentation."""

import dataclasses
import itertools
import re
from pathlib import Path

import pytest

import impls
from bench.measure import workload
from bench.plan.case import COLUMNS
from bench.plan.layers import LAYERS
from bench.show.documented import ROOT, TABLES, columns, implementations, matrix, metrics, with_tables
from bench.show.terminal.console import render, rendered
from bench.store.metrics import COLUMNS as METRICS
from impls.catalogue import IMPLEMENTATIONS, NOT_WRITTEN, Entry, Style
from tests.points import of_layer

REFUSED = [
    (layer.name, name)
    for name, entry in impls.IMPLEMENTATIONS.items()
    for layer in LAYERS.values()
    if entry.refusal(layer.class_name)
]


@pytest.mark.parametrize("name", list(TABLES))
def test_the_documentation_is_up_to_date(name: str) -> None:
    """Each table stands in its file as the declarations make it; the command in its mark writes it anew."""
    file, make = TABLES[name]
    text = (ROOT / file).read_text(encoding="utf-8")
    assert make() in text
    assert with_tables(text) == text


def test_every_column_is_a_row() -> None:
    """The tables name the columns of a point and the metrics of results.csv in their order."""
    for table, names in ((columns(), COLUMNS), (metrics(), METRICS)):
        assert re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE) == list(names)


def test_every_implementation_is_a_row_and_every_reason_an_item() -> None:
    """The table names the implementations in the order of the catalogue, and below it why some refuse a layer."""
    rows, _, reasons = implementations().partition("\n\n")
    assert re.findall(r"^\| (\w+) ", rows, flags=re.MULTILINE)[1:] == list(IMPLEMENTATIONS)
    pairs = itertools.product(IMPLEMENTATIONS.values(), LAYERS.values())
    refused = {reason for entry, layer in pairs if (reason := entry.refusal(layer.class_name))}
    assert {line.partition(") ")[2].removesuffix(".") for line in reasons.splitlines()} == refused


def test_an_old_table_is_replaced_and_the_rest_kept() -> None:
    """Whatever stands between the marks goes; what stands around them stays."""
    text = Path(ROOT / "results/README.md").read_text(encoding="utf-8")
    assert with_tables(text.replace("| `mask` |", "| `masc` |")) == text


def test_a_row_says_what_an_implementation_supports() -> None:
    """Each pair that doesn't go together is a no with the number of its reason, which stands below."""
    look = Style("#000000", (), "o")
    layers = {name: dataclasses.replace(LAYERS["vit"], name=name, module=f"m:{name}") for name in ("a", "b")}
    entries = {
        "x": Entry("m:x", "x", look, refuses={"b": "b has no x"}),
        "y": Entry("m:y", "y", look, supports="on a GPU", refuses={"a": "none here"}),
        "z": Entry("m:z", "z", look, layers=("b",), supports="with luck"),
    }
    lines = [line.split() for line in rendered(render(matrix(layers, entries))).splitlines()]

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
