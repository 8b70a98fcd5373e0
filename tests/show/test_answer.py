"""What to use, in sentences."""

import math
import re
from collections.abc import Callable

import pandas as pd
import pytest

from bench.analyse.standing import ALONE, FASTEST, NAMED, NOT_TOLD, NOTHING, Choice
from bench.analyse.summary import summarise
from bench.plan.case import Case, Point
from bench.plan.sweep import Sweep
from bench.show.answer import answer, answers, certainty, choice_of, points_of, short, speedup_cell, words
from bench.show.rows import plain
from bench.stats.estimates import Interval
from tests.make.points import vit_s
from tests.make.results import modelled, results, timed

SHOWN = Choice(FASTEST, "sdpa", 1.0, Interval(1.04, 1.02, 1.06))
CLOSE = Choice(NAMED, "sdpa", 1.016, may_be_faster=("compiled_sdpa",), as_good=("compiled_sdpa",))
WIDE = Choice(NAMED, "sdpa", 1.034, may_be_faster=("compiled_sdpa",), further_s=40.0)


@pytest.mark.parametrize(
    ("of", "said", "in_a_cell"),
    [
        (SHOWN, "fastest: sdpa, by 2 to 6%", ["sdpa", "fastest", "by 2 to 6%"]),
        (CLOSE, "use sdpa: no other is more than 1.6% faster; compiled_sdpa is as good", ["sdpa", "within 1.6%"]),
        (
            WIDE,
            "use sdpa: compiled_sdpa may be up to 3.4% faster; 40s more of measuring would bring that below 2%",
            ["sdpa", "within 3.4%"],
        ),
        (
            Choice(NAMED, "sdpa", ahead=Interval(3.1, math.nan, math.nan), may_be_faster=("mha",), processes=1),
            "use sdpa: mha took 3.10 times as long in 1 process, which gives no bound",
            ["sdpa", "no bound"],
        ),
        (Choice(ALONE, "sdpa"), "only one measured: sdpa", ["sdpa", "only one measured"]),
        (Choice(NOTHING), "nothing was measured", ["nothing was measured"]),
        (Choice(NOT_TOLD), "these rows don't tell what to use", ["these rows don't tell what to use"]),
    ],
)
def test_each_choice_has_its_words(of: Choice, said: str, in_a_cell: list[str]) -> None:
    """A sentence for a line, and a few words for a cell of a map."""
    assert words(of) == said
    assert short(of) == in_a_cell


@pytest.mark.parametrize("of", [SHOWN, CLOSE, WIDE])
def test_less_room_makes_a_shorter_sentence(of: Choice) -> None:
    """It names the implementation in any room, and fits if the shortest one does."""
    least = len(words(of, 0))
    for width in range(100):
        text = words(of, width)
        assert " sdpa" in text
        assert len(text) <= max(width, least)


def test_the_graph_of_a_module_is_named_for_no_points() -> None:
    """Though it is measured at all of them, and is the fastest in sum: it is a control."""
    table = timed(AT[:2], {"as_is": 2.0, "graph": 1.0, "sdpa": lambda at: 1.5 if at == AT[0] else 3.0})
    said = answer(points_of(table), "as_is")[0]
    assert not said.lower().startswith(("use graph", "fastest: graph"))
    assert "as_is" in said or "sdpa" in said


def test_a_cpu_and_a_gpu_are_answered_separately() -> None:
    """Each has its own name and its own points, which need not say the device; one kind alone isn't named."""
    of_gpu = [vit_s(num_tokens=tokens, device="cuda", timing="device-cold") for tokens in (50, 197)]
    table = timed([*AT[:2], *of_gpu], {"eager": 2.0, "sdpa": lambda at: 1.0 if at in of_gpu else 4.0})
    cpu, gpu = answers(points_of(table), "eager")
    assert cpu[0].startswith("On the CPU, use eager: at all 2 points")
    assert gpu[0].startswith("On the GPU, use sdpa: at all 2 points")
    assert gpu[1].startswith("sdpa is from 2.0")
    assert "cuda" not in " ".join(gpu)
    assert answer(points_of(table), "eager") == [*cpu, *gpu]
    ((first, *_),) = answers(points_of(timed(of_gpu, {"eager": 2.0, "sdpa": 1.0})), "eager")
    assert first.startswith("Use sdpa: at all 2 points")


