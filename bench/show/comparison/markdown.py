"""A comparison as Markdown, fit for a comment on a pull request."""

import itertools
import re
from collections.abc import Sequence

from bench.show.comparison.headline import headline
from bench.show.comparison.report import (
    ONE_SIDED,
    STAMP,
    Report,
    change,
    counts,
    explanations,
    failure,
    implementations,
    side,
)
from bench.show.rows import Row

MATTER = ("slower", "newly failing", "missing", "new", "fixed", "faster")
"""Verdicts whose rows are visible at once; others are folded, and so are those of one run alone if they are most."""

MOST_CHARACTERS = 60_000
"""A comment on GitHub holds 65,536; the rest is left for what people write around it."""

LONGEST = 400
"""Characters of the reason of a failure that are shown; the run's journal has all of it."""

TITLES = ("verdict", "implementation", "point", "change", "base", "new")
RIGHT = ("change", "base", "new")

RULE, FOLD, UNFOLD = "| ---", "<details><summary>", "</details>"

FORMATTING, ESCAPED = re.compile(r"([\\`*_<\[])"), r"\\\1"

Block = list[str]
"""Lines that belong together; blocks are set apart by an empty line."""


def markdown(report: Report) -> str:
    """Return the comparison as Markdown: the counts, the rows that matter, and the rest folded away.

    Every line of a forced comparison holds the stamp. Rows that don't fit into a comment are counted.
    """
    stamp = _stamped if report.unlike else str
    rows = report.rows
    in_the_open = [verdict for verdict in MATTER if not (report.few_shared and verdict in ONE_SIDED)]
    matter = [row for row in rows if row["verdict"] in in_the_open]
    rest = [row for row in rows if row["verdict"] not in in_the_open]
    fixed = [*([line] for line in _opening(report)), _list(report.notes), _list(explanations(report))]
    *opening, notes, legend = [[stamp(line) for line in block] for block in fixed]
    room = MOST_CHARACTERS - sum(len(line) + 1 for block in fixed for line in block)
    fitted_blocks = []
    for block in (_summary(report), _table(matter, report), _failures(matter, report), _table(rest, report)):
        fitting, room = _fitting([stamp(line) for line in block], room)
        if left_out := len(block) - len(fitting):
            fitting += ["", stamp(f"{left_out} more are left out, because a comment has no room for them")]
        fitted_blocks.append(fitting)
    summary, table, failures, folded = fitted_blocks
    fold = [stamp(f"{FOLD}the other {len(rest)} rows: {counts(rest)}</summary>" if rest else f"{FOLD}legend</summary>")]
    blocks = [*opening, summary, table, failures, notes, fold, folded, legend, [UNFOLD]]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _opening(report: Report) -> list[str]:
    baseline = [f"by speed-ups over {_code(report.baseline)}"] if report.baseline else []
    reasons = "; ".join(report.unlike)
    conditions = [f"measured under different conditions: {_code(reasons)}"] if reasons else []
    first = [f"**{FORMATTING.sub(ESCAPED, line)}**" for line in headline(report)]
    return [*first, *conditions, " · ".join([report.shared, *baseline])]


def _list(lines: Sequence[str]) -> Block:
    return ["- " + FORMATTING.sub(ESCAPED, line) for line in lines]


def _table(rows: Sequence[Row], report: Report) -> Block:
    """Return a table of rows."""
    if not rows:
        return []
    rules = ["---:" if title in RIGHT else "---" for title in TITLES]
    return [f"| {' | '.join(line)} |" for line in (TITLES, rules, *(_cells(row, report) for row in rows))]


def _summary(report: Report) -> Block:
    """Return a table with a row for each implementation."""
    lines = [
        (_code(each.name), str(each.rows), each.median, each.excluded, each.verdicts)
        for each in implementations(report)
    ]
    titles = ("implementation", "rows", "middle change", "no change above", "verdicts")
    rules = ("---", "---:", "---:", "---:", "---")
    return [f"| {' | '.join(line)} |" for line in (titles, rules, *lines)] if lines else []


def _cells(row: Row, report: Report) -> list[str]:
    words = (
        row["verdict"],
        _code(row["implementation"]),
        report.point(row),
        change(row),
        side(row, "base"),
        side(row, "new"),
    )
    return [word.replace("|", r"\|") for word in words]


def _failures(rows: Sequence[Row], report: Report) -> Block:
    return [
        f"- newly failing: {_code(row['implementation'])} {report.point(row)}".rstrip()
        + f": {_code(failure(row)[:LONGEST])}"
        for row in rows
        if row["verdict"] == "newly failing"
    ]


def _code(text: str) -> str:
    # text of other programs must neither format anything nor mention a user
    return "`" + text.replace("`", "'") + "`"


def _fitting(lines: Block, room: int) -> tuple[Block, int]:
    """Return the first lines that fit, and the room that is left: 0 if a line was left out."""
    ends = list(itertools.accumulate(len(line) + 1 for line in lines))
    fitting = [line for line, end in zip(lines, ends, strict=True) if end <= room]
    return fitting, 0 if len(fitting) < len(lines) else room - (ends[-1] if ends else 0)


def _stamped(line: str) -> str:
    """Return a line with the stamp after its leading markup; a row of a table gets a cell with the stamp."""
    if line.startswith("|"):
        return f"{RULE} {line}" if line.startswith(RULE) else f"| {STAMP} {line}"
    markup = next(start for start in ("- ", FOLD, "") if line.startswith(start))
    return f"{markup}{STAMP}: {line.removeprefix(markup)}"
