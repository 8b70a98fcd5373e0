"""Write which core to use at each point of a run, as a table that a program reads."""

import argparse
import dataclasses
import inspect
import json
import math
import random
import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, cast

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.choices import CoreChoice, apart, first_timings
from bench.commands import duel, options, put, say
from bench.engine.duel import Duel, grounds
from bench.machine.facts import physical_cores
from bench.plan.device import kind
from bench.plan.drawn import between
from bench.plan.errors import NotComparable, WrongRequest, refusing
from bench.plan.sides import sides_of
from bench.plan.statuses import FINE
from bench.plan.sweep import MEASURED, Effort, Sweep
from bench.show import intervals
from bench.show.comparison import duel as show
from bench.show.text import any_of, counted
from bench.store import files
from bench.store.environment import Environment, differences
from bench.store.units import duration
from impls import table

KEY = ("layer", "device", "dtype", "mode", "mask", "batch", "num_tokens", "channels", "num_heads", "threads")
"""The columns that name a point of the table."""

DECIMALS = 4
"""The decimals of a number of the table."""

LEAST_S = 30.0
"""The shortest time in which a check says something."""

EFFORT = Effort(processes=2, budget_s=4.0, race=True, bound=0.02)
"""How precisely a shape of a check is measured: its base, and the distance that is to be known."""

ANNOTATED = re.compile(r"def nearest\(.*\) -> str:")
"""The first line of the rule in the suite, which names types that a program doesn't have."""


def run(arguments: argparse.Namespace) -> int:
    """Write the table of a run, check it if that is asked for, and print its path with how to use it.

    Raises WrongRequest for a run in which sdpa was measured beside no other core, a file that can't be written, and a
    check that can't be made.
    """
    saved: AnalysedRun = arguments.run
    within_s = options.effort(arguments).get("within_s")
    if arguments.check is None and within_s is not None:
        raise WrongRequest("--within needs --check N: a table alone is written at once")
    chosen, left_out = saved.choices, _left_out(saved)
    if not any(math.isfinite(choice.slowdown_high) for choice in chosen):
        raise WrongRequest(
            f"{saved} has no point at which sdpa was measured beside another core, such as eager; layers of models "
            f"don't count{left_out and f'; {left_out}'}"
        )
    content = content_of(saved, chosen)
    is_json = arguments.format == "json"
    out: Path = arguments.out or Path("attention.json" if is_json else "attention.py")
    check = _check(saved, chosen, arguments.check, within_s, out) if arguments.check is not None else None
    if check and not is_json:
        raise WrongRequest("--check needs --format json: a program follows that table while it is measured")
    _write(out, json.dumps(content, indent=1) if is_json else function(content))
    if check:
        content["check"] = _measured(check, saved)
        _write(out, json.dumps(content, indent=1))
    faster = sum(choice.implementation != table.SDPA for choice in chosen)
    say(*[left_out] * bool(left_out))
    numbers = sorted({choice.point.threads for choice in chosen if choice.point.kind.has_cores})
    threads = f" with {', '.join(map(str, numbers))} {'thread' if numbers == [1] else 'threads'}" if numbers else ""
    say(f"{out}: {len(chosen)} points{threads}, at {faster} of them another core than sdpa")
    if numbers and (usual := physical_cores()) not in numbers:
        say(f"torch takes {usual} threads here by itself: set {numbers[0]}, or measure with --threads {usual}")
    say(*[f"Use it: --impl sdpa,measured[table={out}], or in a program as docs/use.md says"] * is_json)
    return FINE


def _write(out: Path, text: str) -> None:
    with refusing(f"{out} can't be written"):
        files.replace(out, text + "\n")


def _check(saved: AnalysedRun, chosen: Sequence[CoreChoice], number: int, within_s: float | None, out: Path) -> Sweep:
    """Return the sweep of a check at so many shapes; raises WrongRequest if it can't be made."""
    if number < 1:
        raise WrongRequest(f"--check {number} must be a whole number of at least 1")
    if saved.environment is None:
        raise WrongRequest(f"{saved} has no environment.json, so nothing tells whether it was measured on this machine")
    points = [choice.point for choice in chosen if choice.point.mode in table.MODES]
    drawn = between(points, number, random.SystemRandom())
    if not drawn:
        raise WrongRequest(
            f"--check measures shapes between the points of {saved}, and there are none: "
            f"its {counted(len(points), 'point')} of a table must differ in batch, tokens, heads or channels"
        )
    effort = saved.effort
    if within_s is None and effort and effort.race:
        whole_s = effort.seconds(len([*saved.summary]))
        within_s = whole_s - saved.summary.measured_s()
        if within_s < LEAST_S:
            raise WrongRequest(
                f"--check takes the time that the race of {saved} has left, which is {duration(max(0.0, within_s))} of "
                f"{duration(whole_s)}, and {duration(LEAST_S)} is the least; --within 3m gives it time"
            )
    implementations = (table.SDPA, f"{MEASURED}[table={out}]")
    asked = dataclasses.replace(EFFORT, within_s=within_s)
    return Sweep("check", drawn, implementations, table.SDPA, asked, control=True)


