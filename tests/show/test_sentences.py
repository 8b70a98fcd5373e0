"""Sentences and numbers agree, over runs that are drawn: what is said of a point, of a run, and of its control."""

import dataclasses
import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bench.analyse.standing import by_rank
from bench.analyse.summary import summarise
from bench.plan.case import CONTROL, Case
from bench.show.answer import At, answer, everywhere, points_of, short, words
from bench.show.doubts import control_warning
from bench.show.rows import Row, measured
from tests.make.points import vit_s
from tests.make.records import samples
from tests.make.results import modelled

NAMES = ("eager", "sdpa", "mha", "online", "compiled_sdpa", "manual")
GOOD = 1.02
SEEDS = pytest.mark.parametrize("seeds", [(*range(12), 36), pytest.param(range(12, 56), marks=pytest.mark.slow)])
NUMBER = r"([\d.]+)"
LIST = r"(\S+(?:, \S+)*(?: (?:or|and) (?:\d+ others|\S+))?)"
PARTS = {
    "only": "only one measured",
    "nothing": "nothing was measured",
    "unbounded": rf"(?:: {LIST} took {NUMBER} times as long in (\d+) process(?:es)?, which gives)? no bound$",
    "lead": rf"by (?:over )?{NUMBER}(x?) to {NUMBER}([x%])",
    "further": r"; (?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)? more of measuring would bring that below 2%",
    "close": rf"no other is more than {NUMBER}(%) faster",
    "within": rf"within {NUMBER}(%)",
    "open": rf": {LIST} (?:may be )?up to {NUMBER}([%x]) (?:as fast|faster)",
    "as good": rf"; {LIST} (?:is|are) as good",
}
"""All that a sentence on a point can say beside a name."""


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


def names_in(text: str, of: Sequence[str]) -> list[str]:
    """Return the names in a list, the last ones of a sequence for the number of others that it counts."""
    *some, last = re.split(", | or | and ", text)
    counted = re.fullmatch(r"(\d+) others", last)
    return [*some, *(of[-int(counted[1]) :] if counted else of if last == "others" else [last])]


def printed(text: str, at: At) -> Iterator[str]:
    """Yield what parts a sentence on a point has, after seeing that the rows say the same."""
    rows = by_rank(measured(at.rows))
    nothing: Row = {"implementation": "nothing", "standing": "", "slowdown_high": None}
    first, others = rows[0] if rows else nothing, rows[1:]
    high, open_rows = first["slowdown_high"], [row for row in others if row["standing"] == "open"]
    names = [str(row["implementation"]) for row in open_rows]
    assert first["implementation"] in text
    if re.search("^fastest: | fastest by ", text):
        assert first["standing"] == "fastest"
        assert {row["standing"] for row in others} <= {"slower"}
    holds: dict[str, Callable[..., object]] = {
        "only": lambda: len(rows) == 1,
        "nothing": lambda: not rows,
        "unbounded": lambda who, ratio, processes: (
            (first["processes"], high) == (1, None)
            and (
                not who
                or (
                    (who, int(processes)) == (rows[1]["implementation"], 1)
                    and float(ratio) == pytest.approx(rows[1]["slowdown"], rel=0.01)
                )
            )
        ),
        "lead": lambda low, unit, most, end: (
            is_lower(low, min(row["slowdown_low"] for row in others), unit or end)
            and is_upper(most, min(row["slowdown_high"] for row in others), end)
        ),
        "further": lambda *parts: (
            high > GOOD
            and sum(int(part or 0) * 60**power for power, part in enumerate(parts[::-1]))
            == pytest.approx(first["further_s"], 0.06, 1)
        ),
        "close": lambda *bound: is_upper(bound[0], high, bound[1]),
        "within": lambda *bound: is_upper(bound[0], high, bound[1]),
        "open": lambda who, *bound: is_upper(bound[0], high, bound[1]) and names_in(who, names) == names,
        "as good": lambda who: (
            names_in(who, good := [row["implementation"] for row in open_rows if row["slowdown_high"] <= GOOD]) == good
        ),
    }
    for kind, pattern in PARTS.items():
        if match := re.search(pattern, text):
            yield kind
            assert holds[kind](*match.groups()), (text, kind)
            text = text.replace(match[0], "")
    assert not re.search(r"\d", text)


