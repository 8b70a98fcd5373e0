"""What was seen at the models of a run, in its look.json."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.plan.case import Point
from bench.plan.errors import CannotWrite, refusing
from bench.store import files

LOOK = "look.json"
"""What was seen at the models of a run: for each point what each process reported, nothing derived."""

Seen = Mapping[str, Any]
"""What one process saw: `cores`, `calls`, `others`, `untraced`, `kernels`, `has_whole`, `settings`, `paste`.

`bench.measure.look` writes it.
"""


def save_looks(looks: Mapping[Point, Sequence[Seen]], run: Path) -> None:
    """Write look.json of a run, in a folder that git leaves out if it is new; raises CannotWrite if that fails."""
    is_new = not run.is_dir() or not any(run.iterdir())
    content = [{"point": dataclasses.asdict(point), "processes": [*seen]} for point, seen in looks.items()]
    with refusing(f"{run / LOOK} can't be written", CannotWrite):
        files.replace_json(run / LOOK, {"looks": content})
    if is_new:
        files.hide(run)
