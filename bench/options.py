"""The options of `pytest bench`, and the sweep that they ask for; some of them are those of `duel` too."""

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.plan.errors import WrongRequest
from bench.plan.names import ALLOCATORS, DTYPES, MODES
from bench.plan.sweep import Sweep, altered, load_sweep
from bench.store import plan
from bench.store.machine import default_threads

AddOption = Callable[..., object]
"""How argparse and pytest take an option: its flag, and what is known of it."""

LISTS = {"device": str, "dtype": str, "mode": str, "batch": int, "num_tokens": int, "num_heads": int, "channels": int}
"""Options that replace a column of the sweep, each a comma list."""

DEFAULT_SWEEP = "quick"

EFFORT = ("processes", "target", "budget_s", "within_s", "timeout_s", "check_memory")

WAYS_OUT = "use a new folder, or --extend to add to this one"

HELP = {
    "device": "cpu, cuda or cuda:<number>",
    "dtype": ", ".join(DTYPES),
    "mode": ", ".join(MODES),
    "batch": "items a call",
    "num_tokens": "tokens an item",
    "num_heads": "attention heads",
    "channels": "width of a token on the way out",
}


def add(add_option: AddOption) -> None:
    """Add the options of a sweep to pytest's own."""
    add_option("--sweep", metavar="NAME|FILE.toml", help=f"what to measure (default: {DEFAULT_SWEEP})")
    add_run(add_option, "<UTC time>-<sweep>")
    add_option("--extend", action="store_true", help="add what is asked for to the run in --run DIR")
    add_option("--retry-failed", action="store_true", help="try the cases again that failed in --run DIR")
    add_option("--impl", metavar="A,B,…", help="implementations, module:attribute of your own too")
    add_columns(add_option)
    add_option("--processes", type=int, metavar="K", help="worker processes that measure each point")
    add_option("--target", type=float, metavar="SHARE", help="half-width of every ratio's interval, 0.02 for 2 %%")
    add_option("--budget-s", type=float, metavar="S", help="seconds for the rounds of a point")
    add_option("--within-s", type=float, metavar="S", help="seconds that the sweep may take if more rounds fill them")
    add_timeout(add_option)
    add_option(
        "--check-memory", action="store_true", default=None, help="ask the operating system for the peak memory too"
    )


def add_run(add_option: AddOption, name: str) -> None:
    """Add the option that names the run folder."""
    add_option("--run", metavar="DIR", help=f"run folder, resumed if it exists (default: results/{name})")


def add_columns(add_option: AddOption) -> None:
    """Add the options that replace a column of the sweep."""
    for name in LISTS:
        flag = "--" + name.replace("_", "-")
        add_option(flag, metavar="A,B,…", help=f"replaces the sweep's {name}: {HELP[name]}")
    add_option("--threads", type=int, metavar="N", help="threads (default: physical cores - 1)")
    add_option("--allocator", metavar="A,B,…", help=f"replaces the sweep's allocator: {', '.join(ALLOCATORS)}")


def add_timeout(add_option: AddOption) -> None:
    """Add the option that says when a worker is given up."""
    add_option("--timeout-s", type=float, metavar="S", help="longest silence of one case")


def sweep(option: argparse.Namespace) -> Sweep:
    """Return the sweep that the options ask for, the run folder's own if they name one that holds a run.

    Raises WrongRequest if they can't be met, or ask for another sweep than the folder's without `--extend`.
    """
    stored = plan.load(Path(option.run)) if option.run else None
    if stored is None:
        if option.extend:
            raise WrongRequest(f"--extend adds to a run, and {option.run or 'without --run DIR there'} is none")
        return _asked(option)
    asked = _asked(option) if option.sweep is not None else _changed(option, stored.sweep)
    return plan.continued(asked, stored, Path(option.run), extend=option.extend, way_out=WAYS_OUT)


def _asked(option: argparse.Namespace) -> Sweep:
    """Return the sweep that the options ask for, whatever the run folder holds."""
    return load_sweep(
        option.sweep if option.sweep is not None else DEFAULT_SWEEP,
        threads=default_threads(),
        implementations=_list(option, "impl", str),
        overrides=overrides(option),
        effort=effort(option, EFFORT),
    )


def _changed(option: argparse.Namespace, own: Sweep) -> Sweep:
    """Return a run's own sweep with what the options say in its place.

    Columns without `--sweep` are those of the default sweep, as for a new run.
    """
    changed = altered(own, _list(option, "impl", str), effort(option, EFFORT))
    return dataclasses.replace(changed, points=_asked(option).points) if overrides(option) else changed


def overrides(option: argparse.Namespace) -> dict[str, Any]:
    """Return the columns of the sweep that the options replace."""
    replaced = {name: values for name, kind in LISTS.items() if (values := _list(option, name, kind))}
    if option.allocator is not None:
        replaced["allocator"] = _list(option, "allocator", str)
    if option.threads is not None:
        replaced["threads"] = option.threads
    return replaced


def effort(option: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    """Return what the options say of the effort, of the names given."""
    return {name: value for name in names if (value := getattr(option, name)) is not None}


def run_folder(option: argparse.Namespace, root: Path, sweep: Sweep) -> Path:
    """Return the folder of the run: the one asked for, or a new one named by the time and the sweep."""
    return new_folder(option, root, sweep.name)


def new_folder(option: argparse.Namespace, root: Path, name: str) -> Path:
    """Return the folder that `--run` asks for, or a new one among the results, named by the time."""
    if option.run:
        return Path(option.run)
    return root / "results" / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{name}"


def _list(option: argparse.Namespace, name: str, kind: type) -> list[Any]:
    text = getattr(option, name)
    if text is None:
        return []
    words = [word.strip() for word in text.split(",")]
    try:
        return [kind(word) for word in words]
    except ValueError:
        flag = "--" + name.replace("_", "-")
        raise WrongRequest(f"{flag} {text} must be whole numbers separated by commas") from None
