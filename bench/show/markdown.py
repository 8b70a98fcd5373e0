"""The writer of blocks as Markdown that fits into a comment on a pull request."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from bench.plan.controls import visible
from bench.show.blocks import GAP, HEAD, Block, Code, Column, Folded, Lines, Table

MOST_CHARACTERS = 60_000
"""A comment on GitHub holds 65,536 characters; the rest is left for the author's own words."""

LONGEST_FOREIGN = 400
"""The most characters that are shown of other programs' text; the run's journal has all of it."""

FOLD, UNFOLD = "<details><summary>", "</details>"

FORMATTING, ESCAPED = re.compile(r"([\\`*<\[]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))"), r"\\\1"
"""The pattern of formatting characters, and its escape; an underscore inside a word formats nothing."""

Part = tuple[list[str], bool]
"""Lines that belong together, and whether they may be cut; an empty line separates parts."""


def markdown(blocks: Iterable[Block]) -> str:
    """Return blocks as Markdown.

    Table rows and other programs' text that don't fit into a comment are left out and counted.
    """
    marked = [part for block in blocks for part in _parts(block) if part[0]]
    room = MOST_CHARACTERS - sum(len(line) + 1 for lines, may_be_cut in marked if not may_be_cut for line in lines)
    texts = []
    for lines, may_be_cut in marked:
        fitting = lines
        if may_be_cut:
            fitting, room = _fitting(lines, room)
            if left_out := len(lines) - len(fitting):
                fitting = [*fitting, "", f"{left_out} more are left out, because a comment has no room for them"]
        texts.append("\n".join(fitting))
    return visible("\n\n".join(texts)) + "\n"


def _parts(block: Block) -> Iterator[Part]:
    match block:
        case Lines():
            if block != GAP:
                yield from _lines(block)
        case Table():
            yield _table(block), True
        case Code():
            yield ([f"```{block.language}", *block.lines, "```"] if block.lines else []), False
        case Folded():
            yield [f"{FOLD}{block.title}</summary>"], False
            yield from _parts(block.content)
            yield from _lines(block.notes)
            yield [UNFOLD], False


def _lines(block: Lines) -> Iterator[Part]:
    written = [_foreign(line) if block.is_foreign else FORMATTING.sub(ESCAPED, line) for line in block.lines]
    if block.is_list:
        yield [f"- {line}" for line in written], block.is_foreign
    else:
        yield from (([f"**{line}**" if block.tone == HEAD else line], False) for line in written)


def _table(block: Table) -> list[str]:
    """Return the headings and the rows, or a list without headings; empty without rows."""
    if not block.rows:
        return []
    columns = block.filled.columns
    titles = [column.heading for column in columns]
    rules = ["---:" if column.number else "---" for column in columns]
    rows = [[_cell(column, column.text(row)) for column in columns] for row in block.rows]
    if block.in_sections:
        for before, row in reversed([*itertools.pairwise(rows)]):
            row[0] = "" if row[0] == before[0] else row[0]
    if not any(titles):
        return [f"- {': '.join(row)}" for row in rows]
    return [f"| {' | '.join(line)} |" for line in (titles, rules, *rows)]


def _cell(column: Column, text: str) -> str:
    whole = " ".join(text.split())
    written = _code(whole) if column.is_code and whole else whole if column.number else FORMATTING.sub(ESCAPED, whole)
    return written.replace("|", r"\|")


def _foreign(line: str) -> str:
    """Return a line with the text after its first colon as code, cut if long."""
    about, _, text = line.partition(": ")
    return f"{FORMATTING.sub(ESCAPED, about)}: {_code(text[:LONGEST_FOREIGN])}"


def _code(text: str) -> str:
    # text of other programs must neither format anything nor mention a user
    return "`" + text.replace("`", "'") + "`"


def _fitting(lines: Sequence[str], room: int) -> tuple[list[str], int]:
    """Return the first lines that fit, and the remaining room: 0 if a line was left out."""
    ends = list(itertools.accumulate(len(line) + 1 for line in lines))
    fitting = [line for line, end in zip(lines, ends, strict=True) if end <= room]
    return fitting, 0 if len(fitting) < len(lines) else room - (ends[-1] if ends else 0)
