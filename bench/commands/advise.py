"""Say which attention a model should use, from measurements of the whole model."""

import argparse
import dataclasses
import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.analyse import advice as analyse
from bench.analyse.advice import Advice
from bench.analyse.precision import changes
from bench.commands import BAD, FINE, say, write
from bench.commands.arguments import CORE, FORMATS, MODEL
from bench.engine.model_look import NotSeen, completed, control, layer_of, look, working
from bench.engine.run import Run
from bench.harness import options
from bench.harness.progress import moving, waiting
from bench.machine import monotonic
from bench.plan import names
from bench.plan.case import AS_IS, Point
from bench.plan.device import CUDA
from bench.plan.errors import WrongRequest, suggestion, unknown_names
from bench.plan.invocation import short, suite
from bench.plan.layers import LAYERS
from bench.plan.names import is_implementation, is_own
from bench.plan.sweep import MEASURED, Effort, Sweep, mistakes_of_table
from bench.show import advice as show
from bench.show import core_sweep
from bench.show.blocks import GAP, QUIET, Block, Lines
from bench.show.markdown import markdown
from bench.show.terminal.console import console, render
from bench.store import saved_run as stored
from bench.store import units
from bench.store.record import Record
from bench.store.saved_run import Seen
from impls.catalogue import COMPILED, SOURCES, advised, compiled_from, parse, split, with_option

LOOKS = 3
"""The processes that look at a model: their scatter is that of the shares."""

WITHIN_S = 90.0
"""The seconds of a race for each of its points if nothing says another number."""

LOOK_SHARE, LEAST_RACE_S = 0.5, 1.0
"""The share of --within after which no further process looks at a model, and the least time of the race."""

PROCESSES, BUDGET_S = 2, 10.0
"""The replicates of a model's base, and the seconds of rounds in all of them."""

FILES = ("advice.md", "advice.json", "look.json", "results.csv", "journal.jsonl")
"""What a run may leave in its folder."""

SWEEP_COLUMNS = ("layer", "device", "dtype", "mode", "batch", "num_tokens", "channels", "num_heads", "threads")
"""The columns of a sweep file of a model's layers."""


def run(arguments: argparse.Namespace) -> int:
    """Look at a model, compare its settings and print the answer; BAD if something measured is bad."""
    if arguments.written_as and not arguments.sweep_file:
        raise WrongRequest(f"--as {arguments.written_as} needs --sweep-file OUT.toml")
    name, batches = _model(arguments)
    extra = _extra(arguments)
    asked = _asked(arguments, name, batches)
    is_quiet = arguments.format != FORMATS[0]
    kind = asked.points[0].kind.name
    settings = advised(kind, compiled=False)
    within_s, begin_s = asked.effort.seconds(len(asked.points)), monotonic.now_s()
    if not (is_quiet or arguments.look):
        say(
            f"looks at the model and the race of its settings have {units.duration(within_s)} together (--within); "
            f"the first look and {PROCESSES} processes of each setting are measured in any case"
        )
    try:
        seen = _seen(asked, name, settings, LOOK_SHARE * within_s, is_quiet)
    except NotSeen as reason:
        say(f"attention-bench: {name} could not be looked at: {reason}", stderr=True)
        return BAD
    looks = completed(seen)
    answers = {point: analyse.seen(point, seen) for point, seen in looks.items()}
    if arguments.sweep_file:
        text = core_sweep.text(looks) if arguments.written_as == CORE else _layer_sweep(answers, looks)
        write(arguments.sweep_file, text)
    folder = options.run_folder(arguments, "advise")
    stored.save_looks(looks, folder)
    _print([block for advice in answers.values() for block in show.before(advice)], is_quiet)
    asks = bool(arguments.anyway or extra)
    worth = [] if arguments.look else [point for point, of in answers.items() if asks or not of.is_little]
    records: list[Record] = []
    if worth:
        compiled = [] if arguments.no_compile else advised(kind, compiled=True)
        left_s = max(LEAST_RACE_S, within_s - (monotonic.now_s() - begin_s))
        effort = dataclasses.replace(asked.effort, within_s=left_s)
        asked = dataclasses.replace(asked, points=tuple(worth), effort=effort)
        records = _compared(asked, answers, looks, compiled, extra, folder, is_quiet)
    for point, advice in answers.items():
        blocks = show.after(advice) if point in worth else show.stopped(advice)
        heading = [GAP, Lines([show.about(advice)])] if len(answers) > 1 else []
        _print([*heading, *blocks], is_quiet or arguments.look)
    _put([*answers.values()], records, arguments.format, folder)
    own = [each for point in worth for each in answers[point].alternatives if each.name in extra and is_own(each.name)]
    are_ok = all(answers[point].as_is.get("status", "ok") == "ok" for point in worth)
    return FINE if are_ok and all(each.status == "ok" for each in own) else BAD


