"""The page of one run, which tests read as a file and in a browser."""

import pytest

from bench.analyse.analysed_run import AnalysedRun
from bench.show.pages.run import write
from bench.store import profile as store
from tests.make import runs
from tests.make.profiles import graph, profile


@pytest.fixture(scope="session")
def wide(tmp_path_factory: pytest.TempPathFactory) -> AnalysedRun:
    """Return a run of `quick` with its page and with profiles, one of them with a long name."""
    run = runs.quick(tmp_path_factory.mktemp("quick") / "run")
    (run / store.TRACES).mkdir()
    for each in (graph(mode="train"), profile("eager"), profile("mine:" + "kernel" * 30)):
        store.save(each, run)
    saved = AnalysedRun(run)
    write(saved)
    return saved
