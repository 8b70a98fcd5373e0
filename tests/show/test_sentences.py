"""Sentences and numbers agree, over runs that are drawn: what is said of a point, of a run, and of its control."""

import dataclasses
import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bench.analyse.rows import Row
from bench.analyse.standing import by_rank
from bench.analyse.summary import summarise
from bench.plan.case import CONTROL, Case
from bench.show.answer import answer, points_of, words
from bench.show.doubts import control_warning
from bench.show.rows import measured
from tests.make.points import vit_s
from tests.make.records import samples
from tests.make.results import modelled

NAMES = ("eager", "sdpa", "mha", "online", "compiled_sdpa", "manual")
GOOD = 1.02
SEEDS = pytest.mark.parametrize("seeds", [(*range(12), 36), pytest.param(range(12, 56), marks=pytest.mark.slow)])
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


def read(text: str, unit: str) -> tuple[float, float]:
    """Return a ratio that is said as a multiple or as a percentage above 1, and the step of its display."""
    if unit == "%":
        return 1 + float(text) / 100, 0.01 if float(text) >= 10 else 0.001
    return float(text), 0.01 if re.search(r"\.\d\d", text) else 0.1


def is_upper(text: str, value: float, unit: str = "x") -> bool:
    """Return whether what is said is no less than a value, and no more than a step above it."""
    ratio, step = read(text, unit)
    return -1e-6 < ratio - value < step + 1e-6


def is_lower(text: str, value: float, unit: str = "x") -> bool:
    """Return whether what is said is no more than a value, and no more than a step below it."""
    ratio, step = read(text, unit)
    return -1e-6 < value - ratio < step + 1e-6


@SEEDS
def test_the_words_of_a_point_agree_with_its_rows(seeds: Sequence[int]) -> None:
    """A bound is that of the first row, rounded up by less than a step; beyond 10 % nothing is recommended."""
    kinds: Counter[str] = Counter()
    for at in [at for seed in seeds for at in points_of(run(seed))]:
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
            assert is_upper(bound[1], first["slowdown_high"], "%")
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
        tried = points_of(run(seed))
        compared = {at.label: at for at in tried if len(measured(at.rows)) > 1}
        undecided = [label for label, at in compared.items() if words(at.choice).startswith("not decided")]
        if not compared:
            continue
        *said, last = answer(tried, "eager")
        if undecided:
            where = [int(found[1])] if (found := re.search(r"decided at (?:all )?(\d+)", last)) else last.split("; ")
            assert last.startswith("Not decided")
            assert len(undecided) == (where[0] if found else len(where))
        else:
            said = [*said, last]
        kinds["undecided"] += bool(undecided)
        if not said:
            assert len(undecided) == len(compared)
            continue
        name = re.match(r"Use (\S+):", said[0])
        assert name
        assert name[1] in {at.choice.name for at in compared.values() if at.label not in undecided}
        rows = {label: row for label, at in compared.items() if (row := at.row(name[1]))}
        beaten = {
            label for label, row in rows.items() if (row["slowdown_low"] or 1) > 1 and row["slowdown_high"] > GOOD
        }
        good = {label for label, row in rows.items() if (row["slowdown_high"] or 9) <= 1.1} - beaten
        kinds.update([*_of_use(said[0], [rows[label] for label in good], len(tried))])
        assert len(said) == 1 + bool(beaten)
        if beaten:
            listed = re.findall(rf"(N=\d+): (\S+) \(\S+ takes {NUMBER} to {NUMBER}x as long\)", said[1])
            rest = re.search(r"(\d+) other points?", said[1])
            assert len(beaten) == len(listed) + (int(rest[1]) if rest else 0)
            for label, by, low, high in listed:
                assert by == (compared[label].choice.name if label not in undecided else "another")
                assert is_lower(low, rows[label]["slowdown_low"])
                assert is_upper(high, rows[label]["slowdown_high"])
            kinds.update(["listed", *(["rest"] if rest else [])])
    assert {"undecided", "listed", "within", "gain"} <= {*kinds}


def _of_use(said: str, rows: Sequence[Row], tried: int) -> Iterator[str]:
    """Yield what a sentence on what to use says, after seeing that these rows of it say the same."""
    if where := re.search(r"at (all|\d+ of) (\d+) points", said):
        assert int(where[2]) == tried
        assert len(rows) == (tried if where[1] == "all" else int(where[1].split()[0]))
    most = max(row["slowdown_high"] for row in rows)
    if within := re.search(rf"within {NUMBER}% of the fastest", said):
        assert is_upper(within[1], most, "%")
        yield "within"
    else:
        assert ": the fastest" in said
        assert most == 1
    if gain := re.search(rf", (?:{NUMBER} to )?{NUMBER}x(?: \[.*\])? as fast as eager", said):
        ratios = sorted(row["speedup"] for row in rows if row["speedup_low"] is not None)
        assert float(gain[1] or gain[2]) == pytest.approx(ratios[0], rel=0.006)
        assert float(gain[2]) == pytest.approx(ratios[-1], rel=0.006)
        yield "gain"


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
