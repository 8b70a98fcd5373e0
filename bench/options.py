"""The options of `pytest bench`, and the sweep that they ask for."""

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bench.plan.errors import WrongRequest
from bench.plan.names import ALLOCATORS, DTYPES, MODES
from bench.plan.sweep import Sweep, load_sweep
from bench.store.machine import default_threads

LISTS = {"device": str, "dtype": str, "mode": str, "batch": int, "num_tokens": int, "num_heads": int, "channels": int}
"""Options that replace a column of the sweep, each a comma list."""

HELP = {
    "device": "cpu, cuda or cuda:<number>",
    "dtype": ", ".join(DTYPES),
    "mode": ", ".join(MODES),
    "batch": "items a call",
    "num_tokens": "tokens an item",
    "num_heads": "attention heads",
    "channels": "width of a token on the way out",
}


def add(group: pytest.OptionGroup) -> None:
    """Add the options of a sweep to pytest's own."""
    group.addoption("--sweep", default="quick", metavar="NAME|FILE.toml", help="what to measure (default: quick)")
    group.addoption(
        "--run", metavar="DIR", help="run folder, resumed if it exists (default: results/<UTC time>-<sweep>)"
    )
    group.addoption("--impl", metavar="A,B,…", help="implementations, module:attribute of your own too")
    for name in LISTS:
        flag = "--" + name.replace("_", "-")
        group.addoption(flag, metavar="A,B,…", help=f"replaces the sweep's {name}: {HELP[name]}")
    group.addoption("--processes", type=int, metavar="K", help="worker processes that measure each point")
    group.addoption("--target", type=float, metavar="SHARE", help="half-width of every ratio's interval, 0.02 for 2 %%")
    group.addoption("--budget-s", type=float, metavar="S", help="seconds for the rounds of a point")
    group.addoption("--timeout-s", type=float, metavar="S", help="longest silence of one case")
    group.addoption(
        "--check-memory", action="store_true", default=None, help="ask the operating system for the peak memory too"
    )
    group.addoption("--threads", type=int, metavar="N", help="threads (default: physical cores - 1)")
    group.addoption("--allocator", metavar="A,B,…", help=f"replaces the sweep's allocator: {', '.join(ALLOCATORS)}")


def sweep(option: argparse.Namespace) -> Sweep:
    """Return the sweep that the options ask for; raises WrongRequest where they can't be met."""
    overrides = {name: values for name, kind in LISTS.items() if (values := _list(option, name, kind))}
    if option.allocator is not None:
        overrides["allocator"] = _list(option, "allocator", str)
    if option.threads is not None:
        overrides["threads"] = option.threads
    effort = {
        name: value
        for name in ("processes", "target", "budget_s", "timeout_s", "check_memory")
        if (value := getattr(option, name)) is not None
    }
    return load_sweep(
        option.sweep,
        threads=default_threads(),
        implementations=_list(option, "impl", str),
        overrides=overrides,
        effort=effort,
    )


def run_folder(option: argparse.Namespace, root: Path, sweep: Sweep) -> Path:
    """Return the folder of the run: the one asked for, or a new one named by the time and the sweep."""
    if option.run:
        return Path(option.run)
    return root / "results" / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{sweep.name}"


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
