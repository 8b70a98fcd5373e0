"""`pytest bench`: it measures a sweep, then runs a test for each point, which reads its rows, and prints the tables.

`bench/conftest.py` hands the hooks and fixtures to pytest. Slow imports come after the first printed line.
"""

import io
import os
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import pytest

from bench.engine import admission
from bench.engine.pool import Pool
from bench.harness import options
from bench.harness.progress import Progress, put, say
from bench.machine.signals import Handlers, on_end, restore
from bench.plan.case import Point
from bench.plan.errors import CannotWrite, WrongRequest, refusing
from bench.plan.invocation import suite
from bench.plan.sweep import Sweep
from bench.show.text import counted

if TYPE_CHECKING:
    from rich.console import Console

    from bench.analyse.analysed_run import AnalysedRun
    from bench.engine.run import Run
    from bench.show.failures import Reason

VERBOSITY = -2
"""pytest's verbosity unless one is asked for: no header, no file before each line, no count of tests; -v has them."""

FAILED = "points failed"
"""How pytest counts a point that fails by `--fail-on`: it has a reason in place of a traceback."""

WHY = "why"
"""The property of a test's report that holds why its point failed."""

CANNOT_GO_ON = 3
"""The exit status of a run that had to stop, such as on a full disk: pytest's own for internal errors."""

READ_BY = ("benchmark_json", "benchmark_save", "benchmark_autosave")
"""Options of pytest-benchmark for whose files the tests of a run that had to stop run too; they take a while."""

BEFORE_OURS = "_anonymous"
"""The group of pytest's options after which ours come first in `--help`."""


@dataclass
class State:
    """What was asked for, and what became of it: a run that was interrupted or had to stop has a status."""

    sweep: Sweep
    points: tuple[Point, ...] = ()
    handlers: Handlers = field(default_factory=dict)
    progress: Progress | None = None
    run: "Run | None" = None
    status: int | None = None


STATE = pytest.StashKey[State]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the sweep's options, in groups that come first in the help."""
    after = BEFORE_OURS

    def group(title: str) -> options.AddOption:
        nonlocal after
        name, before = f"attention-bench: {title}", after
        after = name
        examples = f"{options.EXAMPLES}\n" if before == BEFORE_OURS else ""
        return parser.getgroup(name, f"{examples}{name}", after=before).addoption

    options.add(group)


def pytest_configure(config: pytest.Config) -> None:
    """Read the sweep, so that a wrong request ends before anything is collected."""
    from bench.harness import pytest_bridge

    try:
        with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():  # it may say what it does
            sweep = options.sweep(config.option)
        config.stash[STATE] = State(sweep)
    except WrongRequest as error:
        raise pytest.UsageError(*str(error).splitlines()) from None
    pytest_bridge.quiet_unless_asked(config)
    config.addinivalue_line("filterwarnings", "ignore:Benchmark fixture was not used")  # as when Ctrl-C comes first
    if config.option.verbose <= 0 and not config.option.collectonly:
        config.option.verbose = VERBOSITY


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of every point."""
    if "point" in metafunc.fixturenames:
        points = metafunc.config.stash[STATE].sweep.points
        metafunc.parametrize("point", points, ids=[point.name for point in points])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, Any, Any]:
    """Measure the points before their tests run; those of points that are not measured don't. Ctrl-C has a message."""
    config, state = session.config, session.config.stash[STATE]
    state.points = tuple(point for item in session.items if (point := _point(item)))
    runs_none = any(getattr(config.option, name, False) for name in ("collectonly", "setuponly", "benchmark_skip"))
    if runs_none or not state.points:
        return (yield)
    state.handlers = on_end(_raise_interrupt)
    try:
        measured = {None, *_measure(config, state)}
        if state.status is not None and not any(getattr(config.option, name, None) for name in READ_BY):
            measured = {None}
        session.items[:] = [item for item in session.items if _point(item) in measured]
        return (yield)
    except session.Interrupted:  # pytest's own, as -x raises it
        raise
    except KeyboardInterrupt:
        _interrupt(config)
        return True


def _point(item: pytest.Item) -> Point | None:
    """Return the point of a test, None if it is no test of ours."""
    return item.callspec.params.get("point") if hasattr(item, "callspec") else None


