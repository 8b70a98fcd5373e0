"""Made-up comparisons, for tests of their output."""

import pandas as pd

from bench.analyse.change import Change
from bench.analyse.comparison import compared
from bench.plan.verdicts import VERDICTS
from tests.make.records import case
from tests.make.rows import at, baseline, failed, row, table

NOISY = (-0.03, 0.0, 0.03)


def every_verdict() -> list[Change]:
    """Return changes that hold each verdict once, worst first; `tokens` is in each implementation."""
    return compared(*tables_of_every_verdict())


def tables_of_every_verdict() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return two tables whose rows have each verdict once."""
    ok = {name: case(f"tokens_{name}") for name in VERDICTS}
    base = table(
        {**baseline(), "implementation": "tokens_baseline"},
        at(ok["equivalent"], 1.0),
        at(ok["faster"], 1.0),
        failed(ok["fixed"]),
        failed(ok["not measured"]),
        row(ok["open"], NOISY),
        at(ok["missing"], 1.0),
        at(ok["newly failing"], 1.0),
        at(ok["slower"], 1.0),
    )
    new = table(
        {**baseline(), "implementation": "tokens_baseline"},
        at(ok["equivalent"], 1.0),
        at(ok["faster"], 1.2),
        at(ok["fixed"], 1.0),
        failed(ok["not measured"]),
        row(ok["open"], NOISY),
        at(ok["new"], 1.0),
        failed(ok["newly failing"]),
        at(ok["slower"], 0.8),
    )
    return base.assign(baseline="tokens_baseline"), new.assign(baseline="tokens_baseline")
