"""Whether all that is said of runs agrees: python -m tests.drills.statements RUN….

It reads the texts that a user sees, and no code of the suite decides what they mean: the table in the terminal, the end
of the run, the page with its data, the comment of a duel, the exported table and the answer of `advise`. What each says
of two implementations of a point must agree with what all others say of them, within the digits that are shown; so must
all counts, with those of the plan. It ends with 1 if it finds a contradiction.
"""

import html
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.analyse.analysed_run import AnalysedRun
from bench.analyse.duel import Outcome, change
from bench.plan.case import Point
from bench.plan.sweep import Sweep
from bench.show import failures, summary
from bench.show.comparison import duel
from bench.show.markdown import markdown
from bench.show.pages.run import page
from bench.show.rows import Row, by_point
from bench.show.terminal.console import rendered
from bench.show.terminal.results import results
from impls.catalogue import name_of

WIDE = 400
NUMBER, NAME = r"([\d.,]+)", r"([\w.:\[\]=,/+-]+)"
SPEEDUP = re.compile(rf"{NUMBER}x \[{NUMBER}, ({NUMBER}|unbounded)\]")
SHARE = re.compile(rf"(over )?{NUMBER}(?: to {NUMBER}%|x to {NUMBER}x)")
MEDIAN = re.compile(r"\b([\d.]+) (ns|µs|ms|s)(?: {2,}| {1,2}±)")
SCALE = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True)
class Bound:
    """A number that is said, and the step of its last digit: it stands for all that rounds to it."""

    value: float
    step: float

    @classmethod
    def of(cls, text: str, share: bool = False) -> "Bound":
        """Return what a ratio says, or with `share` the ratio that a percentage above 1 says."""
        if text == "unbounded":
            return cls(math.inf, 0.0)
        digits = text.replace(",", "")
        step = 10.0 ** -len(digits.partition(".")[2])
        return cls(1 + float(digits) / 100, step / 100) if share else cls(float(digits), step)

    def is_above(self, other: "Bound") -> bool:
        """Return whether it is larger than another one beyond the steps of both."""
        return self.value > other.value + (self.step + other.step) * (1 + 1e-6)


@dataclass(frozen=True)
class Told:
    """That one implementation is at least, and at most, so many times as fast as another one."""

    one: str
    other: str
    low: Bound
    high: Bound
    where: str

    @property
    def reverse(self) -> "Told":
        """The same of the other one."""
        low, high = (Bound(1 / end.value, end.step / end.value**2) if end.value else Bound(math.inf, 0.0)
            for end in (self.high, self.low))  # fmt: skip
        return Told(self.other, self.one, low, high, self.where)

    def __str__(self) -> str:
        return (
            f"{self.one} is {self.low.value:.4g} to {self.high.value:.4g} times as fast as {self.other} ({self.where})"
        )


@dataclass
class Said:
    """All that is said of a point: pairs, by how much a row is slower than the fastest, and who may be the fastest."""

    pairs: list[Told] = field(default_factory=list)
    slower: list[tuple[str, Bound, Bound, str]] = field(default_factory=list)
    may_be_fastest: list[tuple[str, str]] = field(default_factory=list)
    fastest: set[str] = field(default_factory=set)
    pays: dict[str, str] = field(default_factory=dict)
    medians_s: dict[str, float] = field(default_factory=dict)
    explained: set[str] = field(default_factory=set)


def main(runs: Sequence[str]) -> int:
    """Print what contradicts in each run, and return whether anything does."""
    found = 0
    for run in runs:
        lines = [*contradictions(Path(run))]
        print(f"{run}: {f'{len(lines)} contradictions' if lines else 'all statements agree'}", flush=True)
        print(*(f"  {line}" for line in lines), sep="\n", end="\n" if lines else "")
        found += len(lines)
    return int(found > 0)


