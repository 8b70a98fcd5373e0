"""Measure a kernel again whenever its file is saved."""

import argparse
import dataclasses
import importlib.util
import itertools
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic, sleep

from bench.analyse.change import judge
from bench.commands import options, say
from bench.commands.progress import START, waiting
from bench.engine.trial import Trial
from bench.plan import names
from bench.plan.case import AS_IS
from bench.plan.errors import WrongRequest
from bench.plan.invocation import suite
from bench.plan.statuses import FINE
from bench.plan.sweep import Sweep
from bench.plan.verdicts import EQUIVALENT, FASTER, MARGIN, OPEN, SLOWER
from bench.show import intervals
from bench.show.text import shared
from bench.stats.contrasts import Values, contrasts, prior, values
from bench.stats.estimates import interval
from bench.store import units
from impls.catalogue import Name, name_of

POLL_S = 0.2
"""The seconds between two checks of the file."""

COPY = "_save_"
"""The text between a module's name and the number of its version; messages name the module."""

WORDS = {
    FASTER: "faster than",
    SLOWER: "slower than",
    EQUIVALENT: f"within {MARGIN:.0%} of",
    OPEN: "not clearly different from",
}
"""The words for a version's verdict relative to another."""


def run(arguments: argparse.Namespace) -> int:
    """Measure the kernel now and after each time that its file is saved, until Ctrl-C."""
    sweep = _sweep(arguments)
    baseline, name = sweep.implementations
    kernel, last = name_of(name), ""
    file = _file(kernel.module)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        sys.path.insert(0, folder)  # before the first process starts
        stack.callback(sys.path.remove, folder)
        try:
            with waiting(START):
                trial = stack.enter_context(Trial(sweep.points[0], baseline, sweep.effort.timeout_s))
            say(f"{name} against {baseline}: {shared(sweep.points)}", f"watching {file}; stop with Ctrl-C")
            for version in versions(kernel, file, Path(folder)):
                if _tried(trial, version, last if last != version else "", baseline):
                    last = version
        except KeyboardInterrupt:
            asked = (word for word in sys.argv[2:] if word not in arguments.names)
            say("", f"For an exact comparison: {suite()} duel {shlex.join([baseline, name, *asked])}")
    return FINE


def versions(kernel: Name, file: Path, folder: Path) -> Iterator[str]:
    """Yield a name for each version of a kernel, the first at once, then whenever its file is saved.

    Each is a copy of the module, except in a package, whose modules may import each other.
    """
    stamp: tuple[int, int] | None = None
    for number in itertools.count(1):
        stamp = _saved(file, stamp)
        copy = kernel.module
        if "." not in copy:
            copy += f"{COPY}{number}"
            shutil.copyfile(file, folder / f"{copy}.py")
        yield kernel.text.replace(kernel.module, copy, 1)


def _saved(file: Path, before: tuple[int, int] | None) -> tuple[int, int]:
    """Wait until a file has changed; return its time of change and size."""
    while True:
        with suppress(FileNotFoundError):  # an editor is replacing it
            state = file.stat()
            if (now := (state.st_mtime_ns, state.st_size)) != before:
                return now
        sleep(POLL_S)


def _tried(trial: Trial, name: str, last: str, baseline: str) -> bool:
    """Try a version and print the result; return whether it is correct."""
    began_s, copy = monotonic(), name.partition(":")[0]

    def tell(words: str) -> None:
        named = re.sub(rf"(?:/[^\s'\"]*/)?\b{copy}\b", copy.partition(COPY)[0], words)
        say(f"[{units.duration(monotonic() - began_s)}] {named}")

    if mistake := names.mistake_of(name, names.search_path()):
        tell(mistake)
        return False
    rounds: dict[str, dict[int, dict[int, float]]] = {}
    for number, members in enumerate(trial.replicates([name, *filter(None, [last])])):
        member = members[name]
        if not member.is_ok:
            tell(f"{member.status}: {member.detail}")
            return False
        if number == 0:
            kernels = ", ".join(member.metrics.get("kernels") or ["kernels unknown"])
            tell("; ".join(filter(None, [f"correct, error {member.metrics['error']:.1g}: {kernels}", member.doubt])))
        for each, of in members.items():
            if of.is_ok:
                taken = dict(zip(of.samples.rounds, of.samples.values_s, strict=True))
                rounds.setdefault(each, {})[number] = taken
    tell("; ".join(_judged(values(rounds), name, {baseline: baseline, last: "the last version"})))
    return True


def _judged(of: Values, name: str, others: Mapping[str, str]) -> Iterator[str]:
    """Yield a version's speed relative to each of the other measured ones; `others` has words for these."""
    judged = contrasts(of, prior([of]))
    for other, words in others.items():
        if {name, other} <= {*judged.names}:
            ratio = interval(judged.speedup(name, other)).exp()
            yield f"{WORDS[judge(ratio, 0.0, MARGIN)]} {words}: {intervals.ratio(ratio)}"


def _sweep(arguments: argparse.Namespace) -> Sweep:
    """Return the sweep of the kernel and its rivals at the one point that the options ask for.

    Raises WrongRequest if they ask for several points, or if the kernel isn't in a module of the user's.
    """
    usual = AS_IS if ":" in (arguments.layer or "") else Sweep.baseline
    given: list[str] = arguments.names if len(arguments.names) > 1 else [usual, *arguments.names]
    asked = options.product(given, options.overrides(arguments), options.effort(arguments))
    if len(given) > 2 or ":" not in given[-1]:
        raise WrongRequest(
            f"watch takes your kernel as module:attribute, alone or after a baseline; got {' '.join(arguments.names)}"
        )
    if len(asked.points) != 1:
        raise WrongRequest(f"watch measures one shape, but the options give {len(asked.points)}")
    return dataclasses.replace(asked, implementations=(*given,), baseline=given[0])


def _file(module: str) -> Path:
    """Return the file of a kernel's module."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.origin:
        raise WrongRequest(f"{module} has no file to watch")
    return Path(spec.origin)
