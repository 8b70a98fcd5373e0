"""Sentences and numbers agree in random runs, for points, whole runs and controls."""

import dataclasses
import functools
import itertools
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bench.analyse.rows import measured
from bench.analyse.standing import by_rank
from bench.plan.case import CONTROL, Case
from bench.show.answer import At, answer, points_of, words
from bench.show.doubts import control_warning
from tests.make.points import vit_s
from tests.make.records import samples
from tests.make.results import modelled, summarise
from tests.show.statements import is_upper, of_answer

NAMES = ("eager", "sdpa", "mha", "online", "compiled_sdpa", "manual")
SEEDS = pytest.mark.parametrize("seeds", [(*range(12), 36), pytest.param(range(12, 40), marks=pytest.mark.slow)])
NUMBER = r"([\d.]+)"


@functools.cache
def run(seed: int) -> pd.DataFrame:
    """Return the table of a drawn run: what differs, and by how much rounds and processes scatter, is drawn too."""
    rng = np.random.default_rng(seed)
    names = [*rng.permutation(NAMES).tolist()[: rng.choice([1, 2, 3, 6], p=[0.05, 0.2, 0.25, 0.5])], CONTROL]
    processes, spread = rng.choice([1, 2, 3, 3, 5, 5]), rng.choice([0.003, 0.03, 0.2])
    records = []
    for tokens in range(50, 50 + rng.choice([1, 3, 6])):
        between, within = rng.choice([3e-4, 1e-3, 3e-3, 0.03], 2)
        middles = rng.normal(0, spread, len(names))
        if "eager" in names and rng.random() < 0.8:
            middles[-1] = middles[names.index("eager")]
        for name, middle in zip(names, middles, strict=True):
            case, scatter = Case(vit_s(num_tokens=tokens), name), rng.choice([1, 1, 1, 5])
            fate = ("oom", "") if rng.random() < 0.05 else None
            for process in range(processes):
                logs = middle + scatter * (rng.normal(0, between) + rng.normal(0, within, 6))
                of = modelled(case, process, fate)
                records.append(of if fate else dataclasses.replace(of, samples=samples(*np.exp(logs).tolist())))
    return summarise(records, "eager")


@functools.cache
def points(seed: int) -> list[At]:
    """Return the points of a drawn run."""
    return points_of(run(seed))


@SEEDS
def test_the_words_of_a_point_agree_with_its_rows(seeds: Sequence[int]) -> None:
    """The bound comes from the first row, rounded up by less than a step; beyond 10 % nothing is recommended."""
    kinds: Counter[str] = Counter()
    for at in itertools.chain.from_iterable(map(points, seeds)):
        rows, said = by_rank(measured(at.rows)), words(at.choice)
        if len(rows) < 2:
            kinds[said.partition(" (")[2] or said] += 1
            continue
        first, *others = rows
        bound = re.search(rf"within {NUMBER}%", said)
        rivals = [str(row["implementation"]) for row in others if row["standing"] == "open"]
        assert said.removeprefix("not decided: ").startswith(str(first["implementation"]))
        assert bool(bound) == (first["standing"] != "fastest" and first["slowdown_high"] is not None)
        if bound:
            assert is_upper(bound[1], first["slowdown_high"])
        if said.startswith("not decided"):
            assert first["slowdown_high"] is None or first["slowdown_high"] > 1.1
            assert f" or {rivals[0] if len(rivals) == 1 else f'{len(rivals)} others'} " in said
        elif not bound:
            assert {row["standing"] for row in others} == {"slower"}
        kinds[re.sub(NUMBER, "#", said).replace(str(first["implementation"]), "").partition(": ")[0]] += 1
    assert {"only one measured)", ", fastest", ", within #%", "not decided"} <= {*kinds}


@SEEDS
def test_the_answer_of_a_run_agrees_with_the_rows_of_all_points(seeds: Sequence[int]) -> None:
    """What is recommended for all points is so at one at least; where another one is faster that is said."""
    kinds: Counter[str] = Counter()
    for seed in seeds:
        said = answer(points(seed), "eager")
        assert [*of_answer(said, {at.label: by_rank(measured(at.rows)) for at in points(seed)})] == [], said
        kinds.update(
            re.findall(r"Use|within|as fast as eager|Except|other point|Not decided at|Not decided:", str(said))
        )
    assert {"Use", "within", "as fast as eager", "Except", "Not decided at", "Not decided:"} <= {*kinds}


@SEEDS
def test_intervals_are_as_many_times_as_wide_as_the_control_says(seeds: Sequence[int]) -> None:
    """An interval's half-width is the standard error times a quantile, and the factor that the warning tells."""
    warned = 0
    for table in map(run, seeds):
        said = re.search(rf"{NUMBER} times as wide", control_warning(table))
        rows = table.query("speedup_high > speedup").astype({"speedup": float})
        half = np.log(rows["speedup_high"].astype(float) / rows["speedup"])
        quantile = stats.t.ppf(0.995, rows["log_ratio_freedom"].to_numpy(float))
        factors = half / quantile / rows["log_ratio_error"].to_numpy(float)
        assert (abs(factors - float(said[1])) < 0.06).all() if said else (factors < 1.21).all()
        warned += bool(said)
    assert 0 < warned < len(seeds)