def contradictions(run: Path) -> Iterator[str]:
    """Yield a line for each two statements on a run that can't both be true, and for each wrong count."""
    saved = AnalysedRun(run)
    rows_at, sweep = by_point(saved.table), saved.planned
    texts = {"terminal": rendered(failures.blocks(saved.whole, sweep), width=WIDE)}
    texts["end"] = rendered(summary.blocks(saved.whole, saved.baseline, sweep), width=WIDE)
    whole = page(saved)
    texts["page"] = "\n".join(_sentences_of(whole))
    said = {point: Said() for point in rows_at}
    _terminal(said, rows_at, saved)
    _page(whole, [*said.values()], saved.baseline or "")
    if len(said) == 1 and (run / "advice.md").exists():
        _advice((run / "advice.md").read_text(encoding="utf-8"), *said.values())
    _duel(said, rows_at, saved, texts)
    for point, of in said.items():
        yield from (f"{point.name}: {line}" for line in _disagree(of))
    for where, text in texts.items():
        yield from (f"{where}: {line}" for line in _miscounted(text, rows_at, sweep))
    yield from _named(texts["end"].split("\n\n")[0], rows_at, sweep)


# what is read


def _terminal(said: Mapping[Point, Said], rows_at: Mapping[Point, Sequence[Row]], saved: AnalysedRun) -> None:
    """Read the table as `show` prints it: a part for each point, between its head and what the columns mean."""
    shown = rendered(results(saved.whole, saved.baseline), width=WIDE)
    for (point, of), part in zip(said.items(), shown.split("\n\n")[1:], strict=False):
        lines = part.splitlines()
        head = next((number for number, line in enumerate(lines) if " latency " in line), None)
        if head is None:  # nothing was measured
            continue
        names = [row["implementation"] for row in rows_at[point]]
        _words(of, lines[head - 1], names, "terminal")
        for line in lines[head + 1 :]:
            if (name := line.split()[0]) not in names or not line.startswith(f"  {name} "):
                break
            row = line[2 + len(name) :]
            _row(of, name, row, saved.baseline or "", "terminal")
            if (letters := re.match(r" +([A-Z1]*) ", row)) and "R" in letters[1]:
                of.explained.add(name)


def _row(of: Said, name: str, line: str, baseline: str, where: str) -> None:
    """Read what a row of a table says after its name."""
    if median := MEDIAN.search(line):
        of.medians_s[name] = float(median[1]) * SCALE[median[2]]
    text = re.sub(" +", " ", line)
    if ratio := SPEEDUP.search(text):
        of.pairs.append(Told(name, baseline, Bound.of(ratio[2]), Bound.of(ratio[3]), where))
        text = text.replace(ratio[0], "")
    if share := _share(text):
        of.slower.append((name, *share, where))
    if paid := re.search(r"(never|not shown|[\d,]+ calls)\s*$", text):
        of.pays[name] = paid[1]


def _share(text: str) -> tuple[Bound, Bound] | None:
    """Return by how much a text says that a row is slower: `2 to 5%`, `over 0 to 5%` or `1.2x to 1.5x`."""
    match = SHARE.search(text)
    if match is None:
        return None
    low, high = (Bound.of(end, share=match[3] is not None) for end in (match[2], match[3] or match[4]))
    return (Bound(1.0 + 1e-9, low.step) if match[1] else low), high


def _words(of: Said, text: str, names: Sequence[str], where: str) -> None:
    """Read what is said of what to use at a point."""
    if match := re.search(rf"fastest: {NAME}(?:, by (.*))?", text):
        name = match[1].rstrip(",")
        of.may_be_fastest.append((name, where))
        of.fastest.add(name)
        if lead := _share(match[2] or ""):
            others = [other for other in names if other != name and other in of.medians_s]
            of.pairs += [Told(name, other, lead[0], Bound(math.inf, 0), where) for other in others]
    if match := re.search(rf"use {NAME}: (.*)", text):
        name = match[1]
        bound = re.search(rf"(?:more than|up to|within) {NUMBER}(%|x)", match[2])
        if bound:
            of.slower.append((name, Bound(1.0, 0.0), Bound.of(bound[1], bound[2] == "%"), f"{where}, bound"))
        for part in re.findall(r"(?:^|; )(.*?)(?: may be up to| is as good| are as good)", match[2]):
            of.may_be_fastest += [(each, where) for each in re.split(r", | or | and ", part) if each in names]


