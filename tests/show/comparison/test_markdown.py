"""A comment on a pull request: the counts first, what matters in the open, the rest folded away."""

import re

import pytest

from bench.analyse.comparison.compare import compare
from bench.analyse.comparison.verdicts import VERDICTS
from bench.show.comparison.markdown import MATTER, MOST_CHARACTERS, markdown
from bench.show.comparison.report import STAMP, Report
from tests.analyse.tables import at, baseline, cases, failed, row, table
from tests.examples import case
from tests.show.comparison.example_comparisons import NOISY, every_verdict

FOLD = "<details><summary>"


def test_what_changed_comes_first_and_then_each_implementation() -> None:
    """The first lines say how it ended, and by ratios to what; then a table has a row for each that was judged."""
    first, second, table, *_ = markdown(Report(every_verdict())).split("\n\n")
    assert first.startswith("**1 row is slower: tokens\\_slower -20.0%; 1 row is newly failing: ")
    assert second.endswith("by speed-ups over `tokens_baseline`")
    judged = ("equivalent", "faster", "inconclusive", "slower")
    assert re.findall(r"^\| `tokens_(\w+)` \| 1 \|.*\| 1 (\w+) \|$", table, re.MULTILINE) == [(n, n) for n in judged]


def test_what_matters_stands_in_the_open_and_the_rest_is_folded_away() -> None:
    """Every row is in one of the two tables, worst first, and nothing open is taken for settled."""
    before, after = markdown(Report(every_verdict())).split(FOLD)
    assert verdicts(before) == [name for name in VERDICTS if name in MATTER]
    assert verdicts(after) == [name for name in VERDICTS if name not in MATTER]
    assert "inconclusive" in verdicts(after)
    assert after.startswith("the other 4 rows: 1 inconclusive, 1 not measured, 1 equivalent, 1 baseline</summary>\n\n|")


def test_tables_are_whole() -> None:
    """Each row has as many cells as its titles, and a table stands apart from what is around it."""
    for block in markdown(Report(every_verdict())).split("\n\n"):
        if block.startswith("|"):
            cells = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            assert len(cells) == 1
        else:
            assert "\n|" not in block


def test_a_row_says_what_the_terminal_says() -> None:
    """Change and interval, and both raw times."""
    run = table(row(case("tokens"), NOISY, latency_s=0.0181))
    said = markdown(Report(compare(run, run)))
    assert re.search(r"\| inconclusive \| `tokens` \| [^|]* \| \+0\.0% ±7\.0% \| 18\.1 ms \| 18\.1 ms \|", said)


def test_nothing_that_matters_is_no_table_in_the_open() -> None:
    """A pull request that changed nothing gets a line for each implementation; a fold may have the legend alone."""
    run = table(baseline(), at(case("sdpa"), 1.0))
    before, after = markdown(Report(compare(run, run))).split(FOLD)
    assert verdicts(before) == []
    assert after.startswith("the other 2 rows: 1 equivalent, 1 baseline</summary>")
    name = "a|b:__c__"
    before, after = markdown(Report(compare(table(at(case(name), 1.0)), table(at(case(name), 0.8))))).split(FOLD)
    assert r"| slower | `a\|b:__c__` |" in before
    assert after.startswith("legend</summary>\n\n- change: ")
    assert "|" not in after


def test_new_failures_are_explained_and_format_nothing() -> None:
    """What a foreign program printed calls nobody, ends no cell and no span, and is cut where it is long."""
    new = failed(case("sdpa"), "error", "`@somebody` | <b>\n" + "x" * 10_000)
    said = markdown(Report(compare(table(at(case("sdpa"), 1.0)), table(new))))
    (line,) = [line for line in said.splitlines() if line.startswith("- newly failing")]
    assert line.startswith("- newly failing: `sdpa`: `error: '@somebody' | <b> xxx")
    assert line.endswith("xxx`")
    assert len(line) < 500


def test_notes_are_a_list_that_formats_nothing() -> None:
    """An underscore or a star in a note is no emphasis."""
    said = markdown(Report(every_verdict(), notes=("state of compiled_sdpa: *new* <b>", "another")))
    assert "\n\n- state of compiled\\_sdpa: \\*new\\* \\<b>\n- another\n\n" in said


@pytest.mark.slow
@pytest.mark.parametrize("forced", [False, True])
def test_a_comment_has_room_for_it(forced: bool) -> None:
    """Of a thousand rows the worst are shown, and those that are left out are counted; the fold is closed."""
    many = cases(500)
    base = table(
        *(at(one, 1.0) for one in many), *(at(case("mha", num_tokens=one.point.num_tokens), 1.0) for one in many)
    )
    new = table(
        *(at(one, 0.8) for one in many), *(at(case("mha", num_tokens=one.point.num_tokens), 1.0) for one in many)
    )
    said = markdown(Report(compare(base, new), unlike=("cores: 2 against 8",) if forced else ()))
    assert MOST_CHARACTERS * 0.9 < len(said) < 65_536
    assert said.startswith(f"{STAMP}: " * forced + "**500 rows are slower")
    assert said.endswith("\n</details>\n")
    shown = (
        sum(line.startswith("| ") and "`" in line for line in said.splitlines()) - 2
    )  # a line of each implementation
    left_out = sum(map(int, re.findall(r"(\d+) more are left out", said)))
    assert shown + left_out == 1000


def test_every_line_of_a_forced_comment_is_stamped() -> None:
    """Whatever line is quoted says that it compares what can't be compared; markup alone says nothing."""
    said = markdown(Report(every_verdict(), unlike=("cores: 2 against 8",), notes=("a note",)))
    for line in said.splitlines():
        assert STAMP in line or line in ("", "</details>") or line.startswith("| --- |")
    assert f"{STAMP}: measured under different conditions: `cores: 2 against 8`" in said
    assert STAMP not in markdown(Report(every_verdict()))


def verdicts(text: str) -> list[str]:
    """Return the verdicts of the rows of a table."""
    return re.findall(r"^\| ([a-z ]+) \| `", text, re.MULTILINE)
