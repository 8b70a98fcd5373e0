"""Say which attention a model should use, from measurements of the whole model."""

import argparse
import dataclasses
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.analyse import advice as analyse
from bench.analyse.advice import Advice
from bench.commands import options, put, say
from bench.commands.arguments import FORMATS, MODEL
from bench.commands.progress import moving, waiting
from bench.engine.model_look import look, looking, shown
from bench.engine.pool import Pool
from bench.engine.run import Run
from bench.machine import monotonic
from bench.plan import names
from bench.plan.case import AS_IS
from bench.plan.errors import WrongRequest, suggestion
from bench.plan.invocation import suite
from bench.plan.layers import LAYERS
from bench.plan.statuses import BAD, FINE
from bench.plan.sweep import Effort, Sweep
from bench.show import advice as show
from bench.show.blocks import GAP, Block, Lines
from bench.show.doubts import sentences
from bench.show.markdown import markdown
from bench.show.terminal.console import console
from bench.store.looks import save_looks
from bench.store.table import RESULTS
from impls.catalogue import COMPILED, SOURCES, advised, name_of, split, with_option

LOOKS = 3
"""The processes that look at a model; intervals of shares come from their scatter."""

WITHIN_S = 90.0
"""The default seconds of a race per point."""

LOOK_SHARE, LEAST_RACE_S = 0.5, 1.0
"""The share of --within after which no further process looks at a model, and the least time of the race."""

PROCESSES, BUDGET_S = 2, 10.0
"""The replicates of a model's base, and the seconds of rounds in all of them."""


def run(arguments: argparse.Namespace) -> int:
    """Look at a model, compare its settings and print the answer; BAD if something measured is bad."""
    named = [name for name in split(arguments.impl) if name not in ("", AS_IS)]
    name, is_quiet = _model(arguments), arguments.format != FORMATS[0]
    with looking([name]) as pool:
        asked, begin_s = _asked(name, arguments, named, pool), monotonic.now_s()
        within_s = asked.effort.seconds(len(asked.points))
        answers = _seen(asked, pool, LOOK_SHARE * within_s, is_quiet)
    folder = options.run_folder(arguments, "advise")
    save_looks({each.point: each.looks for each in answers}, folder)
    if not is_quiet:
        put([block for each in answers for block in show.before(each)])
    is_asked = bool(arguments.anyway or named)
    worth = [] if arguments.look else [each for each in answers if is_asked or not each.is_little]
    doubts: list[str] = []
    if worth:
        left_s = max(LEAST_RACE_S, within_s - (monotonic.now_s() - begin_s))
        compiled = [] if arguments.no_compile else advised(worth[0].point.kind.name, compiled=True)
        worth, doubts = _compared(asked, worth, compiled, named, left_s, folder, is_quiet)
    by_point = {each.point: each for each in worth}
    answers = [by_point.get(each.point, each) for each in answers]
    parts = [
        [] if arguments.look else show.after(each) if each.point in by_point else show.stopped(each) for each in answers
    ]
    _put(answers, parts, show.ending(answers, doubts), arguments.format, folder)
    own = [of for each in worth for of in each.alternatives if of["name"] in named and name_of(of["name"]).is_own]
    are_ok = all(each.as_is.get("status", "ok") == "ok" for each in worth)
    return FINE if are_ok and all(of["status"] == "ok" for of in own) else BAD


def _asked(name: str, arguments: argparse.Namespace, named: Sequence[str], pool: Pool) -> Sweep:
    """Return the race of a module that the options ask for; a process of the pool shows its shapes.

    Its implementations are the unchanged model and the requested settings. Raises WrongRequest.
    """
    columns = {**options.overrides(arguments), "layer": [name]}
    if "backward" in columns.get("mode", ()):
        raise WrongRequest("--mode backward must be inference, forward or train, because advise measures whole calls")
    given = options.effort(arguments)
    usual = {"processes": PROCESSES, "budget_s": BUDGET_S, "bound": Effort.bound, "race": True}
    asked = options.product([AS_IS, *named], columns, {**usual, **given}, partial(shown, pool))
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
    """Return the looks at a model at each point, fewer of them if all would take more than `most_s`.

    Raises NotSeen.
    """
    first, timeout_s = asked.points[0], asked.effort.timeout_s
    settings = advised(first.kind.name, compiled=False)
    with (
        waiting(f"looking at {first.layer} in {LOOKS} processes (importing torch)"),
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
    named: Sequence[str],
    left_s: float,
    folder: Path,
    is_quiet: bool,
) -> tuple[list[Advice], list[str]]:
    """Measure the named settings of a model, or those that it supports, in the remaining time.

    Returns the answers and doubts about them.
    """
    works = [name for each in answers for name in each.working]
    controls = [name for each in answers for name in each.controls]
    # a compiled setting has the name of what it compiles, which must differ from the model's
    compiled = [name for name in compiled if name == COMPILED or name_of(name).compiled_from in works]
    race = dataclasses.replace(
        asked,
        points=tuple(each.point for each in answers),
        implementations=tuple(dict.fromkeys([AS_IS, *controls, *(named or [*works, *compiled])])),
        effort=dataclasses.replace(asked.effort, within_s=left_s),
    )
    with moving(console(stderr=is_quiet)) as move, Run(race, folder) as run:
        run.heard = lambda point, process, implementation, stage: move(
            f"process {process + 1}: {implementation or 'reference'}, {stage} ({point.layer})"
        )
        if not is_quiet:
            say(f"writing results to {folder}", *(f"warning: {warning}" for warning in run.warnings))
        [*run.measured()]
        known = {
            each.point: analyse.compared(
                each,
                run.rows(each.point),
                dict.fromkeys([*controls, *(named or [*each.first.settings, *compiled])]),
            )
            for each in answers
            if each.point in run.summary  # the others' bases still wait
        }
        return [known.get(each.point, each) for each in answers], sentences(run.saved.whole) if known else []


def _put(answers: Sequence[Advice], parts: Sequence[list[Block]], ending: list[Block], form: str, folder: Path) -> None:
    """Write the answers beside the results, and print them in the requested form; `parts` has each one's blocks."""
    wholes = [[*show.before(each), *blocks] for each, blocks in zip(answers, parts, strict=True)]
    texts = {"json": show.as_json(answers), "markdown": "\n".join(map(markdown, [*wholes, ending]))}
    for name, suffix in (("json", "json"), ("markdown", "md")):
        (folder / f"advice.{suffix}").write_text(texts[name], encoding="utf-8")
    if form in texts:
        sys.stdout.write(texts[form])
        return
    for each, blocks in zip(answers, parts, strict=True):
        put([*([GAP, Lines([show.about(each)])] if blocks and len(answers) > 1 else []), *blocks])
    put(ending)
    path = shlex.quote(str(folder))
    say(f"results: {path}")
    if (folder / RESULTS).exists():
        say(f"all rows: {suite()} show {path}; profile: {suite()} profile {path}")