def _sentences_of(whole: str) -> Iterator[str]:
    """Yield the sentences at the top of a page."""
    top = whole.partition("<main>")[0].partition('class="answer"')
    yield from (html.unescape(re.sub("<[^>]+>", "", part)) for part in re.findall(r"<(?:p|li)[^>]*>.*?</(?:p|li)>",
        f'<p {top[1]}{top[2]}', re.DOTALL))  # fmt: skip


def _page(whole: str, said: Sequence[Said], baseline: str) -> None:
    """Read a page: the points in a line each, and the table of all cases."""
    points = whole.partition('id="point-by-point"')[2].partition("</table>")[0]
    words = dict(re.findall(r"<tr><th[^>]*>(.*?)</th><td[^>]*>(.*?)</td>", points))
    at = dict(zip(words, said, strict=False))
    table = whole.partition('<table id="table"')[2].partition("</table>")[0]
    keys = re.findall(r'data-key="(\w+)"', table)
    lines = re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2], re.DOTALL)
    rows = [dict(zip(keys, re.findall(r"<td[^>]*>(.*?)</td>", line, re.DOTALL), strict=True)) for line in lines]
    for label, of in at.items():
        names = [_text(row["implementation"]) for row in rows if row["point"] == label]
        _words(of, html.unescape(words[label]), names, "page")
    for row in rows:
        cells = {key: _text(cell) for key, cell in row.items()}
        of, name = at[row["point"]], cells["implementation"]
        for key in ("speedup", "slower_by", "paid"):
            _row(of, name, cells.get(key, ""), baseline, "page")
        if "R" in cells.get("flags", ""):
            of.explained.add(name)


def _text(cell: str) -> str:
    return html.unescape(re.sub("<[^>]+>", "", cell))


def _advice(text: str, of: Said) -> None:
    """Read the answer for a model."""
    text = text.replace("\\[", "[")
    for name, rest in re.findall(rf"^\| `{NAME}` \| (.*)", text, re.MULTILINE):
        if ratio := SPEEDUP.match(rest):
            of.pairs.append(Told(name, "as_is", Bound.of(ratio[2]), Bound.of(ratio[3]), "advice.md"))
    for name, rest in re.findall(rf"\*\*use {NAME}: (.*)\*\*", text, re.IGNORECASE):
        if bound := re.search(rf"more than {NUMBER}% faster", rest):
            of.slower.append((name, Bound(1.0, 0.0), Bound.of(bound[1], True), "advice.md, bound"))


def _duel(
    said: Mapping[Point, Said], rows_at: Mapping[Point, Sequence[Row]], saved: AnalysedRun, texts: dict[str, str]
) -> None:
    """Read the comment on a pull request that a run of two implementations would have."""
    if not (saved.planned and saved.environment and len(saved.planned.implementations) == 2):
        return
    before, after = sorted(saved.planned.implementations, key=lambda name: name != saved.baseline)
    changes = [change(point, rows_at.get(point, ()), before, after, 0.01) for point in saved.planned.points]
    told = Outcome(changes, before, after, 0.01, None, 60.0, saved.environment)
    texts["duel"] = markdown(duel.blocks(told, "")).replace("\\[", "[")
    for each in changes:
        if each.ratio.is_known:
            (ratio,) = SPEEDUP.findall(duel.headline(replace(told, changes=[each])))
            said[each.point].pairs.append(Told(after, before, Bound.of(ratio[1]), Bound.of(ratio[2]), "duel"))


# what must agree


def _disagree(of: Said) -> Iterator[str]:
    """Yield what contradicts at a point."""
    pairs = [*of.pairs, *(each.reverse for each in of.pairs)]
    for number, one in enumerate(pairs):
        for other in pairs[number + 1 :]:
            if (one.one, one.other) == (other.one, other.other) and (
                one.low.is_above(other.high) or other.low.is_above(one.high)
            ):
                yield f"{one}, but {other}"
    yield from (line for pair in pairs for line in _beside_bounds(pair, of))
    for name, low, high, where in of.slower:
        if low.value > high.value:
            yield f"{name} is slower by {low.value:.4g} to {high.value:.4g} ({where})"
        for rival, there in of.may_be_fastest:
            is_slower = low.value > 1 and "bound" not in where
            if rival == name and is_slower and name in of.fastest:
                yield f"{name} is the fastest ({there}), but slower by {low.value:.4g} at least ({where})"
            if rival == name and is_slower and low.is_above(Bound(1.02, 0)):
                yield f"{name} may be the fastest ({there}), but is slower by {low.value:.4g} at least ({where})"
    yield from _unpaid(of)
    yield from _opposed(of)


