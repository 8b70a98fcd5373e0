"""The sweep as a pytest suite: options, one test per point, a live line each, and the tables at the end."""

import shutil

import pytest

from bench import options, pytest_bridge
from bench.engine.run import Run
from bench.plan.errors import WrongRequest
from bench.plan.sweep import Sweep
from bench.progress import Progress
from bench.show import plots, tables
from bench.show.closing import closing
from bench.show.console import PLAIN_WIDTH, rendered

SWEEP = pytest.StashKey[Sweep]()
RUN = pytest.StashKey[Run]()
PROGRESS = pytest.StashKey[Progress]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the sweep's options."""
    options.add(parser.getgroup("attention-bench").addoption)


def pytest_configure(config: pytest.Config) -> None:
    """Read the sweep, so that a wrong request ends before anything is collected."""
    try:
        config.stash[SWEEP] = options.sweep(config.option)
    except WrongRequest as error:
        raise pytest.UsageError(str(error)) from None
    pytest_bridge.quiet_unless_asked(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of every point."""
    if "point" in metafunc.fixturenames:
        points = metafunc.config.stash[SWEEP].points
        metafunc.parametrize("point", points, ids=[point.name for point in points])


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Open the run before the first test, so that what can't be met is still a wrong request."""
    config = session.config
    points = [item for item in session.items if "point" in getattr(item, "fixturenames", ())]
    if config.option.collectonly or not points:
        return
    sweep = config.stash[SWEEP]
    run = Run(sweep, options.run_folder(config.option, config.rootpath, sweep))
    colour = bool(config.pluginmanager.getplugin("terminalreporter").isatty)
    progress = Progress(sweep, len(points), lambda line: _say(config, line), colour=colour)
    progress.opened(run.folder)
    try:
        config.stash[RUN] = run.__enter__()
    except WrongRequest as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[PROGRESS] = progress
    progress.started()
    for warning in run.warnings:
        _say(config, f"warning: {warning}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the workers, however the session ended."""
    if RUN in config.stash:
        config.stash[RUN].close()


@pytest.fixture
def run(pytestconfig: pytest.Config) -> Run:
    """Return the run that is being filled."""
    return pytestconfig.stash[RUN]


@pytest.fixture
def progress(pytestconfig: pytest.Config) -> Progress:
    """Return who tells the user of each point."""
    return pytestconfig.stash[PROGRESS]


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Print no dot for a point that went well: it has its line."""
    if report.when == "call" and report.passed and "::test_sweep[" in report.nodeid:
        return "passed", "", ""
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Draw the pictures, and print the table, what failed and why, and where everything is."""
    run = config.stash.get(RUN, None)
    if run is None or not run.has_results:
        return
    table = run.results()
    pictures = plots.draw(table, run.folder / "plots")
    terminalreporter.section("attention-bench")
    width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns
    for part in (tables.results(table, run.sweep.baseline, run.sweep.effort.target), tables.failures(table)):
        terminalreporter.write(rendered(part, width=width, colour=bool(terminalreporter.isatty)))
    for line in closing(table, run.folder, pictures):
        terminalreporter.write_line(line)


def _say(config: pytest.Config, line: str) -> None:
    """Print a line while tests run, past pytest's capture."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        reporter.ensure_newline()
        reporter.write_line(line)
