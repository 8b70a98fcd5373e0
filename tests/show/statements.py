"""A reader of commands' output on a run: it finds numbers and sentences that contradict the rows.

It reads what a user sees: the end of a run, what `show` prints, the page, and the comment of a duel. No code of the
suite decides what the texts mean: every number of every table, and each sentence on what to use, must be that of the
rows, rounded as it is shown.
"""

import html
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.duel import Outcome, change
from bench.analyse.rows import Row
from bench.show import columns, summary
from bench.show.answer import points_of
from bench.show.comparison import duel
from bench.show.markdown import markdown
from bench.show.pages.run import page
from bench.show.results import results

NUMBER = r"([\d.]+)"
SCALE = {
    "ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30,
}  # fmt: skip
GOOD, DECIDED = 1.02, 1.10

Rows = Mapping[str, Sequence[Row]]
"""The measured rows of each point by its label, the first by rank first."""

Line = dict[str, str]
"""The cells of a line of a table by heading."""


def contradictions(run: Path) -> Iterator[str]:
    """Yield a line for each number and each sentence that contradicts the rows."""
    saved = AnalysedRun(run)
    points = points_of(saved.whole, saved.planned)
    whole_names = points_of(saved.whole, saved.planned, math.inf)
    short, full = (
        {at.label: {row["implementation"]: row for row in at.rows} for at in of} for of in (points, whole_names)
    )
    every = {**full, **short}
    shown = columns.default(saved.baseline)
    texts = {
        "end": markdown(summary.blocks(saved.whole, saved.baseline, saved.planned)),
        "show": markdown(results(saved.whole, shown, saved.whole, saved.planned)),
    }
    tables = {where: [*_of_markdown(text)] for where, text in texts.items()}
    whole = page(saved)
    tables["page"] = [*_of_html(whole)]
    for where, of in tables.items():
        told = [line for table in of for line in _named(table, [*every])]
        if not told and any(row["status"] == "ok" for rows in every.values() for row in rows.values()):
            yield f"{where}: no table of rows was read"
        for label, name, line in told:
            if row := every.get(label, {}).get(name):
                yield from (f"{where}: {label} {name}: {problem}" for problem in wrong_cells(line, row))
            else:
                yield f"{where}: {label} {name} is no row"
    measured = {at.label: _by_rank(at.rows) for at in points}
    said = re.findall(r"^(?:\*\*)?((?:Use|Except|Not decided|Nothing was).*?)(?:\*\*)?$", texts["end"], re.MULTILINE)
    if len({(at.point.kind, at.point.timing) for at in points}) == 1:
        yield from (f"end: {problem}" for problem in of_answer([_plain(each) for each in said], measured))
    yield from (f"duel: {problem}" for problem in _of_duel(saved, short))


def _by_rank(rows: Sequence[Row]) -> list[Row]:
    return sorted((row for row in rows if row["status"] == "ok" and row["rank"]), key=lambda row: int(row["rank"]))


# tables


def _plain(text: str) -> str:
    return re.sub(r"\\([\\`*<\[_])", r"\1", text)


def _of_markdown(text: str) -> Iterator[list[Line]]:
    """Yield the tables of a text."""
    for part in re.findall(r"(?:^\|.*\|\n)+", text + "\n", re.MULTILINE):
        head, _, *lines = ([_plain(c).strip(" `") for c in line[1:-1].split(" | ")] for line in part.splitlines())
        yield [dict(zip(head, line, strict=False)) for line in lines]


def _of_html(text: str) -> Iterator[list[Line]]:
    """Yield the tables of a page."""
    for part in re.findall(r"<table.*?</table>", text, re.DOTALL):
        rows = re.findall(r"<tr[^>]*>(.*?)</tr>", part, re.DOTALL)
        cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
        head, *lines = ([html.unescape(re.sub("<[^>]+>", "", cell)).strip() for cell in row] for row in cells)
        yield [dict(zip(head, line, strict=False)) for line in lines]