@SEEDS
def test_the_words_of_a_point_agree_with_its_rows(seeds: Sequence[int]) -> None:
    """In any room: bounds are those of the rows, rounded by less than a step, and names have what is said of them."""
    kinds: Counter[str] = Counter()
    for at in [at for seed in seeds for at in points_of(run(seed))]:
        for text in {words(at.choice, width) for width in (20, 40, 60, 1000)} | {" ".join(short(at.choice))}:
            kinds.update(printed(text, at))
    assert {*PARTS} - {"nothing"} <= {*kinds}


@SEEDS
def test_the_answer_of_a_run_agrees_with_the_rows_of_all_points(seeds: Sequence[int]) -> None:
    """No implementation is advised over a point at which another is shown to be faster without that being said."""
    kinds: Counter[str] = Counter()
    for seed in seeds:
        points = [at for at in points_of(run(seed)) if measured(at.rows)]
        if len(points) < 2:
            continue
        tried = points_of(run(seed))
        whole, points = answer(tried, "eager"), [at for at in points if len(measured(at.rows)) > 1]
        if not points:
            assert whole[0].startswith("Nothing can be compared")
            continue
        said, name = whole, everywhere(points)
        rows = {at.label: (at, row) for at in points if (row := at.row(name))}
        if 2 * len(rows) <= len(tried):
            assert said[0].endswith(f"none is compared with others at more than {len(rows)} of {len(tried)} points.")
            continue
        assert said[0].startswith(f"Use {name}")
        beaten = {label for label, (_, row) in rows.items() if (row["slowdown_low"] or 1) > 1}
        costly = {label for label in beaten if rows[label][1]["slowdown_low"] > GOOD}
        exceptions = {label for label in costly if rows[label][1]["standing"] == "slower"}
        listed = re.findall(rf"at (\S+) (\S+) is {NUMBER}x to {NUMBER}x as fast", said[0])
        for label, by, low, high in listed:
            at, row = rows[label]
            assert label in exceptions
            assert by == (at.choice.name if at.choice.standing == "fastest" else "another")
            assert is_lower(low, row["slowdown_low"])
            assert is_upper(high, row["slowdown_high"])
        rest = re.search(rf"at (\d+) other points? others are {NUMBER}x to {NUMBER}x as fast", said[0])
        near = re.search(r"though at (\d+) of them another one is faster", said[0])
        most = re.search(rf"at (?:all )?(\d+)(?: of (\d+))? points it takes at most {NUMBER}x as long", said[0])
        assert len(exceptions) == len(listed) + (int(rest[1]) if rest else 0)
        assert {label for label, (_, row) in rows.items() if (row["speedup_high"] or 1) < 1} <= beaten
        assert len(beaten - exceptions) == (int(near[1]) if near else 0)
        assert ("it has no time at" in said[0]) == (not all(at.row(name) for at in tried))
        if rest:
            unlisted = [rows[label][1] for label in exceptions - {label for label, *_ in listed}]
            assert is_lower(rest[2], min(row["slowdown_low"] for row in unlisted))
            assert is_upper(rest[3], max(row["slowdown_high"] for row in unlisted))
        if most:
            others = [row for label, (_, row) in rows.items() if label not in exceptions]
            assert (int(most[1]), int(most[2] or most[1])) == (len(others), len(tried))
            assert is_upper(most[3], max(row["slowdown_high"] or 1 for row in others))
            assert all(float(most[3]) * row["speedup_high"] >= 1 for row in others if row["speedup_high"])
        parts = {"listed": listed, "rest": rest, "near": near, "most": most}
        kinds.update([*(kind for kind, each in parts.items() if each), *sureness(said, points, len(tried))])
    assert {"listed", "near", "most", "all", "some"} <= {*kinds}


def sureness(said: Sequence[str], points: Sequence[At], tried: int) -> Iterator[str]:
    """Yield what an answer says of the choices of all points together, after seeing that the rows say the same."""
    for text in said:
        if within := re.search(r"you are within 2% of the fastest at (all )?(\d+)", text):
            highs = [at.first["slowdown_high"] or 1 for at in points if at.first]
            assert int(within[2]) == sum(high <= GOOD for high in highs)
            assert bool(within[1]) == (int(within[2]) == tried)
            yield "all" if within[1] else "some"
            if rest := re.search(rf"and within {NUMBER}(%) at ", text):
                assert is_upper(rest[1], max(highs), rest[2])


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