def _measure(config: pytest.Config, state: State) -> list[Point]:
    """Measure the points, and return those that are measured: without the others if it had to stop, which it says.

    It stops after Ctrl-C, if nothing can be written, and with -x and --maxfail when so many points failed. Raises
    UsageError if the run can't be opened.
    """
    measured, failed = list[Point](), 0
    try:
        run, progress = _open(config, state)
        for point in run.measured(state.points, progress.told):
            measured.append(point)
            if not run.records.entries(point):  # its base waits
                continue
            progress.told(point)
            failed += bool(config.option.maxfail and reasons(config, run, point))
            if failed and failed == config.option.maxfail:
                break
    except KeyboardInterrupt:
        _interrupt(config)
    except CannotWrite as error:
        _stop(config, state, error)
    finally:
        if state.progress:  # before pytest writes anything
            state.progress.close()
    return measured


def _stop(config: pytest.Config, state: State, error: CannotWrite) -> None:
    """Say why a run has to stop, and how to go on; one that was never open begins anew with the same command."""
    if state.progress:
        state.progress.close()
    console, state.status = _console(config), CANNOT_GO_ON
    if state.run is None:
        say(console, f"{error}. Mend that, or use another folder.")
        return
    say(console, f"{error}. Mend that, then go on:")
    put(console, _command(state.run))


def reasons(config: pytest.Config, run: "Run", point: Point) -> "list[Reason]":
    """Return why a point fails by `--fail-on`."""
    from bench.show.failures import failing

    lacks_device = bool(admission.missing_devices([point], run.environment.identity["gpus"]))
    fail_on, baseline = options.fail_on(config.option), run.sweep.baseline
    return failing(run.records.rows(point), fail_on, lacks_device=lacks_device, baseline=baseline)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, Any, Any]:
    """Give a run that was interrupted, or had to stop, its exit status."""
    result = None
    try:
        result = yield
    except KeyboardInterrupt:
        _interrupt(session.config)
    if (status := session.config.stash[STATE].status) is not None:
        session.exitstatus = status
    return result


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the workers, however the session ended."""
    state = config.stash.get(STATE, None)
    if state and state.run:
        state.run.close()
    if state and state.status != pytest.ExitCode.INTERRUPTED:
        restore(state.handlers)


@pytest.fixture
def run(pytestconfig: pytest.Config) -> "Run | None":
    """Return the run that is being filled."""
    return pytestconfig.stash[STATE].run


def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> tuple[str, str, str] | None:
    """Print no letter for a point: it has its line."""
    if report.when != "call" or "::test_sweep[" not in report.nodeid or config.option.verbose >= 0:
        return None
    return FAILED if _why(report) else report.outcome, "", ""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table and the failures with their reasons, draw the pictures, write the page, and print the paths."""
    state = config.stash[STATE]
    run = state.run
    if run is None or not run.records.contents.entries or state.status is not None:
        return
    from bench.show import summary
    from bench.show.terminal.console import PLAIN_WIDTH, rendered

    saved = run.run_folder.saved
    width = min(shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns, summary.WIDEST)
    end = summary.blocks(saved.whole, run.sweep.baseline, run.sweep)
    terminalreporter.write(rendered(end, width=width, colour=terminalreporter.hasmarkup))
    for warning in run.late_warnings():
        terminalreporter.write_line(f"warning: {warning}", yellow=True)
    for line in summary.go_on(_command(run), run.sweep.effort, run.summary, state.points):
        terminalreporter.write_line(line)
    terminalreporter.flush()  # the answer is here before its pictures and its page
    is_drawn = not run.records.has_new and saved.page.exists() and not saved.traces.exists()
    page = saved.page if is_drawn else _drawn(saved, terminalreporter)
    for line in summary.where(run.folder, page, saved.choices):
        terminalreporter.write_line(line)
    _print_failures(terminalreporter, len(state.points), _console(config))


def _drawn(saved: "AnalysedRun", terminalreporter: pytest.TerminalReporter) -> Path | None:
    """Write the page of a run, which is returned, and draw its pictures.

    A line says what could not be made, why, and how to make it later.
    """
    again, page = shlex.quote(str(saved.folder)), None
    for what, command, make in MADE_AT_END:
        try:
            page = make(saved) or page
        except Exception as error:  # whatever a library of charts raises
            kind = "" if isinstance(error, WrongRequest) else f"{type(error).__name__}: "
            why = f"{kind}{str(error).strip()}".partition("\n")[0].removesuffix(": ")
            terminalreporter.write_line(f"No {what}: {why}. To make it later: {suite()} {command} {again}")
    return page


def _page(saved: "AnalysedRun") -> Path:
    """Write the page of a run."""
    from bench.show.pages import run as page

    return page.write(saved)


