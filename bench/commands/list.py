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
from bench.plan.statuses import FINE
from bench.plan.sweep import load_sweep, shipped_names
from bench.show.blocks import GAP, HEAD, Lines, definitions
from bench.show.documented import matrix
from bench.show.text import parts
from impls import catalogue

OWN = "your own or a package's: module:attribute, as Python imports it"
LIBRARY = "a model with random weights; with [at=PATH] a layer in it"


def run(_arguments: argparse.Namespace) -> int:
    """Print everything that has a name in a sweep or an option."""
    sweeps = {name: load_sweep(facts.here(name)) for name in shipped_names()}
    defaults = {kind.sweep: f"; the default on {kind.name}" for kind in KINDS.values()}
    described = {
        name: f"{len(sweep.points)} points, {len(sweep.implementations)} implementations{defaults.get(name, '')}"
        for name, sweep in sweeps.items()
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
        ("options of implementations, as in online[block_tokens=64]", options),
        *((f"values of {name}", column.choices) for name, column in COLUMNS.items() if column.choices),
        ("models", {name: _shape(values) for name, values in MODELS.items()}),
    ):
        put([Lines([title], HEAD), definitions(entries, indent=2)])
    table, reasons = matrix(LAYERS, catalogue.IMPLEMENTATIONS)
    put([Lines(["which implementation supports which layer"], HEAD), GAP, table, GAP, reasons])
    return FINE


def _shape(model: Mapping[str, Any]) -> str:
    """Return a model's shape in words, as a point of it is named."""
    (point,) = expand({**DEFAULTS, "threads": 1, **model})
    return " ".join(parts(point, {*MODEL_COLUMNS, "mask"}))