def _seen(asked: Sweep, name: str, settings: Sequence[str], most_s: float, is_quiet: bool) -> dict[Point, list[Seen]]:
    """Return what looks at a model see; further ones are left out if all would take more than `most_s`.

    Raises NotSeen.
    """
    with waiting(f"looking: {LOOKS} processes import torch and {name}"), moving(console(stderr=is_quiet)) as move:
        timeout_s = asked.effort.timeout_s
        return look(asked.points, settings, LOOKS, timeout_s, lambda stage: move(f"looking: {stage}"), most_s=most_s)


def _print(of: Iterable[Block], is_quiet: bool) -> None:
    if not is_quiet:
        console().print(render(of))


def _model(arguments: argparse.Namespace) -> tuple[str, list[int]]:
    """Return the module's name with its input, and the batches; raises WrongRequest."""
    name: str = arguments.name
    if not names.is_module(name) and name not in LAYERS:
        near = "" if name.rstrip(":") in SOURCES else suggestion(name, SOURCES) or f"; did you mean timm:{name}?"
        raise WrongRequest(names.misspelled(name, "model") or f"MODEL {name!r} must be {MODEL}{near}")
    batches = _numbers("--batch", arguments.batch) if arguments.batch else []
    given = arguments.input
    if given and ":" not in given:
        sides = given.split("x")
        if len(sides) < 2 or not all(side.isdecimal() and int(side) > 0 for side in sides):
            raise WrongRequest(f"--input {given} must be sizes that begin with the batch, as 8x3x224x224")
        if batches and batches != [int(sides[0])]:
            raise WrongRequest(f"--input {given} has {sides[0]} items, and --batch says {arguments.batch}")
        batches = [int(sides[0])]
    return with_option(name, "input", given) if given else name, batches