def test_each_timing_of_a_gpu_is_answered_by_itself() -> None:
    """They are four questions: what the GPU needs, what a user waits for, what a captured call takes."""
    of = {timing: vit_s(device="cuda", timing=timing) for timing in ("device-cold", "graph", "host")}
    sdpa = {of["device-cold"]: 1.0, of["graph"]: 1.0, of["host"]: 2.0}
    table = timed([*of.values()], {"eager": 2.0, "sdpa": sdpa.__getitem__})
    cold, graph, host = (first for first, *_ in answers(points_of(table), "eager"))
    assert cold.startswith("On the device alone (timing device-cold), fastest: sdpa")
    assert graph.startswith("As a CUDA graph (timing graph), fastest: sdpa")
    assert host.startswith("For who calls it and waits (timing host), ")
    assert "graph" not in cold
    assert "device" not in host


@pytest.mark.parametrize(("host_s", "said"), [(0.5, ""), (1.5, "Here the host needs 1.50 s to queue a call")])
def test_a_time_that_nobody_waits_for_is_told(host_s: float, said: str) -> None:
    """The host then needs longer than the GPU."""
    table = timed([vit_s(device="cuda", timing="device-cold")], {"eager": 2.0, "sdpa": 1.0}).assign(host_s=host_s)
    text = " ".join(answer(points_of(table), "eager"))
    assert (said in text) if said else ("the host needs" not in text)


@pytest.mark.parametrize(
    ("timings", "measures"),
    [
        (("device-cold",), ["--timing host,graph measures both"]),
        (("device-cold", "host"), ["--timing graph measures that"]),
        (("device-hot", "graph"), ["--timing host measures that"] * 2),
        (("device-cold", "graph", "host"), []),
        (("host",), []),
    ],
)
def test_only_a_timing_that_was_not_measured_is_proposed(timings: tuple[str, ...], measures: list[str]) -> None:
    """A graph is not proposed for a graph, and the host's time is what its caller waits for."""
    points = [vit_s(device="cuda", timing=timing) for timing in timings]
    said = answers(points_of(timed(points, {"eager": 2.0, "sdpa": 1.0}).assign(host_s=1.5)), "eager")
    bound = [sentence for of in said for sentence in of if "the host needs" in sentence]
    assert len(bound) == sum(timing != "host" for timing in timings)
    assert [words for sentence in bound for words in re.findall(r"--timing \S+ measures \w+", sentence)] == measures
    assert not any("as a graph" in each for each in bound if "launch the graph" in each)


def test_a_smaller_bound_is_surer() -> None:
    """A choice that is shown to be the fastest is as sure as can be, one without a bound isn't sure at all."""
    named = [Choice(NAMED, "a", high) for high in (1.005, 1.01, 1.05, 1.5)]
    sure = [certainty(of) for of in (SHOWN, *named, Choice(NAMED, "a"), Choice(ALONE, "a"))]
    assert sure == sorted(sure, reverse=True)
    assert (sure[0], sure[-3], sure[-1]) == (1, 0, 0)
    assert len({*sure}) == 5


def test_rows_of_other_processes_are_not_compared() -> None:
    """Two that share no process have no slowdown; one that shares none with two others changes nothing for them."""
    unpaired = [modelled(Case(vit_s(), name), process, None, 1.0) for process, name in enumerate(("eager", "sdpa"))]
    assert choice_of(plain(summarise(unpaired, "eager"))).name == ""
    both = [modelled(Case(vit_s(), name), n, None, s) for name, s in (("eager", 2.0), ("sdpa", 1.0)) for n in range(3)]
    other = [modelled(Case(vit_s(), "mha"), n, None, 1.0) for n in (3, 4)]
    two, three = (choice_of(plain(summarise(records, "sdpa"))) for records in (both, [*both, *other]))
    assert (two.standing, two.name, two.names) == (FASTEST, "sdpa", ("sdpa",))
    assert (three.standing, three.name, three.names) == (FASTEST, "sdpa", ("sdpa",))


