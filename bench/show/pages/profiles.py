"""The page of a run's profiles: where the time of a call goes, as a bar and as tables of each case."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from bench.analyse import profile as analyse
from bench.plan.errors import WrongRequest
from bench.plan.invocation import suite
from bench.show import palette
from bench.show import profile as show
from bench.show.blocks import WARNING, Block, Column, Lines, Table, definitions
from bench.show.charts.stages import Bar, bars, by_point
from bench.show.pages import shell
from bench.show.text import parts
from bench.store import units
from bench.store.profile import Profile

PAGE = "profile.html"
"""The name of the page in a run's folder."""

MOST_ROWS = 60
"""The largest number of rows in a table."""


@dataclass(frozen=True)
class CaseView:
    """What the page shows of a case: a bar of its time, and what a terminal shows of it."""

    profile: Profile
    bar: Bar
    blocks: Sequence[Block]

    @property
    def colour(self) -> str:
        """The colour of the implementation."""
        return palette.style(self.profile.case.implementation).colour

    @property
    def is_distorted(self) -> bool:
        """Whether times of the profile can't be trusted."""
        return bool(analyse.distortion(self.profile))

    @property
    def core_words(self) -> str:
        """The share of the N² stages in the time of all stages, or of attention cores, in words; empty without."""
        quadratic_s = sum(stage.time_s for stage in self.profile.stages if stage.name in palette.QUADRATIC)
        if quadratic_s:
            return f"N² stages {units.percent(quadratic_s / analyse.stage_sum_s(self.profile))}"
        cores = analyse.core_share(self.profile)
        return f"attention cores {units.percent(cores)}" if self.profile.stages else ""


def write(profiles: Sequence[Profile], run: Path, table: pd.DataFrame, warning: str = "") -> Path:
    """Write the page of a run's profiles into its folder, and return its file.

    `table` has the results of the run; `warning` says that identical code differs too much in it, empty if it doesn't.
    Raises WrongRequest if there are no profiles, or if the file can't be written.
    """
    if not profiles:
        raise WrongRequest(f"{run} has no profiles; {suite()} profile {run} makes them")
    return shell.write(run / PAGE, page(profiles, run.resolve().name, table, warning))


def page(profiles: Sequence[Profile], title: str, table: pd.DataFrame, warning: str = "") -> str:
    """Return the page of some profiles, under a title; it begins with `warning`, if that isn't empty."""
    return shell.render(
        "profiles.html",
        f"Profiles of {title}",
        head=[Lines([f"In this run {warning}."] if warning else [], WARNING), _facts(profiles)],
        filters={"time": units.seconds, "short": palette.short_name},
        points=_points(profiles, table),
        residual_colour=palette.RESIDUAL_COLOUR,
    )


def _points(profiles: Sequence[Profile], table: pd.DataFrame) -> dict[str, list[CaseView]]:
    """Return the cases of each point, the fastest first."""
    return {
        " · ".join(parts(point)): [
            _case_view(profile, table) for profile in sorted(members, key=lambda profile: profile.timed_s)
        ]
        for point, members in by_point(profiles).items()
    }


def _case_view(profile: Profile, table: pd.DataFrame) -> CaseView:
    _, *blocks = show.blocks(profile, show.row_of(table, profile.case), MOST_ROWS)  # the first names the case
    return CaseView(profile, bars([profile])[0], [*map(_of_page, blocks)])


def _of_page(block: Block) -> Block:
    """Return a block; a table has its columns that aren't empty, which fold long names."""
    if not isinstance(block, Table):
        return block
    columns = [column for column in block.columns if any(column.text(row) for row in block.rows)]
    return replace(block, columns=[*map(_folding, columns)])


def _folding(column: Column) -> Column:
    whole = column.more or column.text

    def rest(row: Any) -> str:
        return whole(row) if palette.short_name(whole(row)) != whole(row) else ""

    return replace(column, text=lambda row: palette.short_name(whole(row)), more=rest)


def _facts(profiles: Sequence[Profile]) -> Table:
    """Return the origins of the profiles, each value once."""
    origins = [profile.origin for profile in profiles]
    facts = {
        "device": [origin.device_name for origin in origins],
        "torch": [origin.torch_version for origin in origins],
        "commit": [origin.commit for origin in origins],
        "environment": [origin.env_id for origin in origins],
        "profiled": [origin.started_at.partition("T")[0] for origin in origins],
    }
    return definitions({name: ", ".join(filter(None, dict.fromkeys(of))) for name, of in facts.items() if any(of)})
