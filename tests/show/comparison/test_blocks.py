"""A comparison in the terminal, as Markdown, CSV and JSON: worst first, and nothing open reads as equal."""

import io
import json
import math
import re
from typing import Any

import pandas as pd
import pytest

from bench.analyse.comparison import compare
from bench.plan.again import MOST_COMMANDS, Again
from bench.plan.case import CASE_COLUMNS
from bench.plan.verdicts import VERDICTS
from bench.show.comparison.blocks import as_csv, as_json, blocks
from bench.show.comparison.report import EVENTS, STAMP, Report
from bench.show.markdown import MOST_CHARACTERS, markdown
from bench.show.terminal.console import rendered
from bench.stats.limits import Limits
from tests.make.comparisons import NOISY, every_verdict
from tests.make.records import case
from tests.make.rows import Row as Values
from tests.make.rows import at, baseline, cases, failed, of_layers, row, table

TOKENS = case("tokens")
LISTED = "^([a-z ]+?) +tokens_"
FOLD = "<details><summary>"


@pytest.mark.parametrize(
    ("base", "new", "cells"),
    [
        # sd 0.1 % on both sides of 3 processes: standard error 0.0816 %, times t(4) = 2.776
        (at(TOKENS, 2.0, latency_s=0.0181), at(TOKENS, 1.9, latency_s=0.00042), "-5.0% ±0.23% 18.1 ms 420 µs"),
        (row(TOKENS, [0.0]), row(TOKENS, [0.1]), "+10.5% ±? 20.0 ms 20.0 ms"),
        (row(TOKENS, status="ok"), row(TOKENS, status="ok"), "no ratio 20.0 ms 20.0 ms"),
        (at(TOKENS, 1.0), at(TOKENS, 0.9999), "+0.0% ±0.23% 20.0 ms 20.0 ms"),
    ],
    ids=["5 % less speed-up", "one process", "the baseline failed", "rounds to nothing"],
)
def test_a_row_says_change_interval_and_both_raw_times(base: Values, new: Values, cells: str) -> None:
    """An interval that is not known, and a ratio, are neither left out nor 0; -0.0% would read as a loss."""
    assert " ".join(line_of(compare(table(base), table(new)), "tokens").partition("tokens")[2].split()) == cells


def test_a_row_says_what_differs_and_a_failure_is_explained() -> None:
    """The status stands in the row, the detail under the table; what varies stands in rows, the rest above them."""
    new = failed(case("sdpa"), "crashed", "signal 11 [core dumped]")
    said = shown(compare(table(at(case("sdpa"), 1.0)), table(new)))
    assert re.search(r"^newly failing +sdpa .*20\.0 ms +crashed$", said, re.MULTILINE)
    assert re.search(r"^newly failing: sdpa: crashed: signal 11 \[core dumped\]$", said, re.MULTILINE)
    rows = [at(case("sdpa", num_tokens=tokens), 1.0) for tokens in (50, 1024)]
    first, *rest = shown(Report(compare(table(*rows), table(*rows)), shows_all=True)).splitlines()[2:]
    assert "vit" in first
    assert "C=384" in first
    assert "N=" not in first
    assert sum("N=50 " in line for line in rest) == sum("N=1024 " in line for line in rest) == 1
    assert not any("C=384" in line for line in rest)


def test_rows_stand_worst_first_and_are_counted_in_the_last_line() -> None:
    """From slower down, and of one verdict slowest first; notes stand before the counts."""
    text = shown(Report(every_verdict(), notes=("one [note]", "another"), shows_all=True), width=200)
    assert re.findall(LISTED, text, re.MULTILINE) == list(VERDICTS)
    assert text.splitlines()[-3:] == ["one [note]", "another", ", ".join(f"1 {name}" for name in VERDICTS)]
    assert STAMP not in text
    changes = {"tokens_a": 0.9, "tokens_b": 0.7, "tokens_c": 0.8}
    base, new = (table(*(at(case(name), change**n) for name, change in changes.items())) for n in (0, 1))
    assert re.findall("^slower +tokens_(.)", shown(compare(base, new)), re.MULTILINE) == ["b", "c", "a"]