def _measured(check: Sweep, saved: AnalysedRun) -> dict[str, Any]:
    """Measure a duel of the table and sdpa, print what it says, and return what the table says of it.

    Raises NotComparable if this is not the machine of the run, or if it has other software.
    """
    folder = options.run_folder(argparse.Namespace(run=None), "check")
    sides = sides_of(check.implementations, (), (), ())
    measured = dataclasses.replace(cast(Environment, saved.environment), runtimes={})
    with (
        grounds(sides, check.effort.processes) as both,
        Duel(check, folder, both, (check.points, check.points)) as race,
    ):
        if unlike := differences(measured, race.environment):
            raise NotComparable(
                f"a table is checked where its run was measured, and this is another machine: {'; '.join(unlike)}"
            )
        told = duel.told(race, duel.measure(race))
    begun = [each for each in told.changes if each.new]
    if not begun:
        raise WrongRequest(f"nothing was measured at the shapes of the check; {folder} says why")
    if len(begun) < len(told.changes):
        say(f"{len(begun)} of {len(told.changes)} shapes were measured in the time; --within gives more")
    told = dataclasses.replace(told, changes=begun)
    put(show.blocks(told))
    say(f"Everything of the check is in {folder}")
    kinds = Counter(each.verdict for each in begun)
    numbers = _rounded(intervals.as_numbers("speedup", told.worst.ratio))
    return {"run": folder.name, "shapes": len(begun), "verdicts": kinds, **numbers}


def _rounded(numbers: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if value is None else round(value, DECIMALS) for name, value in numbers.items()}


def _left_out(saved: AnalysedRun) -> str:
    """Return how many points are no choices, with what a table does not know of them; empty if there are none."""
    timings = first_timings(saved.summary)
    number = Counter(what for point in saved.summary if (what := apart(point, timings)))
    if not number:
        return ""
    return f"left out: {counted(number.total(), 'point')} with {any_of([*number])}, for which a table has no kind"


def content_of(saved: AnalysedRun, chosen: Sequence[CoreChoice]) -> dict[str, Any]:
    """Return the content of the table of a run, as `docs/table.schema.json` describes it."""
    identity = saved.environment.identity if saved.environment else {}
    first = min((record.origin for record in saved.contents.records), key=lambda origin: origin.started_at)
    return {
        "format": table.FORMAT,
        "schema_version": table.VERSION,
        "run": saved.folder.resolve().name,
        "measured_at": first.started_at,
        "environment": {"cpu": identity.get("cpu", ""), "gpus": identity.get("gpus", {}), "torch": first.torch_version},
        "points": [_entry(choice) for choice in chosen],
    }


def _entry(choice: CoreChoice) -> dict[str, Any]:
    """Return a point of the table; a number that isn't known is null."""
    point, speedup = choice.point, choice.speedup
    numbers = {"slowdown_high": intervals.finite(choice.slowdown_high), **intervals.as_numbers("speedup", speedup)}
    return {
        **{name: getattr(point, name) for name in KEY},
        "head_width": (point.key_channels or point.channels) // point.num_heads,
        "implementation": choice.implementation,
        **_rounded(numbers),
    }


def function(content: Mapping[str, Any]) -> str:
    """Return a Python module with the function `core(...)`, which has the table in it and imports only math."""
    threads = statistics.mode(point["threads"] for point in content["points"])
    points = table.with_threads(content["points"], threads)
    lines = "".join(f"    {choice!r},\n" for point in points for choice in table.choices_of(point))
    measured, kinds = content["environment"], dict.fromkeys(kind(point["device"]) for point in points)
    on_cpu = [f"{measured['cpu']}, {threads} {'thread' if threads == 1 else 'threads'}"]
    on_gpus = [*dict.fromkeys(measured["gpus"].values())]
    hosts = (on_cpu if of.has_cores else on_gpus for of in kinds)
    place = ", ".join([*chain.from_iterable(hosts), f"torch {measured['torch']}"])
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
