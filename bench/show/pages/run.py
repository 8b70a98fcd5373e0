"""The page of a run: it answers first, and can be asked further."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from bench.analyse.conclusions import changes, choices
from bench.analyse.flags import flags as flags_of
from bench.analyse.flags import legend
from bench.analyse.summary import of_records
from bench.plan.errors import WrongRequest
from bench.plan.grid import machine_columns, without_columns
from bench.plan.sweep import Effort
from bench.show import answer as say
from bench.show.answer import At
from bench.show.blocks import Cell
from bench.show.charts import base
from bench.show.choice_text import words
from bench.show.columns import complete, latency_text, memory_text, of_any, of_page
from bench.show.pages import run_data, shell
from bench.show.pages.profiles import PAGE as PROFILES
from bench.show.pages.run_data import Shown, ordered
from bench.show.rows import Row, is_measured, plain
from bench.show.side_by_side import precision_words
from bench.show.summary import for_programs
from bench.show.text import counted, differences, order, shared, symbols, varying
from bench.store import units
from bench.store.environment import Environment
from bench.store.saved_run import SavedRun, runs_of
from bench.store.table import END, RESULTS

MOST_CASES = 1_500
"""The most cases in a page; of more it has the first points, and says so."""

MOST_CSV_BYTES = 1_000_000
"""The largest packed results.csv that a page carries."""


@dataclass(frozen=True)
class Fact:
    """A fact about the machine or the software."""

    name: str
    value: str


def write(saved: SavedRun) -> Path:
    """Write the page of a run into its folder, and return its file.

    Raises WrongRequest if the run has no rows, or if the file can't be written.
    """
    return shell.write(saved.page, page(saved))


def page(saved: SavedRun) -> str:
    """Return the page of a run, a merged one with each of its machines; raises WrongRequest if it has no rows."""
    machines, without_rows = _machines(saved)
    first = next(iter(machines.values()))
    baseline = first.baseline
    by_machine, ignored = _points(machines)
    every = [at for points in by_machine.values() for at in points]
    shown = _that_fit(by_machine, ignored)
    rows = [row for each in shown for row in each.at.rows]
    names = list(dict.fromkeys(str(row["implementation"]) for row in rows))
    for each in shown:
        complete(each.at.rows, baseline)
    columns = of_page(rows, baseline)
    effort = _effort(first)
    quiet = {name: say.machine(run.whole) for name, run in machines.items()}
    with base.unchecked():
        data = run_data.data(machines, shown, names, baseline, ignored, effort)
    several = len(machines) > 1
    said = {name: say.answer(points, baseline) for name, points in by_machine.items()}
    return shell.render(
        "run.html",
        _title(saved.folder, machines),
        names,
        data,
        answers=_of_each({name: text[0] for name, text in said.items()}, several),
        details=[_of(name, sentence, several) for name, text in said.items() for sentence in text[1:]],
        gains=[_of(name, sentence, several) for name, run in machines.items() for sentence in _gains(run)],
        verdicts=[
            *(
                (not any(at.failed for at in points), _of(name, say.failures(points), several))
                for name, points in by_machine.items()
            ),
            *((is_quiet, _of(name, text, several)) for name, (is_quiet, text) in quiet.items()),
        ],
        letters=legend([flag for row in rows if is_measured(row) for flag in flags_of(row)]),
        shared=shared([each.at.point for each in shown]),
        symbols=symbols([each.at.point for each in shown]),
        points=[_line(each, baseline) for each in shown],
        left_out=" ".join([*without_rows, *_left_out(len(shown), len(every), saved, several)]),
        figures=list(_figures(data["charts"], rows, baseline, effort)),
        columns=columns,
        table=[
            [Cell(each.label), *(of_any(column, row) for column in columns[1:])]
            for each in shown
            for row in ordered(each.at)
        ],
        baseline=baseline,
        places=[
            (name if several else "", list(_facts(run.folder.resolve().name, run.environment, run.table)))
            for name, run in machines.items()
        ],
        command="" if several else _command(first.environment),
        documents={name: shell.document(f"{name}.md", saved.folder) for name in ("method", "terms", "comparing")},
        profiles=PROFILES if (saved.folder / PROFILES).exists() else "",
        csv=_csv(machines),
        processes=counted([number for run in machines.values() for number in _processes(run)], "process", "processes"),
    )


@dataclass(frozen=True)
class Figure:
    """A section with charts: its kind, by which the page's script finds them, its title, and what it shows."""

    kind: str
    title: str
    note: str
    is_wide: bool = False


