"""The gallery of published runs: every run stands there, with the command that made it and with its own numbers."""

import csv
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import commands
from bench.plan.invocation import without_options
from bench.show import intervals
from bench.stats.estimates import Interval
from bench.store.journal import JOURNAL

PUBLISHED = Path(__file__).parents[1] / "results" / "published"
GALLERY = (PUBLISHED / "README.md").read_text(encoding="utf-8")
DOCUMENTS = {"docs/cpu.md": (PUBLISHED.parents[1] / "docs/cpu.md").read_text(encoding="utf-8"), "gallery": GALLERY}

GONE = ("buckets", "onnxruntime_mha")
"""Implementations of published runs that the suite no longer has, so commands are shown without them."""

RATIO = re.compile(r"(\d+\.\d+x) \[(\d+\.\d+), (\d+\.\d+)\]")


def sections() -> dict[str, str]:
    """Return the text of each section by the folder of its run, which its heading links."""
    parts = re.split(r"^## ", GALLERY, flags=re.MULTILINE)[1:]
    return {match[1]: part for part in parts if (match := re.match(r"\[[^\]]+\]\(([\w-]+)\)", part))}


def runs(folder: Path) -> list[Path]:
    """Return the run folders in a folder of the gallery: itself, or those inside that were measured by a command."""
    return [folder] if (folder / JOURNAL).exists() else sorted(path.parent for path in folder.glob(f"*/{JOURNAL}"))


RUNS = [run for name in sections() for run in runs(PUBLISHED / name)]


def words_of(run: Path) -> list[str]:
    """Return the words of the command that made a run, without the implementations that are gone."""
    words = json.loads((run / "environment.json").read_text())["context"]["command"]
    kept = (",".join(each for each in word.split(",") if each not in GONE) for word in words[1:])
    return without_options([*kept], "--run")


def shown(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of a text, those after the environment that nox makes."""
    for block in re.findall(r"^```\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words[:2] == ["nox", "-s"]:
                yield without_options([words[2], *words[4:]], "--run")
            elif words[:3] == ["python", "-m", "bench"]:
                yield words[3:]


def ratios(run: Path) -> set[tuple[str, ...]]:
    """Return the speed-ups of a run with their intervals, as documents write them."""
    with (run / "results.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["speedup_low"]]
    ends = [Interval(*(float(row[name]) for name in ("speedup", "speedup_low", "speedup_high"))) for row in rows]
    return {
        match.groups() for decimals in (2, 3) for of in ends if (match := RATIO.match(intervals.ratio(of, decimals)))
    }


def test_every_published_run_is_in_the_gallery() -> None:
    """In a section of its own, whose heading links its folder."""
    assert sorted(sections()) == sorted(folder.name for folder in PUBLISHED.iterdir() if folder.is_dir())


@pytest.mark.parametrize("run", RUNS, ids=lambda run: str(run.relative_to(PUBLISHED)))
def test_the_command_of_a_section_is_that_of_its_run(run: Path) -> None:
    """They match word for word except for the folder and GONE; the name is a command or session that measures."""
    name = run.relative_to(PUBLISHED).parts[0]
    words = words_of(run)
    assert words in [*shown(sections()[name])]
    assert words[0] in (*commands.NAMES, "bench")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_ratio_that_is_told_stands_in_a_published_table(name: str) -> None:
    """With its interval, in the run of its section, or in any run for other documents."""
    every = {run: ratios(run) for run in RUNS}
    texts = sections() if name == "gallery" else {"": DOCUMENTS[name]}
    for part, text in texts.items():
        known = set().union(*(of for run, of in every.items() if run.relative_to(PUBLISHED).parts[0].startswith(part)))
        assert {match.groups() for match in RATIO.finditer(text)} <= known
