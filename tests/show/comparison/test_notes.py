"""Notes about the two runs of a comparison: which kinds are said of what, and what they name."""

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from bench.plan.sweep import Effort
from bench.show.comparison.notes import WORDS, about, unlike
from bench.stats.between_runs import BetweenRuns
from bench.store.environment import Environment
from tests.make.comparisons import compare
from tests.make.records import case
from tests.make.rows import at, baseline, cases, failed, row, table

TABLE = table(baseline(), at(case("sdpa"), 1.0))


def run(
    of: pd.DataFrame = TABLE,
    state: dict[str, Any] | None = None,
    sweep: str = "quick",
    baseline: str | None = "eager",
    effort: Effort | None = None,
) -> Any:
    """Return a saved run of a sweep, of which these facts are known."""
    environment = Environment({}, state or {}, {"sweep": sweep})
    again = SimpleNamespace(effort=effort)
    return SimpleNamespace(table=of, baseline=baseline, environment=environment, again=again)


def said(base: Any, new: Any, rebased_to: str = "", sd: float = 0.0) -> dict[str, str]:
    """Return all notes about two runs by their kinds; `sd` is the scatter between them."""
    of = about(base, new, rebased_to, compare(base.table, new.table), BetweenRuns(sd, 20.0))
    return {each.kind: str(each) for each in [*unlike(base, new), *of]}


def of_names(speed: float, *names: str) -> Any:
    """Return a run of three rows of each implementation, whose speed-ups are these."""
    return run(table(baseline(), *(at(each, speed) for name in names for each in cases(3, name))))


PROCESSES = (row(case("sdpa"), [0.0, 0.1], commit="abc"), row(case("eager"), [0.0] * 3, commit="abc+"))
ASKED = (Effort(processes=3, budget_s=4, timeout_s=300), Effort(processes=10, budget_s=4, timeout_s=60, bound=0.2))
STATES = [
    {"load_1min": load, "preflight": {"spread": spread, "others_cores": others}, "gpu": {"clock_hz": clock}}
    for load, spread, others, clock in ((0.4, 0.28, 1.04, 2e9), (3.9, 0.05, 0.0, 1e9))
]
THREE = ("sdpa", "mha", "flex")


@pytest.mark.parametrize(
    ("sides", "options", "kind", "named"),
    [
        ([run(table(*PROCESSES)), run(table(failed(case("sdpa"))))], {}, "origins",
            "commit abc, abc+ in 2 to 3 processes; NEW is commit unknown"),
        ([run(), run()], {"rebased_to": "sdpa"}, "rebased", "sdpa in place of eager; "),
        ([run(baseline=None)] * 2, {"rebased_to": "sdpa"}, "rebased", "sdpa in place of that of the runs; "),
        ([run(baseline=None), run()], {}, "unknown baseline", "of BASE is"),
        ([run(baseline=None)] * 2, {}, "unknown baseline", "of BASE and NEW is"),
        ([of_names(speed, *THREE) for speed in (1.0, 0.8)], {}, "shift",
            "9 of 9 judged rows, of 3 implementations, became slower together: eager, which they refer to, may be what "
            "became faster; --baseline "),
        ([of_names(speed, *THREE) for speed in (0.8, 1.0)], {}, "shift", "what became slower"),
        ([run(state=state) for state in STATES], {}, "state", "its load was 0.4 before BASE and 3.9 before NEW; its "
            "speed varied by 28% before BASE and 5% before NEW; other processes used 1.0 cores"),
        ([run(state=state) for state in STATES], {}, "state", "; clock hz was 2"),
        ([run(effort=ASKED[0]), run(sweep="full", effort=ASKED[1])], {}, "asked",
            ": sweep quick against full; processes 3 against 10; bound 2.0% against 20.0%"),
        ([of_names(1.0, "sdpa", name) for name in ("mha", "flex")], {}, "rounds", "(mha in BASE alone; flex in NEW "),
        ([of_names(1.0, *names) for names in (["sdpa"], ["sdpa", "flex"])], {}, "rounds", "(flex in NEW alone)"),
        ([run(), run(TABLE.assign(latency_s=1.5 * TABLE["latency_s"]))], {}, "speed", "1.50 times as long"),
        ([run(), run()], {"sd": 0.015}, "scatter", "1.5%"),
        ([run(), run()], {}, "raw", "1.00 times as long"),
    ],
)  # fmt: skip
def test_each_note_is_said_where_it_is_true(sides: list[Any], options: dict[str, Any], kind: str, named: str) -> None:
    """Beside it, two runs have a note on their origins, and one on raw times unless the speed is another."""
    notes = said(*sides, **options)
    assert named in notes[kind]
    assert {*notes} <= {"origins", "raw", kind}


def test_nothing_is_said_of_what_one_side_does_not_know() -> None:
    """Settings that an older run lacks, and a scatter that isn't known, are no difference."""
    assert "asked" not in said(run(effort=ASKED[0]), run())
    older = run(sweep="full")
    older.environment = None
    assert {*said(run(), older, sd=float("nan"))} == {"origins", "raw"}


def test_every_kind_of_note_is_one_line() -> None:
    """A note never breaks the list in which it stands."""
    assert not any("\n" in words for words in WORDS.values())