def test_open_is_never_shown_as_the_same() -> None:
    """The row, the implementation and the count of such a verdict say open."""
    noisy = row(case("tokens"), NOISY)
    said = shown(compare(table(noisy), table(noisy)))
    assert re.search(r"^tokens +1 +\+0\.0% +8% +1 open$", said, re.MULTILINE)
    assert line_of(compare(table(noisy), table(noisy)), "tokens").split()[:2] == ["open", "tokens"]
    assert said.splitlines()[-1] == "1 open"
    assert not re.search(r"\b(same|equal|unchanged)\b", said)


def test_rows_are_listed_if_they_changed_or_if_all_are_asked_for() -> None:
    """The others are counted, with how to see them; those of one run alone are never listed if they are most."""
    whole, some = (shown(Report(every_verdict(), shows_all=shows_all)) for shows_all in (True, False))
    assert re.findall(LISTED, some, re.MULTILINE) == ["slower", "newly failing", "fixed", "faster"]
    assert re.findall(LISTED, whole, re.MULTILINE) == list(VERDICTS)
    assert "not listed: 6 rows; --all lists them" in some
    assert "not listed" not in whole
    base, new = (table(*(at(each, 1.0) for each in own)) for own in (cases(4), cases(6)[3:]))
    for shows_all in (True, False):
        said = shown(Report(compare(base, new), shows_all=shows_all))
        assert ("not listed: 5 rows; --format csv" in said) == shows_all
        assert not re.search("^(missing|new) ", said, re.MULTILINE)


def test_limits_and_baseline_are_named() -> None:
    """If no row changed none is listed."""
    run = table(at(case("sdpa"), 1.0), at(case("mha"), 2.0))
    assert "\nverdict " not in shown(compare(run, run))
    text = shown(Report(every_verdict(), Limits(margin=0.005)))
    assert all(words in text for words in ("over tokens_baseline", "0.5%", "1%", "equivalent: within 2%"))
    assert "over sdpa" in shown(Report(every_verdict(), rebased_to="sdpa"))


@pytest.mark.parametrize(("width", "colour"), [(60, True), (40, False)])
def test_every_line_of_a_forced_comparison_is_stamped(width: int, colour: bool) -> None:
    """Whatever line is quoted says that it compares what can't be compared; the first says why, none is too long."""
    new = failed(case("sdpa"), "crashed", "signal 11\n[core dumped]")
    comparison = compare(table(at(case("sdpa"), 1.0)), table(new))
    report = Report(comparison, unlike=("cores: 2 against 8", "torch: '2.13.0' against '2.14.0'"), notes=("a note",))
    lines = re.sub(
        r"\x1b\[[0-9;]*m", "", rendered(blocks(report), report.mark, width=width, colour=colour)
    ).splitlines()
    assert all(line.startswith(f"{STAMP} |") for line in lines)
    assert max(map(len, lines)) <= width
    said = "".join(lines).replace(f"{STAMP} |", "").replace(" ", "")
    assert said.startswith("measuredunderdifferentconditions:cores:2against8;torch:")