def _numbers(flag: str, text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise WrongRequest(f"{flag} {text} must be whole numbers of at least 1, separated by commas")
    return [int(word) for word in words]


def _extra(arguments: argparse.Namespace) -> list[str]:
    """Return the settings that were asked for besides the usual ones; raises WrongRequest for an unknown one."""
    given = [name for name in split(arguments.impl) if name]
    given += [f"{MEASURED}[table={arguments.use}]"] if arguments.use else []
    path = names.search_path()
    for name in given:
        try:
            base = parse(name).base
        except ValueError as error:
            raise WrongRequest(str(error)) from None
        if not is_implementation(name):
            usual = [name for compiled in (False, True) for name in advised(CUDA.name, compiled=compiled)]
            expected = (*usual, "online", "manual", "flex", "mykernel:attend")
            raise WrongRequest(unknown_names("setting", [name], expected))
        if ":" in base and (mistake := names.mistake_of(name, path, "attend")):
            raise WrongRequest(mistake)
        if base == MEASURED and (mistakes := mistakes_of_table(parse(name).options)):
            raise WrongRequest(*mistakes)
    return [name for name in given if name != AS_IS]


def _asked(arguments: argparse.Namespace, name: str, batches: Sequence[int]) -> Sweep:
    """Return the race that the options ask for; what only the model knows is 1 until it was looked at."""
    columns = {**options.overrides(arguments), "layer": [name], **({"batch": batches} if batches else {})}
    usual = {"processes": PROCESSES, "budget_s": BUDGET_S, "bound": Effort.bound, "race": True}
    given = options.effort(arguments)
    asked = options.product([AS_IS], columns, {**usual, **given}, shaped=tuple)
    if any(point.mode == "backward" for point in asked.points):
        raise WrongRequest("--mode backward must be inference, forward or train: advise measures calls of a model")
    within_s = given.get("within_s", WITHIN_S * len(asked.points))
    effort = dataclasses.replace(asked.effort, within_s=within_s)
    return dataclasses.replace(asked, name="advise", implementations=(AS_IS,), baseline=AS_IS, effort=effort)


def _compared(
    asked: Sweep,
    answers: dict[Point, Advice],
    looks: Mapping[Point, Sequence[Seen]],
    compiled: Sequence[str],
    extra: Sequence[str],
    folder: Path,
    is_quiet: bool,
) -> list[Record]:
    """Measure the settings of a model, put the answers in place, and return the records."""
    works = [name for point in asked.points for name in working(looks[point])]
    controls = [name for point in asked.points for name in control(looks[point])]
    # a compiled setting has the name of what it compiles, which must be another one than that of the model
    compiled = [name for name in compiled if name == COMPILED or compiled_from(name) in works]
    measured = tuple(dict.fromkeys([AS_IS, *controls, *works, *compiled, *extra]))
    with _opened(dataclasses.replace(asked, implementations=measured), folder, is_quiet) as run:
        if not is_quiet:
            say(f"results go to {folder}", *(f"warning: {warning}" for warning in run.warnings))
        [*run.measured()]
        done = [point for point in asked.points if point in run.summary]  # the base of others waits
        records = {point: run.records.of(point) for point in done}
        tables = {point: run.records.rows(point) for point in done}
    for point, table in tables.items():
        names = list(dict.fromkeys([*controls, *looks[point][0]["settings"], *compiled, *extra]))
        answers[point] = analyse.advised(answers[point], looks[point], table, records[point], names)
    return [record for own in records.values() for record in own]


@contextmanager
def _opened(sweep: Sweep, folder: Path, is_quiet: bool) -> Iterator[Run]:
    """Open a run that shows its events in one line that is rewritten; a log shows none."""
    with moving(console(stderr=is_quiet)) as move, Run(sweep, folder) as run:
        run.heard = lambda point, process, implementation, stage: move(
            f"process {process + 1}: {implementation or 'reference'}, {stage} ({point.layer})"
        )
        yield run


def _layer_sweep(answers: Mapping[Point, Advice], looks: Mapping[Point, Sequence[Seen]]) -> str:
    """Return a sweep file of the distinct layers of the points."""
    names = dict.fromkeys(name for seen in looks.values() for name in working(seen))
    lines = [
        f"# the distinct attention layers of a model, written by `{short()} advise`",
        f"implementations = {json.dumps([AS_IS, *names])}",
        f"baseline = {json.dumps(AS_IS)}",
    ]
    layers = {(point, kind.path): layer_of(point, kind) for point, of in answers.items() for kind in of.kinds}
    for layer in layers.values():
        lines += ["", "[[grid]]", *(f"{name} = {json.dumps(getattr(layer, name))}" for name in SWEEP_COLUMNS)]
    return "\n".join(lines) + "\n"


def _put(answers: Sequence[Advice], records: Sequence[Record], form: str, folder: Path) -> None:
    """Write the answer beside the results, and print it in the form asked for, or what several points say together."""
    ends = [
        Lines(show.legend(answers), QUIET, is_list=True),
        *show.together(analyse.per_item(answers, records)),
    ]
    texts = {
        "json": show.as_json(answers),
        "markdown": "\n".join(
            markdown(each) for each in (*([*show.before(of), *show.after(of)] for of in answers), ends)
        ),
    }
    for name, ending in (("json", "json"), ("markdown", "md")):
        (folder / f"advice.{ending}").write_text(texts[name], encoding="utf-8")
    if form in texts:
        sys.stdout.write(texts[form])
        return
    _print(ends, is_quiet=False)
    path = shlex.quote(str(folder))
    say(f"Everything is in {path}: {', '.join(name for name in FILES if (folder / name).exists())}.")
    if records:
        say(f"Look: {suite()} show {path}; profile: {suite()} profile {path}")
    if changes(records):
        say(f"Precisions in a table: {suite()} show --across dtype {path}")
