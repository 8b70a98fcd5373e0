"""Say which attention a model should use, from measurements of the whole model."""

import argparse
import dataclasses
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bench.analyse import advice as analyse
from bench.analyse.advice import Advice
from bench.commands import BAD, FINE, say
from bench.engine import admission
from bench.engine.run import Heard, Run
from bench.engine.trials import NotSeen, look
from bench.harness import options
from bench.harness.progress import Screen, screen_of
from bench.machine.facts import default_allocator, default_threads
from bench.plan import own
from bench.plan.case import AS_IS, Point
from bench.plan.errors import WrongRequest, suggestion, unknown_names
from bench.plan.grid import DEFAULTS, expand
from bench.plan.names import is_implementation, is_own
from bench.plan.sweep import MEASURED, Effort, Sweep, effort_of, mistakes_of_table
from bench.show.advice import blocks
from bench.show.advice.blocks import as_json
from bench.show.command_text import python
from bench.show.markdown import markdown
from bench.show.terminal.blocks import render
from bench.show.terminal.console import console
from bench.store import look as stored
from bench.store.look import Seen
from impls.name import COMMA_OUTSIDE_BRACKETS, SOURCES, is_model, parse

BATCH = 8
"""The items in a call if nothing says another number."""

LOOKS = 3
"""The processes that look at a model: their scatter is that of the shares."""

WITHIN_S = 90.0
"""The seconds of a model's race if nothing says another number."""

PROCESSES, BUDGET_S, LAYER_BUDGET_S = 2, 10.0, 6.0
"""The replicates of a model's base and of its layers, and the seconds of rounds in all of them."""

ON_CPU = ("sdpa", "eager", "sdpa_flash", "sdpa_math")
ON_GPU = (*ON_CPU, "sdpa_efficient", "sdpa_cudnn")
COMPILED = ("compiled", "compiled_sdpa", "compiled_eager")
"""The settings that are tried: first the uncompiled ones."""

FILES = ("advice.md", "advice.json", "look.json", "results.csv", "journal.jsonl", "layers")
"""What a run may leave in its folder."""

FORMATS = ("terminal", "markdown", "json")

SWEEP_COLUMNS = ("device", "dtype", "mode", "batch", "num_tokens", "channels", "num_heads", "threads")
"""The columns of a sweep file of a model's layers."""

RULE = "timm:NAME, torchvision:NAME, transformers:CONFIG or module:function"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_option = parser.add_argument
    add_option("name", metavar="MODEL", help=f"{RULE}; options in brackets, as timm:vit_tiny_patch16_224[depth=4]")
    add_option("--batch", metavar="A,B,…", help=f"items in a call (default: {BATCH})")
    add_option(
        "--input",
        metavar="8x3x224x224",
        help="the shape of the input with its batch, or module:function that returns inputs",
    )
    add_option("--impl", metavar="A,B,…", default="", help="further settings, such as mykernel:attend")
    add_option("--use", metavar="TABLE", help="also try the choices of a table that `export` wrote")
    for name, (_, meaning) in options.SETTINGS.items():
        add_option(options.flag(name), metavar="A,B,…", help=meaning)
    add_option("--oversubscribe", action="store_true", default=None, help="allow more threads than cores")
    add_option("--no-compile", action="store_true", help="leave out the settings with torch.compile")
    add_option("--look", action="store_true", help="look at the model, and compare nothing")
    add_option("--anyway", action="store_true", help="compare settings even if attention takes little of the time")
    options.add_race(add_option)
    options.add_timeout(add_option)
    options.add_run(add_option, "<UTC time>-advise")
    add_option("--sweep-file", metavar="OUT.toml", type=Path, help="write the model's distinct layers as a sweep file")
    add_option("--format", choices=FORMATS, default=FORMATS[0], help=f"(default: {FORMATS[0]})")


def run(arguments: argparse.Namespace) -> int:
    """Look at a model, compare its settings and print the answer; BAD if something measured is bad."""
    name, batches = _model(arguments)
    extra = _extra(arguments)
    points = _points(arguments, name, batches)
    is_quiet = arguments.format != FORMATS[0]
    timeout_s = arguments.timeout_s or Effort.timeout_s
    candidates = _candidates(arguments)
    with screen_of(console(stderr=is_quiet)) as screen:
        try:
            looks = look(points, candidates, LOOKS, timeout_s, lambda stage: screen.move(f"looking: {stage}"))
        except NotSeen as reason:
            say(f"attention-bench: {name} could not be looked at: {reason}", stderr=True)
            return BAD
    looks = {_completed(point, seen): seen for point, seen in looks.items()}
    before = {point: analyse.seen(point, seen) for point, seen in looks.items()}
    if arguments.sweep_file:
        _write_sweep(arguments.sweep_file, before, looks)
    folder = options.run_folder(arguments, "advise")
    stored.save(looks, folder)
    answers: list[Advice] = []
    status = FINE
    for number, (point, advice) in enumerate(before.items()):
        if not is_quiet:
            console().print(render(blocks.before(advice)))
        if arguments.look or (advice.is_little and not (arguments.anyway or extra)):
            answers.append(advice)
            if not (is_quiet or arguments.look):
                console().print(render(blocks.stopped(advice)))
            continue
        where = folder if len(before) == 1 else folder / f"{number + 1}-{point.device}-{point.dtype}-b{point.batch}"
        whole, is_bad = _compared(arguments, point, advice, looks[point], extra, where)
        status = BAD if is_bad else status
        answers.append(whole)
        if not is_quiet:
            console().print(render(blocks.after(whole)))
    _put(answers, arguments.format, folder)
    return status


