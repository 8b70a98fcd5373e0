"""Measure a kernel again whenever its file is saved."""

import argparse
import dataclasses
import importlib.util
import re
import shlex
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.analyse.change import judge
from bench.analyse.flags import launch_bound
from bench.commands import options, say
from bench.commands.progress import START, waiting
from bench.engine.member import Member
from bench.engine.trial import Trial
from bench.plan import names
from bench.plan.case import AS_IS
from bench.plan.device import GRAPH
from bench.plan.errors import WrongRequest
from bench.plan.invocation import suite
from bench.plan.statuses import FINE
from bench.plan.sweep import Sweep
from bench.plan.verdicts import EQUIVALENT, FASTER, MARGIN, OPEN, SLOWER
from bench.show import intervals
from bench.show.answer import bound_by_host
from bench.show.text import shared
from bench.stats.contrasts import Values, contrasts, prior, values
from bench.stats.estimates import interval
from bench.store import units
from impls.catalogue import name_of

POLL_S = 0.2
"""The seconds between two looks at the file."""

COPY = "_save_"
"""What stands between the name of a module and the number of its version; messages name the module."""

WORDS = {
    FASTER: "faster than",
    SLOWER: "slower than",
    EQUIVALENT: f"within {MARGIN:.0%} of",
    OPEN: "not shown to differ from",
}
"""What is said of a version beside another one."""


def run(arguments: argparse.Namespace) -> int:
    """Measure the kernel now and after each time that its file is saved, until Ctrl-C."""
    sweep = _sweep(arguments)
    baseline, name = sweep.implementations
    point, file = sweep.points[0], _file(name)
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)  # before the first process starts
        try:
            with ExitStack() as stack:
                with waiting(START):
                    trial = stack.enter_context(Trial(point, baseline, sweep.effort.timeout_s))
                say(f"{name} beside {baseline}: {shared([point])}", f"watching {file}; Ctrl-C ends it")
                _watched(trial, Versions(name, file, Path(folder)), baseline)
        except KeyboardInterrupt:
            asked = (word for word in sys.argv[2:] if word not in arguments.names)
            say("", f"For an exact comparison: {suite()} duel {shlex.join([baseline, name, *asked])}")
        finally:
            sys.path.remove(folder)
    return FINE


class Versions:
    """The saved versions of a kernel's module, each under a name of its own in a folder.

    A module of a package has none, because it may import its neighbours.
    """

    def __init__(self, name: str, file: Path, folder: Path) -> None:
        self._name = name
        self._module, _, self._attribute = name.partition(":")
        self._file = file
        self._folder = folder
        self._count = 0
        self._stamp: tuple[int, int] | None = None

    def has_changed(self) -> bool:
        """Return whether the file was saved since the last call; at the first one it was."""
        try:
            state = self._file.stat()
        except FileNotFoundError:  # an editor replaces it
            return False
        before, self._stamp = self._stamp, (state.st_mtime_ns, state.st_size)
        return before != self._stamp

    def saved(self) -> str:
        """Return the name of the version that is there now."""
        if "." in self._module:
            return self._name
        self._count += 1
        copy = f"{self._module}{COPY}{self._count}"
        shutil.copyfile(self._file, self._folder / f"{copy}.py")
        return f"{copy}:{self._attribute}"


def _watched(trial: Trial, versions: Versions, baseline: str) -> None:
    """Try each version as it is saved, beside the last one that was right."""
    last = ""
    while True:
        if versions.has_changed():
            name = versions.saved()
            if _tried(trial, name, last if last != name else "", baseline):
                last = name
        _wait()


def _wait() -> None:
    time.sleep(POLL_S)


def _tried(trial: Trial, name: str, last: str, baseline: str) -> bool:
    """Try a version and print what it is worth; return whether it is right."""
    began_s, copy = time.monotonic(), name.partition(":")[0]

    def tell(words: str) -> None:
        named = re.sub(rf"(?:/[^\s'\"]*/)?\b{copy}\b", copy.partition(COPY)[0], words)
        say(f"[{units.duration(time.monotonic() - began_s)}] {named}")

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
            tell("; ".join(filter(None, [f"right, error {member.metrics['error']:.1g}: {kernels}", member.doubt])))
        for each, of in members.items():
            if of.is_ok:
                taken = dict(zip(of.samples.rounds, of.samples.values_s, strict=True))
                rounds.setdefault(each, {})[number] = taken
    tell("; ".join(_judged(values(rounds), name, {baseline: baseline, last: "the last version"})))
    for sentence in bound_by_host(
        [row] if launch_bound(row := _row(member, rounds[name])) else [], "Here", (row["timing"], GRAPH)
    ):
        tell(sentence)
    return True


def _row(member: Member, rounds: Mapping[int, Mapping[int, float]]) -> dict[str, Any]:
    """Return what a row of results would have of a version: its time, and the host's."""
    latency_s = statistics.median(each for of in rounds.values() for each in of.values())
    return {"timing": member.case.point.timing, "latency_s": latency_s, "host_s": member.metrics.get("host_s")}


def _judged(of: Values, name: str, others: Mapping[str, str]) -> Iterator[str]:
    """Yield how fast a version is, beside each of the others that was measured, which have words."""
    judged = contrasts(of, prior([of]))
    for other, words in others.items():
        if {name, other} <= {*judged.names}:
            ratio = interval(judged.speedup(name, other)).exp()
            yield f"{WORDS[judge(ratio, 0.0, MARGIN)]} {words}: {intervals.ratio(ratio)}"


def _sweep(arguments: argparse.Namespace) -> Sweep:
    """Return the sweep of the kernel and of what it is compared with, at the one point that the options ask for.

    Raises WrongRequest if they ask for several, or if the kernel is no module of the user's.
    """
    usual = AS_IS if ":" in (arguments.layer or "") else Sweep.baseline
    given: list[str] = arguments.names if len(arguments.names) > 1 else [usual, *arguments.names]
    asked = options.product(given, options.overrides(arguments), options.effort(arguments))
    if len(given) > 2 or ":" not in given[-1]:
        raise WrongRequest(
            f"watch takes your kernel as module:attribute, after a baseline or alone; got {' '.join(arguments.names)}"
        )
    if len(asked.points) != 1:
        raise WrongRequest(f"watch measures one shape, and the options ask for {len(asked.points)}")
    return dataclasses.replace(asked, implementations=(*given,), baseline=given[0])


def _file(name: str) -> Path:
    """Return the file of a kernel's module."""
    module = name_of(name).module
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.origin:
        raise WrongRequest(f"{module} has no file that could be watched")
    return Path(spec.origin)
