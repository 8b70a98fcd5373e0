"""A sweep file of the attention cores of a model, as points of the layer `core`."""

import json
import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from bench.analyse import core_points
from bench.analyse.rows import grouped
from bench.plan.case import Point
from bench.plan.errors import WrongRequest
from bench.plan.invocation import short
from bench.store.saved_run import Seen

IMPLEMENTATIONS = ("eager", "sdpa")
"""The implementations of the sweep; the first one is its baseline."""

WIDTH = 120
"""The characters of a line of a comment."""


def text(looks: Mapping[Point, Sequence[Seen]]) -> str:
    """Return a sweep file with each distinct core once; comments say which layers have it, and what is left out.

    Raises WrongRequest if the layer `core` can express none of them.
    """
    grids: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for point, (seen, *_) in looks.items():
        by_obstacle = grouped(seen["cores"], core_points.obstacle)
        for lines, cores in grouped(by_obstacle.pop("", []), partial(_grid, point)).items():
            masks = dict.fromkeys(f"mask {core['mask']}" for core in cores if core["mask"])
            grids.setdefault(lines, _comment(cores, ", ".join(masks)))
        by_obstacle |= grouped(seen["others"], itemgetter("reason"))
        left_out |= {_comment(cores, reason, "left out: "): reason for reason, cores in by_obstacle.items()}
    if not grids:
        raise WrongRequest(f"the layer core can express no core of the model: {next(iter(left_out.values()))}")
    head = [
        f"# the distinct attention cores of a model, written by `{short()} advise`",
        f"implementations = {json.dumps(IMPLEMENTATIONS)}",
        f"baseline = {json.dumps(IMPLEMENTATIONS[0])}",
    ]
    parts = ["\n".join(head), *(f"{comment}\n{lines}" for lines, comment in grids.items()), *left_out]
    return "\n\n".join(parts) + "\n"


def _grid(model: Point, core: Mapping[str, Any]) -> str:
    columns = core_points.columns(core, model).items()
    return "\n".join(["[[grid]]", *(f"{name} = {json.dumps(value)}" for name, value in columns)])


def _comment(cores: Sequence[Mapping[str, Any]], fact: str, begin: str = "") -> str:
    """Return a comment that names the layers of cores, with a fact about all of them."""
    number = "1 core" if len(cores) == 1 else f"{len(cores)} cores"
    layers = ", ".join(dict.fromkeys(core["layer"] or "the model itself" for core in cores))
    words = f"{begin}{number} of {layers}{f': {fact}' if fact else ''}"
    return textwrap.fill(words, WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False)
