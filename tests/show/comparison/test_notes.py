"""Notes about the two runs of a comparison: which are said of what."""

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from bench.plan.sweep import Effort
from bench.show.comparison.notes import about
from bench.store.environment import Environment
from tests.make.comparisons import compare
from tests.make.records import case
from tests.make.rows import at, baseline, failed, row, table

TABLE = table(baseline(), at(case("sdpa"), 1.0))


def run(of: pd.DataFrame = TABLE, state: dict[str, Any] | None = None, effort: Effort | None = None) -> Any:
    """Return a saved run of which these facts are known."""
    environment = Environment({}, state or {}, {"sweep": "quick"})
    return SimpleNamespace(table=of, environment=environment, effort=effort)


PROCESSES = (row(case("sdpa"), [0.0, 0.1], commit="abc"), row(case("eager"), [0.0] * 3, commit="abc+"))
ASKED = (Effort(processes=3, budget_s=4, timeout_s=300), Effort(processes=10, budget_s=4, timeout_s=300))


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        ([run(table(*PROCESSES)), run(table(failed(case("sdpa"))))],
            "commit abc, abc+ in 2 to 3 processes; NEW is commit unknown"),
        ([run(state={"load_1min": load}) for load in (0.4, 3.9)], "load_1min 0.4 against 3.9"),
        ([run(effort=each) for each in ASKED], "differently: processes 3 against 10"),
        ([run(), run(TABLE.assign(latency_s=1.5 * TABLE["latency_s"]))], "warning: the median row takes 1.50 times"),
        ([run(), run()], "the median row takes 1.00 times as long"),
    ],
)  # fmt: skip
def test_each_note_is_said_where_it_is_true(sides: list[Any], words: str) -> None:
    """Beside it, two runs have a note on their origins, and one on raw times."""
    base, new = sides
    notes = [*about(base, new, compare(base.table, new.table))]
    assert any(words in note for note in notes)
    assert len(notes) <= 3
