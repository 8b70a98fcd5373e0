"""Say in plain words whether this machine is ready to measure."""

import argparse

from rich.table import Table
from rich.text import Text

from bench.machine import doctor
from bench.plan.statuses import BAD, FINE
from bench.show.blocks import BAD as BAD_TONE
from bench.show.blocks import GOOD, WARNING
from bench.show.terminal.console import console
from bench.show.text import counted

STYLES = {doctor.READY: GOOD, doctor.MIND: WARNING, doctor.BAD: BAD_TONE}


def run(arguments: argparse.Namespace) -> int:
    """Print each finding with what to do about it; BAD if nothing can be measured here."""
    del arguments
    findings = doctor.findings()
    bad, mind = ([each for each in findings if each.state == state] for state in (doctor.BAD, doctor.MIND))
    console().print(Text(_verdict(len(bad), len(mind)), "bold"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for each in findings:
        words = Text(each.words)
        if each.advice:
            words.append(f"\n→ {each.advice}", WARNING)
        grid.add_row(Text(each.state, STYLES[each.state]), Text(each.name), words)
    console().print(grid)
    return BAD if bad else FINE


def _verdict(bad: int, mind: int) -> str:
    if bad:
        return f"This machine is not ready: {counted(bad, 'thing')} must be mended first."
    if mind:
        return f"This machine can measure. {counted(mind, 'thing')} to mind:"
    return "This machine is ready."
