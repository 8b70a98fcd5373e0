"""A saved run: the contents of a run folder, or of a results file that was taken out of one."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from bench.plan.case import Point
from bench.plan.errors import CannotWrite, refusing
from bench.plan.sweep import Effort, Sweep
from bench.store import environment, files, journal, plan, profile, table
from bench.store.environment import Environment
from bench.store.profile import Profile
from bench.store.record import Record

PLOTS = "plots"
PAGE = "report.html"

LOOK = "look.json"
"""What was seen at the models of a run: for each point what each process reported, nothing derived."""

Seen = Mapping[str, Any]
"""What one process saw: `cores`, `calls`, `others`, `untraced`, `kernels`, `has_whole`, `settings`, `paste`.

`bench.measure.look` writes it.
"""


class SavedRun:
    """The saved parts of a run, by the path of its folder or of its results file; each is read once, when needed.

    `known` are parts by their names that need no reading, because this process has made them.
    More can be written if it `is_folder`. A results file that isn't called results.csv `is_alone`: files beside it
    belong to another run. `folder` has the results; `plots`, `page` and `traces` are in it, and may not exist.
    Every part raises WrongRequest if its file can't be read or is broken.
    """

    def __init__(self, path: str | Path, **known: Any) -> None:
        vars(self).update(known)
        self.path = Path(path)
        self.is_folder = self.path.is_dir()
        self.is_alone = not self.is_folder and self.path.name != table.RESULTS
        self.folder = self.path if self.is_folder else self.path.parent
        self.plots, self.page, self.traces = self.folder / PLOTS, self.folder / PAGE, self.folder / profile.TRACES

    def __str__(self) -> str:
        return str(self.path)

    @cached_property
    def whole(self) -> pd.DataFrame:
        """The results with the rows of the control, nothing of which commands a terminal; WrongRequest without any.

        They are those of a results file; `bench.analyse.analysed_run` has those of a journal.
        """
        return table.visible(table.load(self.path))

    @cached_property
    def table(self) -> pd.DataFrame:
        """The results, one row per case of an implementation; raises WrongRequest if there are none."""
        return table.without_control(self.whole)

    @property
    def baseline(self) -> str | None:
        """The implementation that speed-ups refer to, None if the table doesn't name exactly one."""
        return table.baseline_of(self.table)

    @cached_property
    def environment(self) -> Environment | None:
        """The environment of the run, None if it isn't known."""
        return None if self.is_alone else environment.load(self.folder)

    @cached_property
    def planned(self) -> Sweep | None:
        """The plan of the run, None if it isn't known."""
        return None if self.is_alone else plan.of(self.contents)

    @property
    def effort(self) -> Effort | None:
        """The effort that was asked for, None if it isn't known."""
        return self.planned.effort if self.planned else None

    @property
    def records(self) -> list[Record]:
        """The journal's records that count, in the order in which they were measured; none without a journal."""
        return self.contents.records

    @property
    def notices(self) -> list[str]:
        """One line for each fault of the journal."""
        return self.contents.notices()

    @cached_property
    def profiles(self) -> list[Profile]:
        """The profiles of the run's cases."""
        return [] if self.is_alone else profile.load(self.folder)

    @cached_property
    def contents(self) -> journal.Contents:
        """The lines of the journal, none if there is no journal."""
        return journal.Contents(self.path) if self.is_alone else journal.scan(self.folder)


def save_looks(looks: Mapping[Point, Sequence[Seen]], run: Path) -> None:
    """Write look.json of a run, in a folder that git leaves out if it is new; raises CannotWrite if that fails."""
    is_new = not run.is_dir() or not any(run.iterdir())
    content = [{"point": dataclasses.asdict(point), "processes": [*seen]} for point, seen in looks.items()]
    with refusing(f"{run / LOOK} can't be written", CannotWrite):
        files.replace_json(run / LOOK, {"looks": content})
    if is_new:
        files.hide(run)