# Over a run


AT = [vit_s(num_tokens=tokens) for tokens in (50, 197, 577)]
CASES = [Case(at, name) for at in AT for name in ("eager", "sdpa")]
OWN, OOM = "mykernel:attend", ("oom", "")


def lead_of(*ratios: float) -> pd.DataFrame:
    """Return a table in which sdpa takes so many times as long as eager, a point for each ratio."""
    many = [vit_s(num_tokens=50 + number) for number in range(len(ratios))]
    return timed(many, {"eager": 1.0, "sdpa": lambda at: ratios[at.num_tokens - 50]}, processes=5)


def lost(*numbers: int, processes: int = 3) -> pd.DataFrame:
    """Return results of CASES, of which these have no time."""
    return results(CASES, {CASES[number]: OOM for number in numbers}, processes)


def fast_at(place: int) -> Callable[[Point], float]:
    """Return what takes a third of its time at one of AT."""
    return lambda at: 1.0 if at == AT[place] else 3.0


NO_COST = "at all # points it takes at most 1.00x as long as the fastest one"
WITHIN = "With the one that is named at each point you are within 2% of the fastest at"
BEATS = "is #x to #x as fast"
RATIO, ENDS = "#x [#, #]", "from #x [#, #] (N=#) to #x [#, #] (N=#) as fast as eager"

ANSWERS: list[tuple[Callable[[], pd.DataFrame], list[str]]] = [
    (lambda: timed(AT, {"eager": 2.0, "sdpa": 1.0, "manual": 2.1}), [
        f"Use sdpa: {NO_COST}.", f"sdpa is {ENDS}.", f"{WITHIN} all 3 points."]),
    (lambda: timed(AT, {"eager": 1.0, "sdpa": 2.0}), [f"Use eager: {NO_COST}.", f"{WITHIN} all 3 points."]),
    (lambda: lead_of(0.1, 0.1, 1.8, 1.6, 1.9, 1.1, 1.2), [
        "Use sdpa: at 2 of 7 points it takes at most 1.00x as long as the fastest one; but "
        f"at N=54 eager {BEATS}; at N=52 eager {BEATS}; at N=53 eager {BEATS}; at 2 other points others are "
        "#x to #x as fast.",
        f"sdpa is {ENDS}.", f"{WITHIN} all 7 points."]),
    (lambda: timed(AT[:2], {"eager": fast_at(0), "sdpa": fast_at(1), "mha": 1.1}), [
        f"Use mha, though at all 2 points another one is faster: at N=50 eager {BEATS}; at N=197 sdpa {BEATS}.",
        f"mha is {ENDS}.", f"{WITHIN} all 2 points."]),
    (lambda: lost(0, 2, 4), [
        "Nothing can be compared: only one implementation was measured at all 3 points (sdpa).",
        "sdpa takes from # ms ±#% (N=50) to # ms ±#% (N=577) a call."]),
    (lambda: lost(0), [
        f"Use sdpa: {NO_COST.replace('all #', '# of #')}.", f"sdpa is {ENDS}.", f"{WITHIN} 2 of 3 points.",
        "Nothing is compared at N=50, where one implementation was measured."]),
    (lambda: lost(3, 5), [
        "No implementation is named for all points: none is compared with others at more than 1 of 3 points.",
        f"{WITHIN} 0 of 3 points, and within #% at the others; about #s more of measuring would bring all below 2%.",
        "Nothing is compared at N=197, N=577, where one implementation was measured."]),
    (lambda: lost(processes=1), [
        "Use sdpa: at all 3 points its cost has no bound.", "sdpa is from #x (N=#) to #x (N=#) as fast as eager.",
        "One process gives no bound."]),
    (lambda: lost(processes=2), [
        f"Use sdpa: {NO_COST}.", f"sdpa is {ENDS}.", f"{WITHIN} all 3 points.",
        "Two processes alone give no scatter: bounds lean on what all points have in common."]),
    (lambda: pd.concat([lead_of(1.0).assign(slowdown_high=1.05), results(CASES[2:], processes=1)]), [
        "Use sdpa: at all 3 points its cost has no bound.",
        "sdpa is from #x [#, #] (N=50) to #x (N=577) as fast as eager.",
        f"{WITHIN} 0 of 3 points, and within 5% at 1 of the others.",
        "At 2 of 3 points the one that is named was measured in one process, which gives no bound."]),
    (lambda: results(CASES[:2], dict.fromkeys(CASES, OOM)), ["Nothing was measured: none of 2 cases is ok."]),
    (lambda: timed(AT[:1], {"eager": 2.0, "sdpa": 1.0, OWN: 4.0, "mha": 4.0}), [
        "Fastest: sdpa, by # to #%.", f"sdpa takes # ms ±#% a call; it is {RATIO} as fast as eager.",
        f"{OWN} takes # s ±#% a call; it is {RATIO} as fast as eager."]),
    (lambda: timed(AT, {"eager": 2.0, "sdpa": 1.0, OWN: 4.0, "mha": 4.0}), [
        f"Use sdpa: {NO_COST}.", f"sdpa is {ENDS}.", f"{WITHIN} all 3 points.",
        f"{OWN} takes from # s ±#% (N=#) to # s ±#% (N=#) a call; it is {ENDS}."]),
    (lambda: timed(AT[:1], {"sdpa": 1.0}), ["Only one measured: sdpa.", "sdpa takes # ms ±#% a call."]),
]  # fmt: skip
"""Results, and what is said of them; # stands for a number, of which tests/show/test_sentences.py says whether it is
right."""


