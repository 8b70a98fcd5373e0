"""What was seen at the models of a run, as look.json: for each point what each process reported, nothing derived."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.plan.case import Point
from bench.plan.errors import CannotWrite
from bench.store import atomic

LOOK = "look.json"

Seen = Mapping[str, Any]
"""What one process saw: `cores`, `calls`, `written`, `kernels`, `observed_kernels`, `settings`, `parameters`, `item`,
`library`.

`bench.measure.look` writes it.
"""


def save(looks: Mapping[Point, Sequence[Seen]], run: Path) -> None:
    """Write look.json of a run; raises CannotWrite if that fails."""
    content = [{"point": dataclasses.asdict(point), "processes": [*seen]} for point, seen in looks.items()]
    try:
        run.mkdir(parents=True, exist_ok=True)
        atomic.replace(run / LOOK, json.dumps({"looks": content}, indent=1) + "\n")
    except OSError as error:
        raise CannotWrite(f"{run / LOOK} can't be written: {error.strerror}") from None
