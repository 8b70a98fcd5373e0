"""The options of `run`, some of which other commands share, and the sweep that they ask for."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from bench.commands import say
from bench.commands.progress import waiting
from bench.engine import admission
from bench.machine import facts
from bench.plan.case import COLUMNS
from bench.plan.columns import NONE, READERS, PointColumn, Role, ValueKind, flag
from bench.plan.device import CPU, CUDA
from bench.plan.errors import WrongRequest, all_of, unknown_names
from bench.plan.grid import is_range, parse_shard
from bench.plan.invocation import short
from bench.plan.layers import LAYERS
from bench.plan.names import search_path
from bench.plan.sweep import SETTINGS, Request, Shown, Sweep, load_sweep
from bench.show.text import listed
from bench.store import files, plan
from bench.store.environment import ENVIRONMENT
from bench.store.files import IGNORED, LOCK
from bench.store.journal import JOURNAL
from bench.store.record import STATUSES
from impls.catalogue import split

AddOption = Callable[..., object]
"""The function of argparse or pytest that takes an option: its flag, and keywords."""

RULES = {
    ValueKind.COUNT: "whole numbers or ranges such as 128:2048:128 or 128:2048:x2",
    ValueKind.NUMBER: "numbers",
    ValueKind.TRUTH: "true or false",
}
"""The rule for an option's values by kind; other columns take words."""

FAILURES = tuple(status for status in STATUSES if status != "ok")
"""The values of --fail-on besides `none`."""

BEFORE_A_JOURNAL = (LOCK, IGNORED, ENVIRONMENT)
"""The files that a run's folder may have before it has a journal, for example after a kill."""

MODULES = ("package.module:Class[argument=value]", "timm:NAME[at=PATH]")
"""The forms of names of modules that aren't layers of the suite."""

MODEL = PointColumn(
    name="model", meaning="a model's layer, tokens, channels, heads and QKV bias, such as vit_b_16_384", role=Role.LAYER
)
"""The option that stands for several columns."""

SHAPES, EXECUTION = (
    {column.name: column for column in (MODEL, *COLUMNS.values()) if column.group == group}
    for group in ("shape", "execution")
)
"""The options for the function, and for the way it is computed; each replaces a column of the sweep."""

LOCAL = Path("results")
"""The folder of runs in the current folder."""

LISTS = {**SHAPES, **EXECUTION}
"""All of these options; each takes a comma list."""

EXAMPLES = f"""Measure attention layers:

  {short()} run                                        the sweep {CPU.sweep}, a few minutes
  {short()} run --device cuda                          the sweep {CUDA.sweep}, for a GPU
  {short()} run --num-tokens 128:2048:x2               5 points: 128, 256, 512, 1024 and 2048 tokens
  {short()} run --num-tokens 197,577 --num-heads 6,12  4 points
  {short()} run --model vit_b_16_384 --dtype bfloat16  the attention layer of a model
  {short()} run --sweep vit --batch 1                  every point of a sweep, at batch 1
  {short()} run --impl sdpa,mykernel:attend            your own kernel, compared with eager
  {short()} run --layer timm.layers:Attention          a layer of a package, as it is

  With --sweep, an option replaces its column in every grid of the sweep.
  Without it, shape options make one grid; the defaults are 8 items, 197 tokens, 384 channels and 6 heads.
  Execution options alone apply to the sweep {CPU.sweep}, or to {CUDA.sweep} with --device cuda.
  Separate values by commas. Whole numbers may be ranges: first:last:step or first:last:xfactor, including the last.
"""


def add(group: Callable[[str], AddOption]) -> None:
    """Add the options of a sweep, each to the group of its title."""
    add_option = group("what to measure")
    sweep = f"a shipped sweep or a file (default: {CPU.sweep}, or {CUDA.sweep} with --device cuda)"
    add_option("--sweep", metavar="NAME|FILE.toml", help=sweep)
    add_option("--impl", metavar="A,B,…", help="implementations; your own as module:attribute")
    baseline = "the implementation that speed-ups refer to (default: the sweep's)"
    add_option("--baseline", metavar="A", default="", help=baseline)
    control = "don't measure the baseline a second time as a check of the machine"
    add_option("--no-control", action="store_true", help=control)
    add_columns(add_option)
    add_effort(group("how long and how precisely"), *(name for name in SETTINGS if name != "oversubscribe"))
    add_option = group("where results go")
    add_run(add_option, "<UTC time>-<sweep>")
    extend = "add the requested points and implementations to the run in --run DIR"
    add_option("--extend", action="store_true", help=extend)
    add_option("--shard", metavar="I/N", help=f"measure part I of N of the sweep; `{short()} merge` joins the parts")
    add_option("--retry-failed", action="store_true", help="measure the failed cases of --run DIR again")
    add_option("--list", action="store_true", help="list the points without measuring them")
    fail_on = (
        f"exit with status 1 if any case has one of these: {', '.join(FAILURES)}; or {NONE} (default: if your own "
        "implementation isn't ok, the baseline failed, the device is missing, or nothing could be measured)"
    )
    add_option("--fail-on", metavar="A,B,…", help=fail_on)


def add_run(add_option: AddOption, name: str) -> None:
    """Add the option that names the run folder."""
    add_option("--run", metavar="DIR", help=f"run folder; resumed if it exists (default: results/{name})")