NOTES = {
    "speedup": "How many times as fast as {baseline}; above 1 is faster. Bands and bars are 95 % intervals. What to "
    "use stands in the table Point by point. A speed-up is paired within rounds, so it is not the quotient of the two "
    "latencies. Drag over the chart to mark some points, click on a mark to see its samples.",
    "latency_s": "Time per call, with 95 % intervals.",
    "memory_bytes": "The most that one call holds at once, beyond its input and weights. A horizontal tick is the peak "
    "that follows from the shapes by a formula.",
    "roofline_share": "How near a call comes to the highest rates that this device has shown. Above 100 % the data fit "
    "into a cache.",
}
"""What is said under the title of a metric's charts; of others it is the metric's meaning."""

OTHERS = (
    Figure("winners", "What to use where", "A cell names what to use and what that can cost at most. The stronger the "
        "colour, the surer; that of a compiled one is paler from the start."),
    Figure("growth-latency", "Growth of latency", "The exponent between two adjacent values: 1 is linear, 2 is "
        "quadratic. If the machine was slow for a while, it shows here too."),
    Figure("growth-memory", "Growth of peak memory", "The exponent between two adjacent values: 1 is linear, 2 is "
        "quadratic."),
    Figure("compile", "What compilation costs", "Time per call if the first compilation is shared by all calls. Right "
        "of a crossing the compiled implementation costs less in all. It uses measured means, whether or not the "
        "difference is shown."),
)  # fmt: skip
"""The sections that aren't of one metric."""


def _figures(
    drawn: Mapping[str, object], rows: Sequence[Row], baseline: str | None, effort: Effort
) -> Iterator[Figure]:
    """Yield the sections with charts, from top to bottom."""
    for each in run_data.quantities_of(rows, baseline):
        meaning = each.metric.meaning.replace("`", "")
        note = each.filled(NOTES.get(each.column, f"{meaning[:1].upper()}{meaning[1:]}."))
        yield Figure(each.name, each.filled(each.axis.title), note, is_wide=each.axis.relative)
    yield from (each for each in OTHERS if each.kind in {*drawn, "winners"})
    bound = units.percent(effort.bound, trim=True)
    goal = f"From a large mark on it is at most {bound}, or one is shown to be the fastest."
    if effort.race:
        goal = (
            f"While there is time, a point is measured on until its bound is at most {bound}, the dashed line, or one "
            "is shown to be the fastest; a large mark says that it is answered."
        )
    what = "The bound of each point's choice, what it can cost at most, after each replicate."
    note = f"{what} {goal} Interruptions of the run are left out."
    yield Figure("course", "How the bound fell", note, is_wide=True)


def _machines(saved: SavedRun) -> tuple[dict[str, SavedRun], list[str]]:
    """Return the runs of the machines by the names that the page gives them, and a sentence for each without rows.

    A machine has the name that its user gave it, or that of its device. Raises WrongRequest if none has rows.
    """
    runs, refused = {}, []
    for name, run in runs_of(saved).items():
        try:
            devices = run.table["device_name"].dropna().unique()
        except WrongRequest as error:
            refused.append(error)
            continue
        given = run.environment.context.get("machine_name") if run.environment else None
        runs[name] = str(given or " and ".join(map(str, devices))), run
    if not runs:
        raise refused[0]
    shown = [name for name, _ in runs.values()]
    named = {f"{name} ({folder})" if shown.count(name) > 1 else name: run for folder, (name, run) in runs.items()}
    return named, [f"A machine is left out: {error}." for error in refused]


def _effort(saved: SavedRun) -> Effort:
    """Return the effort of a run, the usual one if it isn't known."""
    try:
        return saved.effort or Effort()
    except WrongRequest:  # a plan that this suite can't carry out
        return Effort()


def _of(machine: str, text: str, several: bool) -> str:
    """Return a sentence, with the machine of which it is true if the page has several."""
    return f"{machine}: {text}" if several else text


def _of_each(texts: Mapping[str, str], several: bool) -> list[str]:
    """Return the sentences of the machines."""
    return [_of(machine, text, several) for machine, text in texts.items()]


def _points(machines: Mapping[str, SavedRun]) -> tuple[dict[str, list[At]], frozenset[str]]:
    """Return the points of each machine, and the columns that tell machines apart; no name of a point has these."""
    by_machine = {name: say.points_of(run.whole) for name, run in machines.items()}
    if len(by_machine) == 1:
        return by_machine, frozenset()
    ignored = machine_columns([at.point for at in points] for points in by_machine.values())
    different = varying({without_columns(at.point, ignored) for points in by_machine.values() for at in points})
    named = {
        name: [replace(at, label=differences(at.point, different) or "the only point") for at in points]
        for name, points in by_machine.items()
    }
    return named, ignored


def _title(folder: Path, machines: Mapping[str, SavedRun]) -> str:
    """Return the sweep and where it ran; the name of the folder if the sweep isn't known."""
    known = [run.environment for run in machines.values() if run.environment]
    name = next((each.context["sweep"] for each in known if "sweep" in each.context), None)
    return f"Sweep {name} on {' and '.join(machines)}" if name else folder.resolve().name


