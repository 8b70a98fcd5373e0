"""Say which attention a model should use, from measurements of the whole model."""

import argparse
import dataclasses
import shlex
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from bench.analyse import advice as analyse
from bench.analyse.advice import Advice
from bench.analyse.padding import Packing, packing
from bench.commands import options, put, say, write
from bench.commands.arguments import CORE, FORMATS, MODEL
from bench.commands.progress import moving, waiting
from bench.engine.model_look import look, looking, shown
from bench.engine.pool import Pool
from bench.engine.run import Run
from bench.machine import monotonic
from bench.plan import names
from bench.plan.case import AS_IS, Point
from bench.plan.errors import WrongRequest, suggestion
from bench.plan.invocation import suite
from bench.plan.layers import LAYERS
from bench.plan.statuses import BAD, FINE
from bench.plan.sweep import Effort, Sweep
from bench.show import advice as show
from bench.show import model_sweep
from bench.show.blocks import GAP, Block, Lines
from bench.show.markdown import markdown
from bench.show.rows import measured
from bench.show.terminal.console import console
from bench.store import saved_run as stored
from bench.store import units
from bench.store.table import RESULTS
from impls.catalogue import COMPILED, SOURCES, advised, name_of, split, with_option

LOOKS = 3
"""The processes that look at a model: their scatter is that of the shares."""

WITHIN_S = 90.0
"""The seconds of a race for each of its points if nothing says another number."""

LOOK_SHARE, LEAST_RACE_S = 0.5, 1.0
"""The share of --within after which no further process looks at a model, and the least time of the race."""

PROCESSES, BUDGET_S = 2, 10.0
"""The replicates of a model's base, and the seconds of rounds in all of them."""

FOLDER, PADS = "packed", "sdpa"
"""The folder of the run of padded cores, and its baseline, which pads them."""

PACKED_PROCESSES, PACKED_BUDGET_S = 3, 6.0
"""Its replicates, and the seconds of rounds in all of them: a race would leave out in the second what is far behind."""

FILES = ("advice.md", "advice.json", "look.json", RESULTS, "journal.jsonl", FOLDER)
"""What a run may leave in its folder."""


def run(arguments: argparse.Namespace) -> int:
    """Look at a model, compare its settings and print the answer; BAD if something measured is bad."""
    if arguments.written_as and not arguments.sweep_file:
        raise WrongRequest(f"--as {arguments.written_as} needs --sweep-file OUT.toml")
    extra = [name for name in split(arguments.impl) if name not in ("", AS_IS)]
    name, is_quiet = _model(arguments), arguments.format != FORMATS[0]
    with looking([name]) as pool:
        asked, begin_s = _asked(name, arguments, extra, pool), monotonic.now_s()
        within_s = asked.effort.seconds(len(asked.points))
        if not (is_quiet or arguments.look):
            say(
                f"looks at the model and the race of its settings have {units.duration(within_s)} together (--within); "
                f"the first look and {PROCESSES} processes of each setting are measured in any case"
            )
        answers = _seen(asked, pool, LOOK_SHARE * within_s, is_quiet)
    if arguments.sweep_file:
        text = model_sweep.of_cores if arguments.written_as == CORE else model_sweep.of_layers
        write(arguments.sweep_file, text(answers))
    folder = options.run_folder(arguments, "advise")
    stored.save_looks({each.point: each.looks for each in answers}, folder)
    _print([block for each in answers for block in show.before(each)], is_quiet)
    is_asked = bool(arguments.anyway or extra)
    worth = [] if arguments.look else [each for each in answers if is_asked or not each.is_little]
    if worth:
        left_s = max(LEAST_RACE_S, within_s - (monotonic.now_s() - begin_s))
        compiled = [] if arguments.no_compile else advised(worth[0].point.kind.name, compiled=True)
        cores = {each.point: core for each in worth if (core := model_sweep.padded_core(each))}
        worth = _compared(asked, worth, compiled, extra, left_s, folder, is_quiet)
        packed = _packed(asked, [*cores.values()], folder / FOLDER, is_quiet)
        worth = [dataclasses.replace(each, packing=packed.get(cores.get(each.point))) for each in worth]
    by_point = {each.point: each for each in worth}
    answers = [by_point.get(each.point, each) for each in answers]
    parts = [_ends(each, is_compared=each.point in by_point, is_look=arguments.look) for each in answers]
    for each, blocks in zip(answers, parts, strict=True):
        heading = [GAP, Lines([show.about(each)])] if len(answers) > 1 else []
        _print([*heading, *blocks], is_quiet or arguments.look)
    _put(answers, parts, arguments.format, folder)
    own = [of for each in worth for of in each.alternatives if of.name in extra and name_of(of.name).is_own]
    are_ok = all(each.as_is.get("status", "ok") == "ok" for each in worth)
    return FINE if are_ok and all(each.status == "ok" for each in own) else BAD


def _ends(advice: Advice, *, is_compared: bool, is_look: bool) -> list[Block]:
    """Return what is said after a comparison, or why there is none."""
    return show.after(advice) if is_compared else [] if is_look else show.stopped(advice)


def _print(of: Iterable[Block], is_quiet: bool) -> None:
    if not is_quiet:
        put(of)


