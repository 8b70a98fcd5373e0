"""Ratios between points that differ in one column, on planted records."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from bench.analyse.across import settings
from bench.analyse.analysed_run import AnalysedRun
from bench.plan.case import Case
from bench.store import journal, plan
from bench.store.record import Record
from tests.make import runs
from tests.make.points import vit_s
from tests.make.records import environment, measured

ONE, TWO = vit_s(threads=1, num_tokens=5), vit_s(threads=2, num_tokens=5)
TIMES = {(ONE, "eager"): 2.0, (TWO, "eager"): 1.0, (ONE, "sdpa"): 1.0, (TWO, "sdpa"): 1.0}


def run(folder: Path, seed_of: dict[object, int], reached: Sequence[object] = (ONE, TWO)) -> AnalysedRun:
    """Return a run in which each process of a reached case takes its time of TIMES, with the seed of its point."""
    records: list[Record] = [
        dataclasses.replace(measured(Case(at, name), process, value_s, rounds=5), seed=seed_of[at])
        for process in range(5)
        for (at, name), value_s in TIMES.items()
    ]
    saved = runs.saved(folder, [each for each in records if each.case.point in reached], environment())
    plan.keep(dataclasses.replace(runs.planned(records), across="threads"), journal.scan(saved))
    return AnalysedRun(saved)


def test_each_implementation_has_its_ratio_to_the_first_value(tmp_path: Path) -> None:
    """Two threads halve eager's time and do nothing for sdpa's."""
    told = settings(run(tmp_path / "run", {ONE: 1, TWO: 1}))
    of = {(each.row["implementation"], each.point.threads): each for each in told}
    assert [*of] == [("eager", 1), ("eager", 2), ("sdpa", 1), ("sdpa", 2)]
    for name, ratio in (("eager", 2.0), ("sdpa", 1.0)):
        found = of[name, 2].ratio
        assert found.low < ratio < found.high < ratio * 1.02
        busy = {**of[name, 2].row, "flagged_share": 0.6}  # most samples, so long calls were slowed more than short ones
        assert dataclasses.replace(of[name, 2], row=busy).is_disturbed is (ratio > 1)
        assert dataclasses.replace(of[name, 2], base=busy).is_disturbed is (ratio > 1)
        assert not of[name, 1].ratio.is_known


def test_points_that_share_no_rounds_have_no_ratio(tmp_path: Path) -> None:
    """Each seed stands for a replicate of its own; an interrupted run hasn't reached all points."""
    assert settings(run(tmp_path / "apart", {ONE: 1, TWO: 2})) == []
    assert settings(run(tmp_path / "half", {ONE: 1, TWO: 1}, [ONE])) == []
