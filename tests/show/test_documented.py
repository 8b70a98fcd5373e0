"""The generated tables of the documentation."""

import itertools
import re
from pathlib import Path

import pytest

from bench.plan.case import COLUMNS
from bench.plan.layers import LAYERS
from bench.show.documented import ROOT, TABLES, columns, implementations, metrics, with_tables
from bench.store.metrics import COLUMNS as METRICS
from impls.catalogue import IMPLEMENTATIONS


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