def _asked(name: str, arguments: argparse.Namespace, extra: Sequence[str], pool: Pool) -> Sweep:
    """Return the race of a module that the options ask for; a process of the pool shows its shapes.

    Its implementations are the model as it is, and what was asked for besides. Raises WrongRequest.
    """
    columns = {**options.overrides(arguments), "layer": [name]}
    if "backward" in columns.get("mode", ()):
        raise WrongRequest("--mode backward must be inference, forward or train: advise measures calls of a model")
    given = options.effort(arguments)
    usual = {"processes": PROCESSES, "budget_s": BUDGET_S, "bound": Effort.bound, "race": True}
    asked = options.product([AS_IS, *extra], columns, {**usual, **given}, partial(shown, pool))
    effort = dataclasses.replace(asked.effort, within_s=given.get("within_s", WITHIN_S * len(asked.points)))
    return dataclasses.replace(asked, name="advise", baseline=AS_IS, effort=effort)


def _model(arguments: argparse.Namespace) -> str:
    """Return the module's name with its input; raises WrongRequest."""
    name: str = arguments.name
    if ":" not in name and name not in LAYERS:
        near = "" if name.rstrip(":") in SOURCES else suggestion(name, SOURCES) or f"; did you mean timm:{name}?"
        raise WrongRequest(names.misspelled(name, "model") or f"MODEL {name!r} must be {MODEL}{near}")
    name = with_option(name, "input", arguments.input) if arguments.input else name
    return names.read(name).text


def _seen(asked: Sweep, pool: Pool, most_s: float, is_quiet: bool) -> list[Advice]:
    """Return what is seen of a model at each point; further looks are left out if all would take more than `most_s`.

    Raises NotSeen.
    """
    first, timeout_s = asked.points[0], asked.effort.timeout_s
    settings = advised(first.kind.name, compiled=False)
    with (
        waiting(f"looking: {LOOKS} processes import torch and {first.layer}"),
        moving(console(stderr=is_quiet)) as move,
    ):
        looks = look(
            pool, asked.points, settings, LOOKS, timeout_s, lambda stage: move(f"looking: {stage}"), most_s=most_s
        )
    return [analyse.seen(point, seen) for point, seen in looks.items()]


def _compared(
    asked: Sweep,
    answers: Sequence[Advice],
    compiled: Sequence[str],
    extra: Sequence[str],
    left_s: float,
    folder: Path,
    is_quiet: bool,
) -> list[Advice]:
    """Measure the settings of a model in the time that is left, and return the answers."""
    works = [name for each in answers for name in each.working]
    controls = [name for each in answers for name in each.controls]
    # a compiled setting has the name of what it compiles, which must be another one than that of the model
    compiled = [name for name in compiled if name == COMPILED or name_of(name).compiled_from in works]
    race = dataclasses.replace(
        asked,
        points=tuple(each.point for each in answers),
        implementations=tuple(dict.fromkeys([AS_IS, *controls, *works, *compiled, *extra])),
        effort=dataclasses.replace(asked.effort, within_s=left_s),
    )
    with moving(console(stderr=is_quiet)) as move, Run(race, folder) as run:
        run.heard = lambda point, process, implementation, stage: move(
            f"process {process + 1}: {implementation or 'reference'}, {stage} ({point.layer})"
        )
        if not is_quiet:
            say(f"results go to {folder}", *(f"warning: {warning}" for warning in run.warnings))
        [*run.measured()]
        known = {
            each.point: analyse.compared(
                each,
                run.rows(each.point),
                run.summary.contrasts(each.point),
                dict.fromkeys([*controls, *each.first["settings"], *compiled, *extra]),
            )
            for each in answers
            if each.point in run.summary  # the base of others waits
        }
    return [known.get(each.point, each) for each in answers]


def _packed(asked: Sweep, cores: Sequence[Point], folder: Path, is_quiet: bool) -> dict[Point | None, Packing | None]:
    """Measure padded cores by themselves, padded and packed, and return what packing brings at each."""
    if not cores:
        return {}
    if not is_quiet:
        say("padded cores are measured by themselves, padded and packed; that takes half a minute more for each")
    effort = dataclasses.replace(asked.effort, race=False, processes=PACKED_PROCESSES, budget_s=PACKED_BUDGET_S)
    sweep = Sweep(FOLDER, tuple(dict.fromkeys(cores)), (PADS, *model_sweep.PACKED), PADS, effort)
    with moving(console(stderr=is_quiet)) as move, Run(sweep, folder) as run:
        run.heard = lambda _point, _process, implementation, stage: move(
            f"packing: {implementation or 'reference'}, {stage}"
        )
        [*run.measured()]
        return {core: packing(core, measured(run.rows(core))) for core in cores}


def _put(answers: Sequence[Advice], parts: Iterable[list[Block]], form: str, folder: Path) -> None:
    """Write the answer beside the results, and print it in the form asked for, or what several points say together.

    `parts` are the ends of each answer.
    """
    ends = show.together(answers, analyse.per_item(answers))
    wholes = ([*show.before(each), *blocks] for each, blocks in zip(answers, parts, strict=True))
    texts = {"json": show.as_json(answers), "markdown": "\n".join(map(markdown, [*wholes, ends]))}
    for name, ending in (("json", "json"), ("markdown", "md")):
        (folder / f"advice.{ending}").write_text(texts[name], encoding="utf-8")
    if form in texts:
        sys.stdout.write(texts[form])
        return
    _print(ends, is_quiet=False)
    path = shlex.quote(str(folder))
    say(f"Everything is in {path}: {', '.join(name for name in FILES if (folder / name).exists())}.")
    if (folder / RESULTS).exists():
        say(f"Look: {suite()} show {path}; profile: {suite()} profile {path}")