def _model(arguments: argparse.Namespace) -> tuple[str, list[int]]:
    """Return the model's name with its input, and the batches; raises WrongRequest."""
    name: str = arguments.name
    try:
        parsed = parse(name)
    except ValueError as error:
        raise WrongRequest(str(error)) from None
    source, colon, rest = parsed.base.partition(":")
    if not (source and colon and rest):
        near = suggestion(source, SOURCES)
        raise WrongRequest(f"MODEL {name!r} must be {RULE}{near or f'; did you mean timm:{name}?'}")
    if source not in SOURCES:
        if misspelled := own.misspelled(parsed.base, "model"):
            raise WrongRequest(misspelled)
        own.check([parsed.base], "model")
    batches = _numbers("--batch", arguments.batch) if arguments.batch else []
    given = arguments.input
    if given and ":" not in given:
        sides = given.split("x")
        if len(sides) < 2 or not all(side.isdecimal() and int(side) > 0 for side in sides):
            raise WrongRequest(f"--input {given} must be sizes that begin with the batch, as 8x3x224x224")
        if batches and batches != [int(sides[0])]:
            raise WrongRequest(f"--input {given} has {sides[0]} items, and --batch says {arguments.batch}")
        batches = [int(sides[0])]
        given = "x".join(sides[1:])
    if given:
        inside = ",".join(f"{key}={value}" for key, value in {**parsed.options, "input": given}.items())
        name = f"{parsed.base}[{inside}]"
    if not is_model(name):
        raise WrongRequest(f"the input of {name} isn't known; give --input, as 8x3x224x224 or mymodel:inputs")
    return name, batches or [BATCH]


