"""A saved run with what its records say together."""

from pathlib import Path

from bench.analyse.analysed_run import AnalysedRun
from bench.store.table import of_rows
from tests.make.records import in_precision
from tests.make.runs import saved


def test_what_records_say_together_is_computed_once(tmp_path: Path) -> None:
    """The rows of a run are those of its records."""
    names, dtypes = ("sdpa", "eager"), ("float32", "bfloat16")
    records = [in_precision(name, dtype, n) for dtype in dtypes for name in names for n in range(3)]
    run = AnalysedRun(saved(tmp_path / "run", records))
    assert of_rows(run.summary.all_rows()).equals(run.whole)
    assert run.summary is run.summary