def _pictures(saved: "AnalysedRun", **material: Any) -> None:
    """Draw the pictures of some material of a run."""
    from bench.show.charts import catalogue

    with refusing(f"{saved.plots} can't be written"):
        catalogue.draw(saved.plots, **material)


MADE_AT_END = (
    ("page", "report", _page),
    ("pictures", "plot", lambda saved: _pictures(saved, results=saved.table)),
    (
        "pictures of profiles",
        "plot",
        lambda saved: _pictures(saved, profiles=saved.profiles) if saved.traces.exists() else None,
    ),
)
"""What is made of a run at its end, the command that makes it later, and what makes it."""


def _print_failures(terminalreporter: pytest.TerminalReporter, points: int, console: "Console") -> None:
    """Say why the run ends with status 1, each reason once."""
    reasons = Counter(map(_why, terminalreporter.stats.get(FAILED, [])))
    if not reasons:
        return
    say(console, f"failed, so the exit status is 1: {sum(reasons.values())} of {counted(points, 'point')}")
    for reason, count in reasons.items():
        say(console, f"  {reason}" + (f" (at {count} points)" if count > 1 else ""))


def _why(report: pytest.TestReport) -> str:
    return next((str(value) for name, value in report.user_properties if name == WHY), "")


def _open(config: pytest.Config, state: State) -> "tuple[Run, Progress]":
    """Say what is about to be measured, and start the workers; raises UsageError if that fails."""
    sweep, option = state.sweep, config.option
    name = f"{sweep.name}-{sweep.shard.number}of{sweep.shard.count}" if sweep.shard else sweep.name
    folder = options.run_folder(option, name)
    progress = state.progress = Progress(sweep, state.points, _console(config))
    progress.opened(folder)
    pool = Pool.of(sweep)
    if not option.run or not folder.exists():  # the servers import torch while this process imports the engine
        pool.begin(sweep.points[0])
    from bench.engine.run import Run

    run = Run(
        sweep,
        folder,
        pools=[pool],
        extend=option.extend,
        retry_failed=option.retry_failed,
        frontier=not option.no_frontier,
    )
    try:
        run.__enter__()
    except CannotWrite:
        raise
    except WrongRequest as error:
        raise pytest.UsageError(*str(error).splitlines()) from None
    state.run = run
    progress.follow(run)
    return run, progress


def _raise_interrupt(*_: object) -> None:
    """Raise KeyboardInterrupt at the first Ctrl-C, and end at once at the second; workers end with their parent."""
    on_end(lambda *_: os._exit(pytest.ExitCode.INTERRUPTED))
    raise KeyboardInterrupt


def _interrupt(config: pytest.Config) -> None:
    """End the workers after Ctrl-C, and say what is kept and how to go on."""
    state = config.stash[STATE]
    state.status = pytest.ExitCode.INTERRUPTED
    if state.run:  # first, because the terminal may be gone
        state.run.close()
    if state.progress:
        state.progress.close()
    console, run = _console(config), state.run
    put(console, "")
    if run is None:
        say(console, "Interrupted before anything was measured.")
        return
    points, cases = run.sweep.points, run.measured_cases()
    say(
        console,
        f"Interrupted. {len(run.finished())} of {len(points)} points are finished, "
        f"{cases} of {len(points) * len(run.sweep.implementations)} cases have results; they are kept in {run.folder}.",
    )
    put(console, f"Go on:  {_command(run)}")
    put(console, f"Look:   {suite()} show {shlex.quote(str(run.folder))}")


def _write_nowhere() -> None:
    """Lose what is written from now on to the standard output and errors that nobody reads."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _command(run: "Run") -> str:
    """Return the command that goes on with a run."""
    return f"{suite()} run --run {shlex.quote(str(run.folder))}"


def _console(config: pytest.Config) -> "Console":
    """Return pytest's terminal, or the log that it writes."""
    from bench.show.terminal.console import THEME, Safe  # slow to import

    reporter = config.pluginmanager.getplugin("terminalreporter")
    capture = config.pluginmanager.getplugin("capturemanager")

    class Written(io.TextIOBase):
        def write(self, text: str) -> int:
            with capture.global_and_fixture_disabled():
                try:
                    reporter.write(text, flush=True)
                except OSError as error:  # nobody reads any more, as behind a pipe to head or in a closed terminal
                    _write_nowhere()
                    raise KeyboardInterrupt from error
            return len(text)

    size = shutil.get_terminal_size()
    return Safe(
        file=cast("IO[str]", Written()),
        force_terminal=bool(reporter.isatty),
        width=size.columns,
        height=size.lines,
        highlight=False,
        theme=THEME,
    )