@pytest.mark.parametrize("width", [80, 60])
def test_no_line_is_wider_than_the_console(width: int) -> None:
    """Rows fold rather than run over, and no verdict is cut; at 80 columns those of quick take a line."""
    long = case("a_package.of_somebody.kernels:the_function_that_adapts", token_len=49, channels=64, num_heads=4)
    base = table(at(long, 1.0), at(case("sdpa", batch=13), 1.0))
    text = shown(compare(base, table(at(long, 0.9), failed(case("sdpa", batch=13)))), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert re.search("^newly failing ", text, re.MULTILINE)
    assert "adapts" in "".join(text.split())
    points: list[dict[str, Any]] = [
        {},
        {"batch": 13, "num_tokens": 100, "token_len": 49, "channels": 64, "num_heads": 4},
        {"num_tokens": 1024, "num_heads": 12, "channels": 768, "token_len": 768},
    ]
    base = table(*(at(case("compiled_eager", **one), 1.0, latency_s=0.127) for one in points))
    new = table(*(at(case("compiled_eager", **one), 0.9, latency_s=0.0181) for one in points))
    assert len(re.findall("^slower.*127 ms 18.1 ms$", shown(compare(base, new), width=80), re.MULTILINE)) == 3


def shown(comparison: pd.DataFrame | Report, width: int = 120) -> str:
    """Return what a console without colours shows."""
    report = comparison if isinstance(comparison, Report) else Report(comparison)
    return rendered(blocks(report), report.mark, width=width)


def line_of(comparison: pd.DataFrame, word: str) -> str:
    """Return the first line of the table that holds the word."""
    text = shown(Report(comparison, shows_all=True))
    return next(line for line in text.partition("\nverdict ")[2].splitlines() if word in line)


# As Markdown


def written(report: Report) -> str:
    """Return a comparison as Markdown."""
    return markdown(blocks(report), report.mark)


def verdicts(text: str) -> list[str]:
    """Return the verdicts of the rows of a Markdown table."""
    return re.findall(r"^\| ([a-z ]+) \| `", text, re.MULTILINE)


def test_a_comment_begins_with_what_changed_and_then_each_implementation() -> None:
    """The first lines say how it ended, and by ratios to what; then a table has a row for each that was judged."""
    first, second, summary, *_ = written(Report(every_verdict())).split("\n\n")
    assert first.startswith("**1 row is slower: tokens_slower -20.0%; 1 row is newly failing: ")
    assert second.endswith("by speed-ups over tokens_baseline")
    judged = ("equivalent", "faster", "open", "slower")
    assert re.findall(r"^\| `tokens_(\w+)` \| 1 \|.*\| 1 (\w+) \|$", summary, re.MULTILINE) == [(n, n) for n in judged]


def test_what_changed_stands_in_the_open_and_the_rest_is_folded_away() -> None:
    """Every row is in one of the two tables, worst first; without a change there is none in the open."""
    before, after, _commands = written(Report(every_verdict())).split(FOLD)
    assert verdicts(before) == [name for name in VERDICTS if name in EVENTS]
    assert verdicts(after) == [name for name in VERDICTS if name not in EVENTS]
    assert after.startswith("the other 6 rows: 1 missing, 1 open, 1 not measured, 1 new, 1 equivalent, 1 base")
    run = table(baseline(), at(case("sdpa"), 1.0))
    before, after = written(Report(compare(run, run))).split(FOLD)
    assert verdicts(before) == []
    assert after.startswith("the other 2 rows: 1 equivalent, 1 baseline</summary>")
    slower = Report(compare(table(at(case("sdpa"), 1.0)), table(at(case("sdpa"), 0.8))))
    assert written(slower).split(FOLD)[1].startswith("legend</summary>\n\n- change: ")


def test_each_row_that_changed_has_its_command() -> None:
    """A comment folds them away, worst first, of many rows the worst; none stand in one that is forced."""
    again = Again("eager", control=False)
    before, _, commands = written(Report(every_verdict(), again=again)).split(FOLD)
    changed = re.findall(r"^\| (?:slower|faster|newly failing|fixed) \| `(\w+)`", before, re.MULTILINE)
    lines = commands.split("```")[1].splitlines()
    assert lines[0] == "sh"
    assert [word for line in lines[1:] for word in changed if f"--impl {word} " in line] == changed
    assert all(line.endswith("--baseline eager --no-control") == ("as_is" in line) for line in lines[1:])
    names = [f"slow_{number}" for number in range(MOST_COMMANDS + 1)]
    pairs = [table(*(at(case(name), speed) for name in names)) for speed in (1.0, 0.8)]
    many = written(Report(compare(*pairs), again=again))
    assert "the worst 8 of 9 changed rows" in many
    assert many.count("--no-control") == MOST_COMMANDS
    assert "--no-control" not in written(Report(every_verdict(), unlike=("threads",), again=again))


def test_tables_are_whole() -> None:
    """Each row has as many cells as its titles, whatever a name holds, and a table stands by itself."""
    name = "a|b:__c__"
    run = table(row(case(name), NOISY, latency_s=0.0181))
    text = written(Report(compare(run, run)))
    for block in f"{text}\n\n{written(Report(every_verdict()))}".split("\n\n"):
        if block.startswith("|"):
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1
        else:
            assert "\n|" not in block
    assert re.search(r"\| open \| `a\\\|b:__c__` \| [^|]* \| \+0\.0% ±7\.0% \| 18\.1 ms \| 18\.1 ms \|", text)


def test_text_of_other_programs_formats_nothing() -> None:
    """Such text calls nobody, ends no cell and no span, and is cut where it is long.

    A star in a note is no emphasis.
    """
    new = failed(case("sdpa"), "error", "`@somebody` | <b>\n" + "x" * 10_000)
    notes = ("state of _compiled_sdpa_: *new* <b>", "another")
    text = written(Report(compare(table(at(case("sdpa"), 1.0)), table(new)), notes=notes))
    (line,) = [line for line in text.splitlines() if line.startswith("- newly failing")]
    assert line.startswith("- newly failing: `sdpa: error: '@somebody' | <b> xxx")
    assert line.endswith("xxx`")
    assert len(line) < 500
    assert "\n\n- state of \\_compiled_sdpa\\_: \\*new\\* \\<b>\n- another\n\n" in text


def test_a_comment_has_room_for_it() -> None:
    """Of a thousand rows the worst are shown, and those that are left out are counted; the fold is closed."""
    many = [each for name in ("sdpa", "mha") for each in cases(500, name)]
    base = table(*(at(one, 1.0) for one in many))
    new = table(*(at(one, 0.8 if one.implementation == "sdpa" else 1.0) for one in many))
    text = written(Report(compare(base, new), unlike=("cores: 2 against 8",)))
    assert MOST_CHARACTERS * 0.9 < len(text) < 65_536
    assert text.startswith(f"{STAMP}: measured under different conditions: `cores: 2 against 8`")
    assert "**500 rows are slower" in text
    assert "\n</details>\n" in text
    of_implementations = 2
    rows = sum(line.startswith("| ") and "`" in line for line in text.splitlines()) - of_implementations
    assert rows + sum(map(int, re.findall(r"(\d+) more are left out", text))) == 1000


def test_csv_and_json_hold_every_row_in_full() -> None:
    """Worst first, with case, verdict and what it refers to; what doesn't apply is null in JSON and empty in CSV."""
    report = Report(every_verdict())
    rows, cells = json.loads(as_json(report))["rows"], read(as_csv(report))
    assert cells["verdict"].tolist() == list(VERDICTS)
    assert set(cells["baseline"]) == {"tokens_baseline"}
    assert cells["stamp"].isna().all()
    assert {*CASE_COLUMNS, "change", "p_holm", "base_latency_s"} <= set(cells.columns)
    assert [list(one) for one in rows] == [cells.columns.tolist()] * len(cells)
    for place, one in enumerate(rows):
        for name, value in one.items():
            cell = cells[name][place]
            assert pd.isna(cell) if value is None else str(cell) == str(value) or float(cell) == pytest.approx(value)
    third = Report(compare(table(at(case("sdpa"), 3.0)), table(at(case("sdpa"), 1.0))))
    assert json.loads(as_json(third))["rows"][0]["change"] == third.comparison["change"][0]
    assert float(read(as_csv(third))["change"][0]) == third.comparison["change"][0]


def test_json_says_limits_counts_and_notes() -> None:
    """What a program needs to know of the whole."""
    report = Report(every_verdict(), Limits(margin=0.03), rebased_to="sdpa", notes=("a note",))
    content = json.loads(as_json(report))
    assert (content["margin"], content["equivalence"], content["level"]) == (0.03, 0.03, 0.01)
    assert (content["baseline"], content["rebased"], content["notes"]) == ("sdpa", True, ["a note"])
    assert (content["counts"], content["stamp"]) == (dict.fromkeys(VERDICTS, 1), None)


def test_json_has_no_infinity_and_the_columns_of_all_layers() -> None:
    """An endless interval is null; cases of all layers come out as they went in."""
    wild = table(row(case("sdpa"), [0.0, 1.0]))
    content = json.loads(as_json(Report(compare(wild, wild).assign(change_low=0.0, change_high=math.inf))))
    (one,) = content["rows"]
    assert (one["change_high"], one["change_low"]) == (None, 0)
    assert "excludes no change" in content["summary"][0]
    run = table(*(at(one, 1.0) for one in of_layers()))
    rows = json.loads(as_json(Report(compare(run, run))))["rows"]
    assert [{name: one[name] for name in CASE_COLUMNS} for one in rows] == [one.columns() for one in of_layers()]


def read(text: str) -> pd.DataFrame:
    """Return what a program reads that knows nothing of us."""
    return pd.read_csv(io.StringIO(text))