def _gains(saved: SavedRun) -> list[str]:
    """Return what each other precision brings if the run has several, and the command that exports its choices."""
    words = precision_words(saved.whole, changes(saved.records)) if saved.whole["dtype"].nunique() > 1 else []
    return [*words, *for_programs(choices(of_records(saved.records, saved.baseline or "")), saved.folder)]


def _processes(saved: SavedRun) -> list[int]:
    """Return the number of processes of each case that has a time."""
    measured = saved.table[saved.table["status"] == "ok"]
    return [int(number) for number in measured["processes"].dropna()]


def _that_fit(by_machine: Mapping[str, Sequence[At]], ignored: frozenset[str]) -> list[Shown]:
    """Return the first points whose cases fit into a page, one at least; of several machines, point by point."""
    several = len(by_machine) > 1
    every = [
        Shown(number, at, f"{at.label} ({name})" if several else at.label)
        for number, (name, points) in enumerate(by_machine.items())
        for at in points
    ]
    if several:
        every.sort(key=lambda each: (order(without_columns(each.at.point, ignored)), each.machine))
    kept: list[Shown] = []
    cases = 0
    for each in every:
        cases += len(each.at.rows)
        if kept and cases > MOST_CASES:
            break
        kept.append(each)
    return kept


def _left_out(shown: int, points: int, saved: SavedRun, several: bool) -> list[str]:
    if shown == points:
        return []
    where = f"the {RESULTS} of each machine's folder" if several else RESULTS
    return [
        f"This page shows the first {shown:,} of {points:,} points. The sentences above count all of them. "
        f"All rows are in {where}; python -m bench show {shlex.quote(saved.folder.name)} prints them."
    ]


@dataclass(frozen=True)
class Line:
    """A point in one line: what to use in words, then its speed-up, latency and memory."""

    label: str
    words: str
    speedup: str
    latency: str
    memory: str
    failed: str


def _line(shown: Shown, baseline: str | None) -> Line:
    at = shown.at
    first = at.first
    failed: dict[str, list[str]] = {}
    for row in at.rows:
        if row["status"] != "ok":
            failed.setdefault(str(row["status"]), []).append(str(row["implementation"]))
    return Line(
        shown.label,
        words(at.choice),
        say.speedup_cell(first, baseline),
        latency_text(first) if first else "",
        memory_text(first) if first else "",
        "; ".join(f"{status}: {', '.join(names)}" for status, names in failed.items()),
    )


def _facts(folder: str, environment: Environment | None, table: pd.DataFrame) -> Iterator[Fact]:
    """Yield what is known of the machine and the software."""
    rows = plain(table)
    yield Fact("run", folder)
    for name, column in (("device", "device_name"), ("torch", "torch_version"), ("commit", "commit")):
        yield Fact(name, ", ".join(dict.fromkeys(str(row[column]) for row in rows if row[column])))
    started = sorted(str(row["started_at"]) for row in rows if row["started_at"])
    if started:
        yield Fact("measured", f"{started[0][:16].replace('T', ' ')} to {started[-1][11:16]} UTC")
    if environment is None:
        return
    identity, state = environment.identity, environment.state
    yield Fact("cores", f"{identity.get('cores')} logical, {identity.get('physical_cores')} physical")
    yield Fact("memory", f"{identity.get('memory_gib')} GiB")
    for name in ("system", "python", "blas", "cpu_capability", "cuda", "driver"):
        if identity.get(name):
            yield Fact(name.replace("_", " "), str(identity[name]))
    for name, version in environment.runtimes.items():
        yield Fact(name, version)
    before = state.get("preflight") or {}
    if "others_cores" in before:
        yield Fact("other work before the run", f"{before['others_cores']:.1f} cores")
    if "spread" in before:
        yield Fact("speed before the run", f"varied by {units.percent(before['spread'])}")


def _command(environment: Environment | None) -> str:
    """Return the command that measures the run again, into a new folder; empty if it isn't known."""
    words = environment.context.get("command") if environment else None
    if not isinstance(words, list) or not words:
        return ""
    kept, skip = [], False
    for word in map(str, words[1:]):
        if skip or word == "--run" or word.startswith("--run="):
            skip = word == "--run"
            continue
        kept.append(word)
    return f"python -m pytest {shlex.join(kept)}"


def _csv(machines: Mapping[str, SavedRun]) -> str:
    """Return the packed results of all machines; empty if they are too large for a page."""
    first, *others = machines.values()
    if others:
        text = pd.concat([run.whole for run in machines.values()]).to_csv(index=False, lineterminator=END)
    else:
        text = (first.folder / RESULTS if first.is_folder else first.path).read_bytes().decode()
    packed = shell.packed(text)
    return packed if len(packed) <= MOST_CSV_BYTES else ""