def _beside_bounds(pair: Told, of: Said) -> Iterator[str]:
    """Yield where a pair says more of its slower one than that one's bounds do."""
    for name, low, high, where in of.slower:
        if name != pair.other:
            continue
        if pair.low.is_above(high):
            yield f"{pair}, but {name} is slower by {high.value:.4g} at most ({where})"
        if "bound" not in where and pair.low.is_above(low):
            yield f"{pair}, but {name} is slower by only {low.value:.4g} at least ({where})"


def _unpaid(of: Said) -> Iterator[str]:
    """Yield where compiling never pays, or does, though nothing says that one of the two is slower."""
    lows = {name: low.value for name, low, _, where in of.slower if where == "terminal"}
    for name, paid in of.pays.items():
        slower = name if paid == "never" else name_of(name).compiled_from if "calls" in paid else None
        if slower in lows and lows[slower] <= 1:
            yield f"compiling {name} pays after: {paid}, but {slower} may be the fastest"


def _opposed(of: Said) -> Iterator[str]:
    """Yield where medians say the opposite of a ratio without a word on it."""
    for pair in of.pairs:
        one, other = of.medians_s.get(pair.one), of.medians_s.get(pair.other)
        if pair.where != "terminal" or not (one and other) or pair.one in of.explained:
            continue
        if (pair.low.value > 1 and one > other * 1.002) or (pair.high.value < 1 and one < other / 1.002):
            yield f"{pair}, but its median is {one:.3g} s, the other's {other:.3g} s"


def _miscounted(text: str, rows_at: Mapping[Point, Sequence[Row]], sweep: Sweep | None) -> Iterator[str]:
    """Yield each number of cases or points that isn't that of the plan, or of the cases that have a time."""
    points = len(sweep.points if sweep else rows_at)
    planned = points * len(sweep.implementations) if sweep else sum(map(len, rows_at.values()))
    measured = sum(row["status"] == "ok" for rows in rows_at.values() for row in rows)
    text = text.replace(",", "") if re.search(r"\d,\d{3}\b", text) else text
    for number in re.findall(r"(?:[Aa]ll|none of|\d+ of) (\d+) cases", text):
        if int(number) != planned:
            yield f"{number} cases, planned are {planned}"
    for number in re.findall(r"of (\d+) measured cases?", text):
        if int(number) != measured:
            yield f"{number} measured cases, measured are {measured}"
    for number in re.findall(r"\bat (?:all |\d+ of |the \d+ of |\d+ of the \d+ of )(\d+) points", text):
        if int(number) != points and f"at {number} of" not in text:
            yield f"{number} points, planned are {points}"
    if measured < planned and re.search(r"[Aa]ll (\d+ )?cases were measured", text):
        yield f"all were measured, but {planned - measured} of {planned} have no time"


def _named(answer: str, rows_at: Mapping[Point, Sequence[Row]], sweep: Sweep | None) -> Iterator[str]:
    """Yield where the first sentences name one for points that weren't measured, or that hardly any point compares."""
    points = len(sweep.points if sweep else rows_at)
    match = re.search(rf"\b[Uu]se {NAME}:", answer)
    if match is None:
        return
    tried = len(rows_at)
    ok = [[row["implementation"] for row in rows if row["status"] == "ok"] for rows in rows_at.values()]
    compared = sum(match[1] in names and len(names) > 1 for names in ok)
    if tried < points and f"of {points:,} points that" not in answer:
        yield f"{match[1]} is named without a word on {points - tried} points that wait"
    if 2 * compared <= tried and tried > 1:
        yield f"{match[1]} is named, and compared at {compared} of {tried} points"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