def test_what_is_not_finite_is_said_first() -> None:
    """Where nothing was measured for that reason alone."""
    nan = "the layer's own output is not finite: 5 NaN of 10 values"
    of = results(CASES[:2], dict.fromkeys(CASES, OOM)).assign(detail=nan)
    first, second = answer(points_of(of), "eager")
    assert first == "The layer's own output is not finite: 5 NaN of 10 values."
    assert second.startswith("Nothing was measured")


@pytest.mark.parametrize(("of", "sentences"), ANSWERS, ids=lambda each: each[0] if isinstance(each, list) else "")
def test_each_run_has_its_sentences(of: Callable[[], pd.DataFrame], sentences: list[str]) -> None:
    """An implementation of a user's own has its time also if it loses, and what has no rival is no doubt."""
    said = answer(points_of(of()), "eager")
    assert len(said) == len(sentences)
    for text, sentence in zip(said, sentences, strict=True):
        assert re.fullmatch(re.escape(sentence).replace(r"\#", r"[\d.]+"), text), text


def planned(*tokens: int, names: tuple[str, ...] = ("eager", "sdpa")) -> Sweep:
    """Return the plan of a run of AT's points and of others with so many tokens."""
    return Sweep("mine", (*AT, *(vit_s(num_tokens=number) for number in tokens)), names)


def test_points_that_wait_are_not_spoken_for() -> None:
    """An interrupted sweep names one for the points that were measured, and says how many it was to have."""
    of = points_of(timed(AT, {"eager": 2.0, "sdpa": 1.0}), planned(*range(1000, 1997)))
    first, _, within = answer(of, "eager")
    assert first.startswith("At the 3 of 1,000 points that were measured, use sdpa: it takes at most")
    assert within.endswith("at the 3 of 1,000 points that were measured.")
    (at,) = [at for at in of if at.label == "N=1500"]
    assert (at.rows, at.cases, at.waits, at.choice.standing) == ((), 2, 2, NOTHING)


def test_one_point_of_two_is_named_with_what_it_says() -> None:
    """Its own sentence has no word for the other one."""
    first, *_ = answer(points_of(timed(AT[:1], {"eager": 2.0, "sdpa": 1.0}), planned()), "eager")
    assert first.startswith("At N=50, the 1 of 3 points that was measured: fastest: sdpa")


def test_the_baseline_has_no_speedup() -> None:
    """The cell of the baseline says what it is, and that of a row that isn't there is empty."""
    first = points_of(timed(AT[:1], {"eager": 2.0, "sdpa": 1.0}))[0].first
    assert speedup_cell(first, "eager").startswith("2.0")
    assert (speedup_cell(first, "sdpa"), speedup_cell(None, "eager")) == ("baseline", "")
