"""The command line: `python -m bench list | show | compare | plot | scaling | profile | summarise | …`."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import comparing, duelling, explaining, selfchecking, summarising
from bench.plan import names
from bench.plan.case import COLUMNS
from bench.plan.errors import CannotWrite, NotComparable, WrongRequest
from bench.plan.grid import DEFAULTS, expand
from bench.plan.layers import LAYERS
from bench.plan.models import MODELS
from bench.plan.sweep import load_sweep, shipped_names
from bench.show import growth, plots, scaling, tables, winner_map
from bench.show.console import console
from bench.show.doubts import TARGET
from bench.show.rows import baseline_of
from bench.show.words import parts
from bench.store import plan
from bench.store.table import load
from impls import catalogue

FINE, BAD, WRONG, INCOMPARABLE = 0, 1, 2, 3
"""The exit statuses: fine, something measured is bad, the request is wrong, the results are not comparable."""

INTERRUPTED = 130
"""What a shell says of a program that Ctrl-C ended."""

OWN = "your own: module:attribute, as Python imports it"

Command = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = _parser().parse_args(arguments)
    command: Command = options.command
    try:
        return command(options)
    except WrongRequest as error:
        goes_on = "; mend that, then the same command with --run goes on" if isinstance(error, CannotWrite) else ""
        console(stderr=True).print(f"attention-bench: {error}{goes_on}", style="bold", soft_wrap=True, markup=False)
        return INCOMPARABLE if isinstance(error, NotComparable) else WRONG
    except KeyboardInterrupt:
        console(stderr=True).print("attention-bench: interrupted; what was measured is kept", style="bold")
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    what = "Read what `pytest bench` measured, and measure side by side."
    parser = argparse.ArgumentParser(prog="python -m bench", description=what)
    commands = parser.add_subparsers(metavar="command", required=True)
    _command(commands, _list, "list", "the sweeps, layers and implementations there are")
    show = _command(commands, _show, "show", "print the table of a run")
    show.add_argument("run", metavar="RUN", type=Path, help="a run folder or a results.csv")
    show.add_argument("--reference", action="store_true", help="our times beside figures that others published")
    comparing.add_options(_command(commands, _compare, "compare", "compare two runs by their ratios to the baseline"))
    plot = _command(commands, _plot, "plot", "draw the pictures of a run")
    plot.add_argument("run", metavar="RUN", type=Path, help="a run folder or a results.csv")
    plot.add_argument("--to", metavar="DIR", type=Path, help="where to (default: plots/ beside the results)")
    grows = _command(
        commands, _scaling, "scaling", "fit how latency and memory grow, and find where the winner changes"
    )
    grows.add_argument("run", metavar="RUN", type=Path, help="a run folder or a results.csv")
    grows.add_argument(
        "--to", metavar="DIR", type=Path, help="where the pictures go (default: plots/ beside the results)"
    )
    explaining.add_options(_command(commands, _profile, "profile", "profile cases of a run, to see why they are fast"))
    summarising.add_arguments(
        _command(commands, summarising.run, "summarise", "write results.csv anew from the journal")
    )
    duelling.add(_command(commands, _duel, "duel", "two implementations, or one in two environments, side by side"))
    selfchecking.add(_command(commands, _selfcheck, "selfcheck", "what can be claimed on this machine"))
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", command: Command, name: str, what: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=what, description=what)
    parser.set_defaults(command=command)
    return parser


def _list(_options: argparse.Namespace) -> int:
    sweeps = {name: load_sweep(name) for name in shipped_names()}
    described = {
        name: f"{len(sweep.points)} points, {len(sweep.implementations)} implementations"
        for name, sweep in sweeps.items()
    }
    for title, entries in (
        ("sweeps", described),
        ("layers", {**names.LAYERS, "mylayer:MyAttention": OWN}),
        ("implementations", {**names.IMPLEMENTATIONS, "mykernel:adapt": OWN}),
        ("options of implementations, as in online[block_tokens=64]", _options_of_implementations()),
        *((f"values of {name}", column.choices) for name, column in COLUMNS.items() if column.choices),
        ("models", {name: _shape(values) for name, values in MODELS.items()}),
    ):
        console().print(tables.listing(title, entries))
    console().print("which implementation supports which layer", style="bold")
    console().print(tables.matrix(LAYERS, catalogue.IMPLEMENTATIONS))
    return FINE


def _options_of_implementations() -> dict[str, str]:
    return {
        name: "; ".join(f"{option}: {meaning}" for option, meaning in entry.options.items())
        for name, entry in catalogue.IMPLEMENTATIONS.items()
        if entry.options
    }


def _shape(model: Mapping[str, Any]) -> str:
    """Return a model's shape in words, as a point of it is named."""
    (point,) = expand({**DEFAULTS, "threads": 1, **model})
    return " ".join(parts(point, ["num_tokens", "channels", "num_heads", "qkv_bias"]))


def _show(options: argparse.Namespace) -> int:
    table = load(options.run)
    if options.reference:
        published = [figure for name in shipped_names() for figure in load_sweep(name).published]
        console().print(tables.references(table, published))
        return FINE
    console().print(tables.results(table, baseline_of(table), _target(options.run)))
    console().print(tables.failures(table))
    return FINE


def _target(run: Path) -> float:
    """Return the half-width that the run aimed at, the usual one where it doesn't say."""
    effort = plan.effort_of(run if run.is_dir() else run.parent)
    return effort.target if effort else TARGET


def _compare(options: argparse.Namespace) -> int:
    return BAD if comparing.run(options) else FINE


def _plot(options: argparse.Namespace) -> int:
    table = load(options.run)
    pictures = plots.draw(table, _folder(options))
    for path in pictures:
        console().print(str(path), soft_wrap=True)
    if not pictures:
        console().print("nothing to draw: no column varies over cases that are ok")
    return FINE


def _scaling(options: argparse.Namespace) -> int:
    table = load(options.run)
    found = scaling.series(table)
    console().print(scaling.render(found))
    for path in (*growth.draw(found, _folder(options)), *winner_map.draw(table, _folder(options))):
        console().print(str(path), soft_wrap=True)
    return FINE


def _folder(options: argparse.Namespace) -> Path:
    """Return where pictures go: where they were asked for, or beside the results."""
    beside: Path = options.run if options.run.is_dir() else options.run.parent
    return options.to or beside / "plots"


def _profile(options: argparse.Namespace) -> int:
    return FINE if explaining.run(options) else BAD


def _duel(options: argparse.Namespace) -> int:
    return FINE if duelling.run(options) else BAD


def _selfcheck(options: argparse.Namespace) -> int:
    return FINE if selfchecking.run(options) else BAD