def _numbers(flag: str, text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise WrongRequest(f"{flag} {text} must be whole numbers of at least 1, separated by commas")
    return [int(word) for word in words]


def _extra(arguments: argparse.Namespace) -> list[str]:
    """Return the settings that were asked for besides the usual ones; raises WrongRequest for an unknown one."""
    names = [name.strip() for name in COMMA_OUTSIDE_BRACKETS.split(arguments.impl) if name.strip()]
    names += [f"{MEASURED}[table={arguments.use}]"] if arguments.use else []
    path = own.search_path()
    for name in names:
        try:
            base = parse(name).base
        except ValueError as error:
            raise WrongRequest(str(error)) from None
        if not is_implementation(name):
            expected = (*ON_GPU, *COMPILED, "online", "manual", "flex", "mykernel:attend")
            raise WrongRequest(unknown_names("setting", [name], expected))
        if ":" in base and (mistake := own.mistake(base, path, "attend")):
            raise WrongRequest(mistake)
        if base == MEASURED and (mistakes := mistakes_of_table(parse(name).options)):
            raise WrongRequest(*mistakes)
    return [name for name in names if name != AS_IS]


def _points(arguments: argparse.Namespace, name: str, batches: Sequence[int]) -> list[Point]:
    """Return the points that the options ask for; what only the model knows is 1 until it was looked at."""
    given = options.overrides(arguments, options.SETTINGS)
    values: dict[str, Any] = {
        **DEFAULTS,
        "threads": default_threads(),
        **given,
        "layer": name,
        "batch": [*batches],
        **dict.fromkeys(("num_tokens", "channels", "num_heads"), 1),
    }
    points = [*expand(values, default_allocator())]
    asked = Sweep("advise", tuple(points), (AS_IS,), AS_IS, _effort(arguments))
    admission.check_threads(asked)
    admission.check_devices(asked)
    return points


def _effort(arguments: argparse.Namespace) -> Effort:
    """Return the effort of a model's race; raises WrongRequest for a bound or a time that can't be."""
    given = options.effort(arguments, ("bound", "within_s", "timeout_s", "oversubscribe"))
    return effort_of({"processes": PROCESSES, "budget_s": BUDGET_S, "race": True, "within_s": WITHIN_S, **given})


def _candidates(arguments: argparse.Namespace) -> tuple[str, ...]:
    devices = arguments.device or "cpu"
    return ON_CPU if devices == "cpu" else ON_GPU


def _completed(point: Point, seen: Sequence[Seen]) -> Point:
    """Return a point with the tokens, heads and channels of the layer that takes the most time."""
    kind = analyse.kinds(seen)[0]
    shape = kind.core["shapes"][0]
    batch, heads, tokens, width = shape if len(shape) == 4 else (shape[0], 1, *shape[-2:])
    del batch
    channels = heads * width
    return dataclasses.replace(point, num_tokens=tokens, num_heads=heads, channels=channels, token_len=channels)


def _compared(
    arguments: argparse.Namespace,
    point: Point,
    before: Advice,
    seen: Sequence[Seen],
    extra: Sequence[str],
    folder: Path,
) -> tuple[Advice, bool]:
    """Measure the settings of a model and of its layers; return the answer, and whether one of the user's is bad."""
    settings: Mapping[str, Mapping[str, str]] = seen[0]["settings"]
    has = [name for name, each in settings.items() if each["status"] == "ok"]
    compiled = [] if arguments.no_compile else [name for name in COMPILED if _is_compiled(name, settings)]
    usual = [*has, *compiled]
    asked = list(dict.fromkeys([*settings, *compiled, *extra]))
    measured = list(dict.fromkeys([*usual, *extra]))
    is_quiet = arguments.format != FORMATS[0]
    sweep = Sweep("advise", (point,), (AS_IS, *measured), AS_IS, _effort(arguments))
    with screen_of(console(stderr=is_quiet)) as screen, Run(sweep, folder) as run:
        run.heard = _heard(screen)
        if not is_quiet:
            say(f"results go to {folder}", *(f"warning: {warning}" for warning in run.warnings))
        records = run.measure(point)
        table = run.run_folder.results()
    plain = [name for name in measured if name not in COMPILED]
    layers = _layers(arguments, point, before, plain, folder / "layers", is_quiet) if plain else {}
    whole = analyse.advised(before, seen, table, records, layers, asked)
    bad = [each for each in whole.alternatives if each.name in extra and is_own(each.name)]
    return whole, any(each.status != "ok" for each in bad) or whole.as_is.get("status") != "ok"


def _heard(screen: Screen) -> Heard:
    """Return what shows the events of a run in one line that is rewritten; a log shows none."""
    return lambda point, process, implementation, stage: screen.move(
        f"process {process + 1}: {implementation or 'reference'}, {stage} ({point.layer})"
    )


def _is_compiled(name: str, settings: Mapping[str, Mapping[str, str]]) -> bool:
    """Return whether a compiled setting is another one than `compiled`: its source is one, and is there."""
    source = name.removeprefix("compiled_")
    return name == "compiled" or settings.get(source, {}).get("status") == "ok"


def _layers(
    arguments: argparse.Namespace, point: Point, before: Advice, settings: Sequence[str], folder: Path, is_quiet: bool
) -> dict[str, pd.DataFrame]:
    """Measure the layers that take most of the time by themselves; return the table of each by its path."""
    kinds = analyse.measured_kinds(before.kinds)
    if not kinds:
        return {}
    points = {kind.path: dataclasses.replace(point, layer=_at(point.layer, kind.path)) for kind in kinds}
    effort = dataclasses.replace(_effort(arguments), race=False, within_s=None, budget_s=LAYER_BUDGET_S)
    sweep = Sweep("advise-layers", tuple(points.values()), (AS_IS, *settings), AS_IS, effort)
    screen = screen_of(console(stderr=is_quiet))
    with screen, Run(sweep, folder, servers=1) as run:  # another server starts for seconds
        run.heard = _heard(screen)
        for at in points.values():
            run.measure(at)
        return {path: run.run_folder.rows(at) for path, at in points.items()}


def _at(layer: str, path: str) -> str:
    parsed = parse(layer)
    inside = ",".join(f"{key}={value}" for key, value in {**parsed.options, "at": path}.items())
    return f"{parsed.base}[{inside}]"


def _write_sweep(path: Path, before: Mapping[Point, Advice], looks: Mapping[Point, Sequence[Seen]]) -> None:
    """Write the distinct layers of the points as a sweep file; raises WrongRequest if it can't be written."""
    settings = next(iter(looks.values()))[0]["settings"]
    names = [AS_IS, *(name for name, each in settings.items() if each["status"] == "ok")]
    lines = [
        "# the distinct attention layers of a model, written by `python -m bench advise`",
        f"implementations = {json.dumps(names)}",
        f"baseline = {json.dumps(AS_IS)}",
    ]
    for point, advice in before.items():
        for kind in advice.kinds:
            layer = _at(point.layer, kind.path) if kind.path else point.layer
            lines += ["", "[[grid]]", f"layer = {json.dumps(layer)}"]
            lines += [f"{name} = {json.dumps(getattr(point, name))}" for name in SWEEP_COLUMNS]
    try:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise WrongRequest(f"{path} can't be written: {error.strerror}") from None


def _put(answers: Sequence[Advice], form: str, folder: Path) -> None:
    """Write the answer beside the results, and print it in the form asked for."""
    texts = {
        "json": as_json(answers),
        "markdown": "\n".join(markdown([*blocks.before(of), *blocks.after(of)]) for of in answers),
    }
    for name, ending in (("json", "json"), ("markdown", "md")):
        (folder / f"advice.{ending}").write_text(texts[name], encoding="utf-8")
    if form in texts:
        sys.stdout.write(texts[form])
        return
    path = shlex.quote(str(folder))
    files = [name for name in FILES if (folder / name).exists()]
    say(f"Everything is in {path}: {', '.join(files)}.")
    if any(advice.alternatives for advice in answers):
        say(f"Look: {python()} -m bench show {path}; profile: {python()} -m bench profile {path}")
