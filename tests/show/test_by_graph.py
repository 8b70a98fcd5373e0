"""What is said of rows whose core got into the graph of a module."""

import pytest

from bench.analyse.summary import summarise
from bench.plan.case import AS_IS, Case
from bench.show.by_graph import words
from impls.catalogue import GRAPH
from tests.make.points import vit_s
from tests.make.results import modelled

POINTS = [vit_s(num_tokens=each) for each in (50, 197)]
TIMES_S = {AS_IS: 0.01, GRAPH: 0.02, "eager": 0.02, "sdpa": 0.005, "mine:attend": 0.01}


def told(ways: dict[str, str | None], baseline: str = AS_IS, refused: str = "") -> str:
    """Return what is said of implementations whose cores got in by these ways, of which one may be refused."""
    fate = "unsupported", "no graph"
    times = {name: TIMES_S[name] for name in (AS_IS, *ways)}
    records = [
        modelled(Case(at, name), 0, fate if name == refused else None, time_s)
        for at in POINTS
        for name, time_s in times.items()
    ]
    table = summarise(records, baseline)
    table["adapted_by"] = table["implementation"].map({AS_IS: None, **ways})
    return " ".join(words(table, baseline))


def test_rows_by_a_graph_are_compared_with_the_graph() -> None:
    """The rows are named, and what tracing alone does, as the table's speed-up says it."""
    said = told({GRAPH: GRAPH, "sdpa": GRAPH, "mine:attend": f"{GRAPH}, 1 of 3 softmaxes stay, as that at a.py:3"})
    assert said == (
        "sdpa and mine:attend run the graph of the module's call; compare with the row graph: tracing alone made it "
        "0.50x as fast as as_is. python -m bench advise says what to write in its source."
    )


def test_without_the_row_its_command_is_said() -> None:
    """Rows that got in by another way are not named."""
    said = told({"eager": "fused_attn", "sdpa": GRAPH})
    start = "sdpa runs the graph of the module's call: tracing alone changes the time too; "
    assert said.startswith(start + "--impl graph,sdpa shows by how much. ")


def test_a_row_that_was_refused_is_not_proposed() -> None:
    """The same command would be refused again."""
    assert "--impl" not in told({GRAPH: GRAPH, "sdpa": GRAPH}, refused=GRAPH)


@pytest.mark.parametrize("way", [None, "self.attend", "F.scaled_dot_product_attention"])
def test_without_rows_by_a_graph_nothing_is_said(way: str | None) -> None:
    """If the graph itself was measured, what tracing alone does is said of it."""
    assert told({"sdpa": way}) == ""
    assert told({"sdpa": way, GRAPH: GRAPH}) == "graph is a control: tracing alone made it 0.50x as fast as as_is."


def test_the_graph_as_the_baseline_says_it_already() -> None:
    """Then the speed-ups of a run refer to it."""
    assert told({GRAPH: GRAPH, "sdpa": GRAPH}, GRAPH) == ""
