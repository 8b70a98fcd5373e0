"""Write which core to use at each point of a run, as a table that a program reads."""

import argparse
import inspect
import json
import math
import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.choices import CoreChoice, apart
from bench.commands import FINE, say
from bench.machine.facts import physical_cores
from bench.plan.errors import WrongRequest
from bench.show.text import any_of, counted
from bench.store import files
from impls import table

FORMATS = ("json", "python")

KEY = ("layer", "device", "dtype", "mode", "mask", "batch", "num_tokens", "channels", "num_heads", "threads")
"""The columns that name a point of the table."""

ANNOTATED = re.compile(r"def nearest\(.*\) -> str:")
"""The first line of the rule in the suite, which names types that a program doesn't have."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("run", metavar="RUN", type=AnalysedRun, help="a run folder that measured sdpa")
    parser.add_argument("out", metavar="OUT", type=Path, nargs="?", help="the file (default: attention.json or .py)")
    parser.add_argument(
        "--format", choices=FORMATS, default="json", help="a table for measured[table=OUT], or a function"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the table of a run, and print its path with how to use it.

    Raises WrongRequest for a run in which sdpa was measured beside no other core, and a file that can't be written.
    """
    saved: AnalysedRun = arguments.run
    chosen, left_out = saved.choices, _left_out(saved)
    if not any(math.isfinite(choice.slowdown_high) for choice in chosen):
        raise WrongRequest(
            f"{saved} has no point at which sdpa was measured beside another core, such as eager; layers of models "
            f"don't count{left_out and f'; {left_out}'}"
        )
    content = content_of(saved, chosen)
    is_json = arguments.format == "json"
    out: Path = arguments.out or Path("attention.json" if is_json else "attention.py")
    text = json.dumps(content, indent=1) if is_json else function(content)
    try:
        files.replace(out, text + "\n")
    except OSError as error:
        raise WrongRequest(f"{out} can't be written: {error.strerror}") from None
    faster = sum(choice.implementation != table.SDPA for choice in chosen)
    say(*[left_out] * bool(left_out))
    numbers = sorted({choice.point.threads for choice in chosen})
    threads = f"{', '.join(map(str, numbers))} {'thread' if numbers == [1] else 'threads'}"
    say(f"{out}: {len(chosen)} points with {threads}, at {faster} of them another core than sdpa")
    if (usual := physical_cores()) not in numbers:
        say(f"torch takes {usual} threads here by itself: set {numbers[0]}, or measure with --threads {usual}")
    say(*[f"Use it: --impl sdpa,measured[table={out}], or in a program as docs/use.md says"] * is_json)
    return FINE


def _left_out(saved: AnalysedRun) -> str:
    """Return how many points are no choices, with what a table does not know of them; empty if there are none."""
    number = Counter(what for point in saved.summary if (what := apart(point)))
    if not number:
        return ""
    return f"left out: {counted(number.total(), 'point')} with {any_of([*number])}, for which a table has no kind"


def content_of(saved: AnalysedRun, chosen: Sequence[CoreChoice]) -> dict[str, Any]:
    """Return the content of the table of a run, as `docs/table.schema.json` describes it."""
    identity = saved.environment.identity if saved.environment else {}
    first = min((entry.line for entry in saved.contents.entries), key=lambda line: line.started_at)
    return {
        "format": table.FORMAT,
        "schema_version": table.VERSION,
        "run": saved.folder.resolve().name,
        "measured_at": first.started_at,
        "environment": {
            "cpu": identity.get("cpu", ""),
            "gpus": identity.get("gpus", {}),
            "torch": first.torch_version,
        },
        "points": [_entry(choice) for choice in chosen],
    }


def _entry(choice: CoreChoice) -> dict[str, Any]:
    """Return a point of the table; a number that isn't known is null."""
    point, speedup = choice.point, choice.speedup
    numbers = {
        "slowdown_high": choice.slowdown_high,
        "speedup": speedup.value,
        "speedup_low": speedup.low,
        "speedup_high": speedup.high,
    }
    return {
        **{name: getattr(point, name) for name in KEY},
        "head_width": (point.key_channels or point.channels) // point.num_heads,
        "implementation": choice.implementation,
        **{name: round(value, 4) if math.isfinite(value) else None for name, value in numbers.items()},
    }


def function(content: Mapping[str, Any]) -> str:
    """Return a Python module with the function `core(...)`, which has the table in it and imports only math."""
    threads = statistics.mode(point["threads"] for point in content["points"])
    points = table.with_threads(content["points"], threads)
    lines = "".join(f"    {choice!r},\n" for point in points for choice in table.choices_of(point))
    measured = content["environment"]
    place = f"{measured['cpu']}, {threads} {'thread' if threads == 1 else 'threads'}, torch {measured['torch']}"
    rule = ANNOTATED.sub("def nearest(choices, kind, sizes):", inspect.getsource(table.nearest))
    return f'''"""Which attention core to use, as measured by attention-bench in the run {content["run"]} on {place}."""

import math

SDPA = {table.SDPA!r}

# ((device type, dtype, whether gradients are wanted, mask), (tokens, width of a head, batch times heads), core)
CHOICES = (
{lines})


def core(device, dtype, wants_gradients, mask, num_tokens, head_width, batch_times_heads):
    """Return the core for a call, such as core("cpu", "bfloat16", False, "none", 197, 64, 48)."""
    return nearest(CHOICES, (device, dtype, wants_gradients, mask), (num_tokens, head_width, batch_times_heads))


{rule}'''