def _named(table: Sequence[Line], labels: Sequence[str]) -> Iterator[tuple[str, str, Line]]:
    """Yield the lines of a table of rows with their point and their implementation."""
    label = labels[0]
    for line in table:
        name = line.get("implementation", line.get("use", ""))
        if "latency" not in line or not name:
            continue
        label = next((each for each in labels if line.get("point", "").partition(": ")[0] == each), label)
        name = name.removeprefix("not decided: ").partition(" or ")[0].partition(" (")[0].strip()
        if line["latency"]:
            yield label, name, line


def wrong_cells(line: Line, row: Row) -> Iterator[str]:
    """Yield each cell of a line that contradicts its row."""
    for heading, cell in line.items():
        if not cell or row["status"] != "ok":
            continue
        if heading == "latency" and not _is_value(cell, row["latency_s"], row["latency_low_s"], row["latency_high_s"]):
            yield f"latency {cell}, its row has {row['latency_s']:.6g} s"
        elif heading == "memory" and not _is_value(cell, row["memory_bytes"]):
            yield f"memory {cell}, its row has {row['memory_bytes']} bytes"
        elif heading.startswith("vs ") and not _is_ratio(cell, row):
            yield f"{heading} {cell}, its row has {[row[f'speedup{end}'] for end in ('', '_low', '_high')]}"
        elif heading == "within" and not _is_bound(cell, row):
            yield f"within {cell}, its row has {row['slowdown_high']} ({row['standing']})"


def _is_value(cell: str, value: float, low: float | None = None, high: float | None = None) -> bool:
    """Return whether a cell such as `70.0 ms ±2.6%` is a value in base units with the half-width of its interval."""
    number, unit, *width = cell.replace(",", "").split()
    is_value = _rounds(number, value / SCALE[unit])
    if low is None or high is None or not width:
        return is_value and not width
    return is_value and _rounds(width[0].strip("±%"), 100 * (math.sqrt(high / low) - 1))


def _rounds(text: str, value: float, outward: int = 0) -> bool:
    """Return whether a value rounds to a text, to the nearest or outward: down if `outward` is -1, up if it is 1."""
    step = 10.0 ** -len(text.partition(".")[2])
    return abs(float(text) - value - outward * step / 2) <= 0.5001 * step + 1e-9


def _is_ratio(cell: str, row: Row) -> bool:
    if cell in ("baseline", "disturbed"):
        return row["implementation"] == row["baseline"] if cell == "baseline" else _is_biased(row)
    numbers = re.findall(r"\d[\d.]*", cell)
    ends = [row["speedup"], *([row["speedup_low"], row["speedup_high"]] if len(numbers) > 1 else [])]
    return all(map(_rounds, numbers, ends, (0, -1, 1)))


def _is_biased(row: Row) -> bool:
    return (row["flagged_share"] or 0) > 0.5 and not 1 / 1.5 <= row["speedup"] <= 1.5


def _is_bound(cell: str, row: Row) -> bool:
    if not cell.endswith("%"):
        return bool(cell == row["standing"] == "fastest")
    return row["slowdown_high"] is not None and is_upper(cell[:-1], row["slowdown_high"])


def is_upper(percent: str, ratio: float) -> bool:
    """Return whether a percentage is a bound of a ratio: no less than it, and no more than a step of its digits."""
    step = 0.01 if float(percent) >= 10 else 0.001
    return -1e-6 < 1 + float(percent) / 100 - ratio < step + 1e-6


# sentences


