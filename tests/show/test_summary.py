"""The line of a point, and the end of a run."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from bench.plan.case import Case
from bench.plan.sweep import Sweep
from bench.show import summary
from bench.show.answer import At, points_of
from bench.show.blocks import Table
from bench.show.doubts import warnings
from bench.show.summary import MOST_LINES, log_line
from bench.show.terminal.console import rendered
from bench.store.saved_run import SavedRun
from tests.make.points import vit_s
from tests.make.results import quick, results, timed

ROOT = Path(__file__).parents[2]

CASES = [Case(vit_s(), name) for name in ("eager", "manual", "sdpa", "mha")]


def lines(table: pd.DataFrame, width: int = 80, planned: Sweep | None = None) -> list[str]:
    """Return the lines at the end of a run."""
    return rendered(summary.blocks(table, "eager", planned=planned), width=width).splitlines()


def test_quick_ends_in_some_thirty_lines_of_eighty_characters() -> None:
    """The answer, a line for each point, what failed, the machine, where the page is; a log has the time left."""
    printed = lines(quick())
    where = summary.where(Path("results/run"), Path("results/run/report.html"))
    assert len(printed) + len(where) <= 32
    assert max(map(len, printed)) <= 80
    assert printed[0].startswith("Use ")
    labels = [at.label for at in points_of(quick())]
    assert [next(line for line in printed if line.startswith(label)) for label in labels]
    text = " ".join(printed)
    assert "The machine was quiet" in text
    assert where[0] == "The page: results/run/report.html"
    assert summary.where(Path("results/run"), None)[0] == "Everything is in results/run"
    for number, at in enumerate(points_of(quick()), start=1):
        line = log_line(at, number, 12, "4m10s", "eager", 118)
        assert line.startswith(f"[{number:>2}/12] {at.label}: ")
        assert line.endswith("(~4m10s left)")
        assert len(line) <= 118


def test_a_real_run_ends_in_some_thirty_lines() -> None:
    """The published one has rows with warnings."""
    table = SavedRun(ROOT / "results/published/decode-xeon-2core").whole
    printed = lines(table, 100)
    assert len(printed) <= 30
    assert warnings(table)


def test_many_points_are_counted_and_no_reason_is() -> None:
    """The end of a run stays short: of many points the last are counted. Each reason is worth a line."""
    cases = [Case(vit_s(), name) for name in ("eager", "sdpa", "mha", "flex", "online")]
    printed = lines(results(cases, {each: ("error", f"of {each.implementation}") for each in cases[1:]}))
    assert all(f"  {each.implementation}: error: of {each.implementation}" in printed for each in cases[1:])
    many = timed([vit_s(num_tokens=5 + n) for n in range(MOST_LINES + 3)], {"eager": 2.0, "sdpa": 1.0}, 2)
    assert "… and 3 more points" in lines(many)


def test_what_is_odd_about_a_measured_case_is_said_once() -> None:
    """A slow import of an implementation is one line for all points, at the end of a run."""
    whole = timed([vit_s(num_tokens=5), vit_s(num_tokens=7)], {"eager": 2.0, "sdpa": 1.0}, 2)
    slow = "its import takes 3 s in every process"
    whole.loc[whole["implementation"] == "sdpa", "detail"] = slow
    assert [line for line in lines(whole) if "import" in line] == [f"sdpa: {slow}"]


LONG = [Case(vit_s(num_tokens=number), name) for number in (50, 197) for name in ("eager", "sdpa")]


def command(lines: list[str]) -> list[str]:
    """Return the arguments of the command that the last lines of a run name, none if they name none."""
    commands = [shlex.split(line)[-2:] for line in lines if "python -m bench" in line]
    assert len(commands) <= 1
    return commands[0] if commands else []


def test_a_baseline_that_failed_comes_first_and_a_quiet_machine_would_not_help() -> None:
    """If all rivals failed, that is the cause, however busy the machine was; beside a comparison the advice stands."""
    died, wrong = ("crashed", "killed by SIGSEGV"), ("incorrect", "is off")
    compared = results(CASES, {CASES[0]: died}).assign(flagged_share=0.9)
    alone = results(CASES, {CASES[0]: died, CASES[1]: wrong, CASES[2]: wrong}).assign(flagged_share=0.9)
    for of, helps in ((compared, True), (alone, False)):
        printed = lines(of, 200)
        assert printed[0].startswith("The baseline eager failed")
        assert "SIGSEGV" in printed[0]
        assert any(line.startswith("What helps") for line in printed) is helps
    more = Sweep("two", (CASES[0].point, vit_s(num_tokens=9)), tuple(case.implementation for case in CASES))
    assert not any(line.startswith("What helps") for line in lines(alone, 200, more))


def of_points(points: Sequence[At], width: int) -> list[str]:
    """Return the lines of a table of points in a terminal of this width."""
    blocks = [Table(summary.point_columns("eager"), summary.point_lines(points))]
    return rendered(blocks, width=width).splitlines()


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_line_fits(width: int) -> None:
    """The line's speed-up and its interval are whole in any width; what to use is named."""
    points = points_of(quick())
    printed = of_points(points, width)
    assert max(map(len, printed)) <= width
    for at, line in zip(points, printed[1:], strict=True):
        assert line.endswith(("]", "baseline"))
        assert at.choice.name in line


@pytest.mark.parametrize("width", [80, 100, 120, 180])
@pytest.mark.parametrize("number", [3, 8, 14])
def test_each_own_kernel_has_a_line_whose_numbers_are_whole(number: int, width: int) -> None:
    """However many there are and however long their names, which are shortened in the middle."""
    names = [f"kernels:one_of_several_with_a_name_of_many_characters_number_{n:02}_end" for n in range(number)]
    at = [vit_s(num_tokens=tokens, dtype=dtype) for tokens in (5, 197) for dtype in ("float32", "bfloat16")]
    times = {"eager": 2.0, "sdpa": 1.0, **{name: 1.5 + n / 100 for n, name in enumerate(names)}}
    table = timed(at, times, 3)
    failed = table["implementation"].eq(names[-1])
    table.loc[failed, "status"] = "incorrect"
    printed = of_points(points_of(table), width)
    assert max(map(len, printed)) <= width
    heads = [line for line in printed if "fastest: sdpa" in line]
    own = [line for line in printed if (line.lstrip().startswith("ker") and "…" in line) or "kernels:" in line]
    assert (len(heads), len(own)) == (len(at), len(at) * number)
    whole = [line for line in [*heads, *own] if "incorrect" not in line]
    assert all(re.search(r" s +[0-9.]+x +\[[0-9.]+, [0-9.]+\]$", line) for line in whole)
    assert sum(line.endswith(f"{names[-1][-6:]}: incorrect") for line in own) == len(at)
    assert all(any(line.split()[0].endswith(name[-6:]) for line in own) for name in names[:-1])


def test_what_is_too_long_to_be_used_is_named_all_the_same() -> None:
    """The name of the one to use is shortened in the middle, and how well that is known stays."""
    name = "kernels:one_with_a_name_of_many_characters_that_ends_so"
    (line,) = of_points(points_of(timed([vit_s()], {"eager": 2.0, name: 1.0}, 3)), 80)[1:]
    assert re.search(r"fastest: kern\S*…\S*so +1.0+ s|fastest: kern\S*…\S*so ", line)