def add_columns(add_option: AddOption, names: Iterable[str] = LISTS) -> None:
    """Add the options that replace these columns of the sweep, and the option that lifts the limit on threads."""
    for column in (LISTS[name] for name in names):
        choices = [*LAYERS, *MODULES] if column.name == "layer" else column.choices
        meaning = f"{column.meaning}; {', '.join(choices)}" if choices else column.meaning
        add_option(flag(column.name), metavar="A,B,…", help=f"{column.group}: {meaning}")
    add_effort(add_option, "oversubscribe")


def add_effort(add_option: AddOption, *names: str) -> None:
    """Add the options of these settings of an effort."""
    for name in names:
        SETTINGS[name].add_to(add_option)


def sweep(option: argparse.Namespace) -> Sweep:
    """Return the sweep that the options ask for, or the run folder's own if it holds a run.

    Raises WrongRequest with all mistakes if the options can't be met, or if they ask for another sweep than the
    folder's without `--extend`.
    """
    if option.run:
        _check_folder(Path(option.run))
    wanted: Sweep
    wanted, _ = all_of(lambda: plan.wanted(request(option)), lambda: fail_on(option))
    admission.check_threads(wanted)
    return wanted


def _check_folder(folder: Path) -> None:
    """Raise WrongRequest for a folder with files that aren't a run's."""
    if not folder.is_dir() or (folder / JOURNAL).exists():
        return
    if others := sorted({path.name for path in folder.iterdir()} - {*BEFORE_A_JOURNAL}):
        raise WrongRequest(
            f"--run {folder} must be a run folder, an empty folder or a new one; it has {others[0]} but no {JOURNAL}"
        )


def request(option: argparse.Namespace) -> Request:
    """Return the request in the options; raises WrongRequest for invalid values."""
    implementations, given, wished, shard = all_of(
        lambda: _list(option, "impl"),
        lambda: overrides(option),
        lambda: effort(option),
        lambda: parse_shard(option.shard) if option.shard else None,
    )
    return facts.here(
        option.sweep or "",
        overrides=given,
        implementations=implementations,
        baseline=option.baseline,
        control=False if option.no_control else None,
        effort=wished,
        product=option.sweep is None and any(name in SHAPES for name in given),
        path=search_path(),
        shard=shard,
        run=Path(option.run) if option.run else None,
        extend=option.extend,
        look=_looked,
        say=lambda line: say(f"warning: {line}", stderr=True),
    )


def _looked(layers: Sequence[str]) -> Shown:
    from bench.engine import model_look  # slow to import

    with waiting(f"importing torch and {listed(layers)} to find the shapes"), model_look.looking(layers) as pool:
        return model_look.shown(pool, layers)


def product(
    implementations: Sequence[str],
    columns: Mapping[str, Any],
    asked: Mapping[str, Any],
    look: Callable[[Sequence[str]], Shown] = _looked,
) -> Sweep:
    """Return the sweep of one product of columns, with the requested effort and without a control.

    `look` is as in a Request. Raises WrongRequest if this machine can't measure it.
    """
    request = facts.here(
        implementations=implementations,
        control=False,
        overrides=columns,
        effort=asked,
        product=True,
        path=search_path(),
        look=look,
    )
    wanted = load_sweep(request)
    admission.check_threads(wanted)
    admission.check_devices(wanted)
    return wanted


def fail_on(option: argparse.Namespace) -> tuple[str, ...] | None:
    """Return the statuses that fail a point, empty for `none`; None, for the usual rule, without the option.

    Raises WrongRequest for an unknown status.
    """
    if option.fail_on is None:
        return None
    names = _list(option, "fail_on")
    if wrong := [name for name in names if name not in FAILURES and names != [NONE]]:
        raise WrongRequest(unknown_names("--fail-on value", wrong, (*FAILURES, NONE)))
    return tuple(name for name in names if name != NONE)


def overrides(option: argparse.Namespace) -> dict[str, Any]:
    """Return the columns that a command's options replace; raises WrongRequest for invalid numbers."""
    lists = all_of(*(partial(_list, option, name, column.kind) for name, column in LISTS.items()))
    return {name: values for name, values in zip(LISTS, lists, strict=True) if values}


def effort(option: argparse.Namespace) -> dict[str, Any]:
    """Return the given values of an effort by name; raises WrongRequest for invalid ones."""
    given = {name: value for name in SETTINGS if (value := getattr(option, name, None)) is not None}
    texts = [name for name, value in given.items() if isinstance(value, str)]
    read = all_of(*(partial(SETTINGS[name].read, given[name]) for name in texts))
    return {**given, **dict(zip(texts, read, strict=True))}


def run_folder(option: argparse.Namespace, name: str) -> Path:
    """Return the folder in `--run`, or a new one in the current `results`, with the time and a name."""
    return Path(option.run) if option.run else files.new(LOCAL, f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{name}")


def _list(option: argparse.Namespace, name: str, kind: ValueKind = ValueKind.TEXT) -> list[Any]:
    """Return the values in a comma list, empty if the command has no such option; ranges and `none` stay text."""
    text = getattr(option, name, None)
    if text is None:
        return []
    try:
        return [
            word if word == NONE or (kind is ValueKind.COUNT and is_range(word)) else READERS[kind](word)
            for word in split(text)
        ]
    except (ValueError, KeyError):
        raise WrongRequest(f"{flag(name)} {text} must be {RULES[kind]}, separated by commas") from None