def of_answer(said: Sequence[str], rows_at: Rows) -> Iterator[str]:
    """Yield the mistakes in sentences on what to use, given the measured rows of all points of the plan."""
    compared = {label: rows for label, rows in rows_at.items() if len([row for row in rows if row["standing"]]) > 1}
    undecided = {label for label, (first, *_) in compared.items() if not _is_decided(first)}
    if not compared:
        return
    of_use, others, left = ([text for text in said if text.startswith(begin)] for begin in ("Use", "Except", "Not dec"))
    if bool(left) != bool(undecided):
        yield f"{len(undecided)} points are not decided, and it says {left}"
    elif (number := re.search(r"at (?:all )?(\d+)(?: of \d+)? points", "".join(left))) and len(undecided) != int(
        number[1]
    ):
        yield f"{len(undecided)} points are not decided, and it says {left[0]}"
    if bool(of_use) != (len(undecided) < len(compared)):
        yield f"{len(undecided)} of {len(compared)} points are not decided, and it says {of_use}"
    if not of_use:
        return
    name = of_use[0].removeprefix("Use ").partition(": ")[0]
    if not any(rows[0]["implementation"] == name for label, rows in compared.items() if label not in undecided):
        yield f"{name} is to be used, and no point says so"
        return
    own = {label: row for label, rows in compared.items() for row in rows if row["implementation"] == name}
    beaten = {
        label
        for label, row in own.items()
        if (row["slowdown_low"] or 1) > 1 and not (row["slowdown_high"] or 9) <= GOOD
    }
    good = [row for label, row in own.items() if label not in beaten and (row["slowdown_high"] or 9) <= DECIDED]
    yield from _of_use(of_use[0], good, len(rows_at))
    yield from _of_others("".join(others), {label: own[label] for label in beaten})


def _is_decided(first: Row) -> bool:
    return first["standing"] == "fastest" or (first["slowdown_high"] or math.inf) <= DECIDED


def _of_use(said: str, good: Sequence[Row], planned: int) -> Iterator[str]:
    most = max(row["slowdown_high"] for row in good)
    if within := re.search(rf"within {NUMBER}% of the fastest", said):
        if not is_upper(within[1], most):
            yield f"within {within[1]}%, and the largest bound is {most}"
    elif most > 1:
        yield f"a bound of {most} is not told: {said}"
    if where := re.search(r"at (all )?(\d+)(?: of (\d+))? points", said):
        total = int(where[3] or where[2])
        if (int(where[2]), total) != (len(good), planned):
            yield f"{len(good)} of {planned} points, and it says {where[0]}"
    rows = sorted(row["speedup"] for row in good if row["speedup_low"] is not None and not _is_biased(row))
    gain = re.search(rf", (?:{NUMBER} to )?{NUMBER}x(?: \[.*\])? as fast as", said)
    if gain and not (_rounds(gain[1] or gain[2], rows[0]) and _rounds(gain[2], rows[-1])):
        yield f"{gain[0]}, and ratios are {rows[0]} to {rows[-1]}"


def _of_others(said: str, beaten: Mapping[str, Row]) -> Iterator[str]:
    listed = re.findall(rf"(?:Except |; )(.+?): (\S+) \(\S+ takes {NUMBER} (?:to {NUMBER}x|or more) as long\)", said)
    rest = re.search(r"; (\d+) other points?\.", said)
    if len(listed) + (int(rest[1]) if rest else 0) != len(beaten):
        yield f"another one is faster at {len(beaten)} points, and it says {said}"
    for label, _, low, high in listed:
        row = beaten.get(label)
        if row is None or not -1e-6 < row["slowdown_low"] - float(low) < 0.0101:
            yield f"{label}: {low}, and the lower bound is {row and row['slowdown_low']}"
        elif high and not -1e-6 < float(high) - row["slowdown_high"] < 0.0101:
            yield f"{label}: {high}, and the upper bound is {row['slowdown_high']}"


def _of_duel(saved: AnalysedRun, every: Mapping[str, Mapping[str, Row]]) -> Iterator[str]:
    """Yield the mistakes in a pull request comment for a run of two implementations."""
    if not (saved.planned and saved.environment and len(saved.planned.implementations) == 2):
        return
    before, after = sorted(saved.planned.implementations, key=lambda name: name != saved.baseline)
    rows_at = {at.point: at.rows for at in points_of(saved.whole, saved.planned)}
    changes = [change(point, rows, before, after, 0.01) for point, rows in rows_at.items()]
    (table, *_) = _of_markdown(
        markdown(duel.blocks(Outcome(changes, before, after, 0.01, None, 60.0, saved.environment), ""))
    )
    for line, of in zip(table, every.values(), strict=True):
        if line["speed-up"] and not _is_ratio(line["speed-up"], of[after]):
            yield f"{line['speed-up']}, its row has {of[after]['speedup']}"
