"""Profile cases of a run, to see why they are fast."""

import argparse

from bench.analyse.rows import plain
from bench.commands import put, say
from bench.engine.admission import check_devices
from bench.plan.errors import WrongRequest
from bench.plan.statuses import BAD, FINE
from bench.plan.sweep import Sweep
from bench.profiling import traces
from bench.show import profile as show
from bench.show.charts import catalogue


def run(arguments: argparse.Namespace) -> int:
    """Profile the cases one after the other and print each, then draw all profiles and write the page of the run.

    BAD if a case of the run could not be profiled; a graph that is there for its stages alone may fail. Raises
    WrongRequest if this machine has the device of none.
    """
    if arguments.top < 1:
        raise WrongRequest(f"--top {arguments.top} must be at least 1")
    saved = arguments.run
    table, rows = saved.table, plain(saved.table)
    if not saved.is_folder:
        raise WrongRequest(f"{saved} is a file, but profile needs the run folder to write traces/")
    cases = traces.chosen(table, arguments.case, saved.baseline or "")
    points, names = (
        tuple(dict.fromkeys(each)) for each in zip(*((at.point, at.implementation) for at in cases), strict=True)
    )
    check_devices(Sweep("profile", points, names))
    status = FINE
    for case, made in zip(cases, traces.write(cases, saved.folder), strict=True):
        row = show.row_of(rows, case)
        if isinstance(made, str):
            say(f"{case.name}: {made}")
            status = status if row is None else BAD
        else:
            say(f"{case.name}: {traces.trace_of(case, saved.folder)}")
            put(show.blocks(made, row, arguments.top))
        say("")
    files = catalogue.draw(saved.plots, profiles=saved.profiles)
    if saved.profiles:
        from bench.show.pages import run as page  # slow to import

        files.append(page.write(saved))
    say(*map(str, files))
    return status
