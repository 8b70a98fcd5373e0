"""A saved run with what its records say together."""

from pathlib import Path

from bench.analyse.analysed_run import AnalysedRun
from bench.store.table import of_rows
from tests.make.points import vit_s
from tests.make.records import timed
from tests.make.runs import saved


def test_what_records_say_together_is_computed_once(tmp_path: Path) -> None:
    """The rows of a run are those of its records."""
    records = timed([vit_s(), vit_s(num_tokens=50)], {"sdpa": 1.0, "eager": 2.0}, processes=3)
    run = AnalysedRun(saved(tmp_path / "run", records))
    assert of_rows(run.summary.all_rows()).equals(run.whole)
    assert run.summary is run.summary
