"""List all sweeps, layers, implementations and models."""

import argparse
from collections.abc import Mapping
from typing import Any

from bench.commands import put
from bench.machine import facts, nvml
from bench.plan.case import COLUMNS
from bench.plan.device import CPU, KINDS
from bench.plan.grid import DEFAULTS, MODEL_COLUMNS, MODELS, expand
from bench.plan.layers import LAYERS
from bench.plan.layers.layer import Layer
from bench.plan.statuses import FINE
from bench.plan.sweep import load_sweep, shipped_names
from bench.show.blocks import GAP, HEAD, Lines, Table, definitions, of_texts
from bench.show.text import counted, parts
from impls import catalogue
from impls.catalogue import Entry

OWN = "your own or a package's, by its import path"
LIBRARY = "a model with random weights, or a layer in it with [at=PATH]"


def run(_arguments: argparse.Namespace) -> int:
    """Print everything that has a name in a sweep or an option."""
    sweeps = {name: load_sweep(facts.here(name)) for name in shipped_names()}
    kinds = {kind.sweep: f"; the default on {kind.name}" for kind in KINDS.values()}
    described = {
        name: f"{counted(len(of.points), 'point')}, {len(of.implementations)} implementations{kinds.get(name, '')}"
        for name, of in sweeps.items()
    }
    options = {
        name: "; ".join(f"{option}: {meaning}" for option, meaning in entry.options.items())
        for name, entry in catalogue.IMPLEMENTATIONS.items()
        if entry.options
    }
    layers, implementations = (
        {name: each.meaning for name, each in of.items()} for of in (LAYERS, catalogue.IMPLEMENTATIONS)
    )
    libraries = [f"{source}:NAME" for source in catalogue.SOURCES]
    accelerators = {gpu.device: gpu.words for gpu in nvml.gpus()} if facts.torch_cuda() else {}
    for title, entries in (
        ("devices", {CPU.name: facts.cpu_model(), **accelerators}),
        ("sweeps", described),
        ("layers", {**layers, "package.module:Class": OWN, **dict.fromkeys(libraries, LIBRARY)}),
        ("implementations", {**implementations, "mykernel:attend": OWN}),
        ("options of implementations, such as online[block_tokens=64]", options),
        *((f"values of {name}", column.choices) for name, column in COLUMNS.items() if column.choices),
        ("models", {name: _shape(values) for name, values in MODELS.items()}),
    ):
        put([Lines([title], HEAD), definitions(entries, indent=2)])
    table, reasons = _matrix(LAYERS, catalogue.IMPLEMENTATIONS)
    put([Lines(["layers that each implementation supports"], HEAD), GAP, table, GAP, reasons])
    return FINE


def _shape(model: Mapping[str, Any]) -> str:
    """Return a model's shape in words, as in the names of its points."""
    (point,) = expand({**DEFAULTS, "threads": 1, **model})
    return " ".join(parts(point, MODEL_COLUMNS))


def _matrix(layers: Mapping[str, Layer], implementations: Mapping[str, Entry]) -> tuple[Table, Lines]:
    """Return a table of implementations by layers, and below it why some pairs are unsupported."""
    refusals = {
        name: [entry.refusal(layer.class_name) for layer in layers.values()] for name, entry in implementations.items()
    }
    reasons = list(dict.fromkeys(reason for row in refusals.values() for reason in row if reason))
    rows = [
        [name, *(f"no ({reasons.index(reason) + 1})" if reason else "yes" for reason in refusals[name]), entry.supports]
        for name, entry in implementations.items()
    ]
    table = of_texts(["implementation", *layers, "supported"], rows)
    return table, Lines([f"({number}) {reason}." for number, reason in enumerate(reasons, 1)])
