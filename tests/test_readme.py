"""What the documents say exists, and that their examples work."""

import argparse
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import Tensor

import impls
from bench.cli import main
from bench.commands import NAMES, arguments, options
from bench.engine import model_look
from bench.machine import facts
from bench.plan import names as lookup
from bench.plan.case import OF_LAYERS
from bench.plan.sweep import SWEEP_KEYS, Sweep, load_sweep, shipped_names
from impls.layers.vit import ViTAttention
from tests.modules.test_sources import has

ROOT = Path(__file__).parents[1]
IN_RESULTS = ("results/README.md", "results/published/README.md")
DOCUMENTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (*ROOT.glob("*.md"), *(ROOT / name for name in IN_RESULTS), *ROOT.glob("docs/*.md"))
}
README = DOCUMENTS["README.md"]
ALL = "\n".join(DOCUMENTS.values())
WORKFLOW = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
COMMANDS = [*NAMES]

OF_PYTEST = ("--collect-only", "--benchmark-", "--junitxml")
"""The beginnings of options of pytest and pytest-benchmark in the documents."""

KERNEL = "from impls.attend.eager import attend\n"


def blocks(text: str, language: str = "") -> list[str]:
    """Return the code blocks of a language in a document."""
    every = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [block for name, block in every if name == language]


def examples(language: str) -> dict[str, str]:
    """Return every example in a language by the name of its document and its number there."""
    return {
        f"{name}-{number}": block
        for name, text in DOCUMENTS.items()
        for number, block in enumerate(blocks(text, language), 1)
    }


def command_lines() -> Iterator[list[str]]:
    """Yield the words of every command in the documents, without comments."""
    for text in DOCUMENTS.values():
        lines = [
            *re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text),
            *(line for block in blocks(text) for line in block.splitlines()),
        ]
        typed = [re.sub(r"^\.nox/bench/bin/| -f PATH/noxfile.py", "", line) for line in lines]
        yield from (shlex.split(line, comments=True) for line in typed if line.startswith(("nox -s ", "python ")))


def measuring() -> list[list[str]]:
    """Return the options of every command that measures a sweep, those with a placeholder left out."""
    begins = (["nox", "-s", "bench", "--"], ["python", "-m", "bench", "run"], ["python", "-m", "pytest", "bench"])
    asked = [words[4:] for words in command_lines() if words[:4] in begins]
    return [words for words in asked if not {"[options]", "DIR", "RUN", "NAME", "…", "--help"} & {*words}]


def asked(words: list[str]) -> Sweep:
    """Return the sweep that options on the command line ask for."""
    parser = argparse.ArgumentParser()
    arguments.add_run(parser)
    given, others = parser.parse_known_args(words)
    assert all(word.startswith(OF_PYTEST) for word in others)
    return options.sweep(given)


def anchors(text: str) -> set[str]:
    """Return the anchors of a document's headings."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readme_is_short_and_leads_to_every_document() -> None:
    """Installing nox and a first question come first. It has fewer than 200 lines, and links all of docs/.

    `nox -s NAME` is written only for sessions of noxfile.py, in the project's own workflow too.
    """
    assert "pip install nox && nox -s bench" in README.split("```")[1]
    assert len(README.splitlines()) < 200
    assert [name for name in DOCUMENTS if name != "README.md" and f"]({name}" not in README] == []
    sessions = set(re.findall(r"@nox\.session.*\ndef (\w+)", (ROOT / "noxfile.py").read_text(encoding="utf-8")))
    assert set(re.findall(r"nox -s (\w+)", ALL + WORKFLOW)) <= sessions


def test_every_command_that_is_named_exists() -> None:
    """`python -m bench NAME` is written only for commands of the command line, and the documents name them all."""
    assert set(re.findall(r"python -m bench (\w+)", ALL)) <= {*NAMES}
    assert {*NAMES} <= set(re.findall(r"(?:python -m bench|nox -s) (\w+)", ALL))


NUMBERS = re.compile(r"within [\d.]+%( of the fastest)?|[±+-]?\d[\d.,]*(x|%| [mnµ]?s| [KMG]?i?B)?( ±\d+%)?")
"""Numbers with their units, and the most that a choice costs."""


def form(text: str) -> list[list[str]]:
    """Return the words of each line of an output, with `#` for numbers and their units."""
    plain = re.sub(r"[\\|>*]|---:?", "", text).replace("the fastest", "#").replace("fastest", "#")
    return [words for line in plain.splitlines() if (words := NUMBERS.sub("#", line).split())]


def is_printed(shown: list[str], printed: list[list[str]]) -> bool:
    """Return whether a line has this form; cells that workers without memory and kernels lack may be missing."""
    return any(line[0] == shown[0] and all(word in left for left in [iter(shown)] for word in line) for line in printed)


@pytest.mark.slow
def test_what_the_readme_shows_is_printed(
    scripted_workers: None, printed: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Typed as it stands, the first command prints each line that is shown below it, and a duel the lines of a comment.

    The numbers are other ones: workers make their times up, and sdpa is one that takes half of eager's. What is shown
    of a published run is printed exactly so.
    """
    monkeypatch.setattr(lookup, "mistake_of", lambda *_: "")
    try_it, shown, *_ = (block for block in blocks(README) if "nox -s bench -- --num" in block or "Use " in block)
    words = shlex.split(try_it.partition("nox -s bench -- ")[2])
    told = printed("run", *(word.replace("sdpa", "test:half") for word in words), "--run", tmp_path / "run")
    told = told.replace("test:half", "sdpa").replace("thorough", "")
    assert [line for line in form(shown) if not is_printed(line, form(told))] == []

    (comment,) = re.findall(r"(?:^>.*\n)+", README, flags=re.MULTILINE)
    told = printed("duel", "eager", "test:half", "--num-tokens", "64,256", "--format", "markdown", "--run", tmp_path)
    told = told.replace("test:half is faster than eager", "Faster than before")
    told = told.replace("eager", "before").replace("test:half", "after")
    assert [line for line in form(comment) if not is_printed(line, form(told))] == []

    monkeypatch.chdir(ROOT)
    show, table = next(pair for pair in pairwise(blocks(README)) if "python -m bench show" in pair[0])
    assert table in printed(*shlex.split(show)[3:])


def test_every_option_of_pytest_bench_is_explained() -> None:
    """The page about options has each of them, each key of a sweep file, and each shipped sweep."""
    parser = argparse.ArgumentParser()
    options.add(lambda _title: parser.add_argument)
    page = DOCUMENTS["docs/sweeps.md"]
    flags = set(re.findall(r"--[a-z][a-z-]*", parser.format_usage()))
    assert len(flags) > 20
    assert [flag for flag in sorted(flags) if f"`{flag}`" not in page and f"`{flag} " not in page] == []
    assert [key for key in SWEEP_KEYS if not re.search(rf"`\[*{key}\]*`", page)] == []
    assert [name for name in shipped_names() if f"`{name}`" not in page] == []


def test_the_names_that_stay_exist_and_examples_import_no_others() -> None:
    """Each name that docs/use.md promises is there, and every import of the suite in an example is one of them."""
    rows = re.findall(r"^\| `(attention_bench[\w.]+)` \| (.+) \|$", DOCUMENTS["docs/use.md"], flags=re.MULTILINE)
    promised = {(module, name) for module, names in rows for name in re.findall(r"`(\w+)`", names)}
    shown = re.findall(r"^from (attention_bench[\w.]+) import (.+)$", ALL, flags=re.MULTILINE)
    assert all(hasattr(import_module(module), name) for module, name in promised)
    assert shown
    assert {(module, name) for module, names in shown for name in names.split(", ")} <= promised


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_written_with_options_that_it_has(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A line with a command or its nox session can be typed as it stands, and no option is found in `--help` alone."""
    with pytest.raises(SystemExit):
        main([command, "--help"])
    flags = set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out)) - {"--help"}
    assert [flag for flag in sorted(flags) if flag not in ALL] == []
    for words in command_lines():
        is_ours = words[:4] == ["python", "-m", "bench", command] or words[:3] == ["nox", "-s", command]
        used = {word for word in words[3:] if re.match(r"--[a-z]", word)} if is_ours else set()
        assert used <= {*flags, "--help"}, words


@pytest.mark.parametrize("words", measuring(), ids=" ".join)
def test_every_command_that_measures_can_be_met(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command's sweep, names and values pass the check that comes before anything starts.

    One says that it has 10 points.
    """
    (tmp_path / "mykernel.py").write_text(KERNEL)
    # modules are looked for, not imported
    for name in ("mylayer", "mypackage", "myruntime"):
        (tmp_path / f"{name}.py").touch()
    (tmp_path / "mine.toml").write_text(blocks(DOCUMENTS["docs/sweeps.md"], "toml")[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(facts, "visible_cores", lambda: 4)
    monkeypatch.setattr(
        model_look, "shown", lambda _pool, layers: {name: dict.fromkeys(OF_LAYERS, 1) for name in layers}
    )
    count = len(asked(words).points)
    assert count == 10 if {"128:2048:x2", "6,12"} <= {*words} else count


@pytest.mark.parametrize("name", examples("toml"))
def test_a_sweep_file_is_a_sweep(name: str, tmp_path: Path) -> None:
    """The examples can be copied and run as they stand."""
    path = tmp_path / "mine.toml"
    path.write_text(examples("toml")[name], encoding="utf-8")
    assert len(load_sweep(str(path)).points) >= 3


def of_one_item(q: Tensor, k: Tensor, v: Tensor, *, causal: bool, sm_scale: float) -> Tensor:
    """Return the core of one item `[N, H, D]`, as FlashInfer does."""
    q, k, v = (each.transpose(0, 1) for each in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=sm_scale).transpose(0, 1)


@pytest.mark.parametrize("name", examples("python"))
def test_a_python_example_works(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel matches its layer, a layer returns a tensor, and an example that reads a run reads it."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setitem(sys.modules, "flashinfer", SimpleNamespace(single_prefill_with_kv_cache=of_one_item))
    path = tmp_path / "example.py"
    path.write_text(examples("python")[name], encoding="utf-8")
    for library in ("timm", "transformers"):
        if re.search(rf"^(import|from) {library}\b", examples("python")[name], re.MULTILINE):
            has(library)
    names = runpy.run_path(str(path))
    x = torch.randn(2, 5, 12)
    if "MyAttention" in names:
        layer, context = names["MyAttention"](12, 3, 5, 7, 10), torch.randn(2, 7, 10)
        assert layer(x, context).shape == (2, 5, 12)
        torch.testing.assert_close(impls.build(layer, "sdpa")(x, context), layer(x, context))
    elif "MyRuntime" in names:
        layer = ViTAttention(12, 12, 3).eval()
        with torch.inference_mode():
            torch.testing.assert_close(names["MyRuntime"](layer)(x), layer(x))
    elif {"adapt", "attend"} & {*names}:
        layer, adapt = ViTAttention(12, 12, 3).eval(), names.get("adapt") or impls.with_attend(names["attend"])
        torch.testing.assert_close(adapt(layer)(x), layer(x))
    else:
        assert len(names.get("table", names.get("y", names.get("o", ()))))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*examples("yaml"), "ci.yml"])
def test_a_workflow_keeps_its_schema(name: str, tmp_path: Path) -> None:
    """GitHub's schema of workflows knows every key, and refuses a misspelled one."""
    example = {**examples("yaml"), "ci.yml": WORKFLOW}[name]
    path = tmp_path / "example.yaml"
    for text, status in ((example, 0), (example.replace("steps:", "stepz:"), 1)):
        path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(path)]
        ended = subprocess.run(command, capture_output=True, check=False, text=True)
        assert ended.returncode == status, ended.stdout + ended.stderr


def test_each_task_of_the_array_job_measures_its_shard(tmp_path: Path) -> None:
    """A program replaces Python and writes down its arguments; the tasks are the array's."""
    (script,) = examples("bash").values()
    (tmp_path / "attention-bench").mkdir()
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n[ "$1" = -c ] || echo "$@" >> {tmp_path}/words\n')
    python.chmod(0o755)
    command = ["bash", "-c", re.sub(r"\bpython -", f"{python} -", script).replace("/shared", str(tmp_path))]
    assert "#SBATCH --array=1-4\n" in script
    for task in range(1, 5):
        subprocess.run(command, check=True, env={**os.environ, "SLURM_ARRAY_TASK_ID": str(task)})
    shards = [f"--shard {task}/4 --run {tmp_path}/vit/shard-{task}" for task in range(1, 5)]
    assert (tmp_path / "words").read_text().splitlines() == [f"-m bench run --sweep vit {shard}" for shard in shards]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_file_that_is_linked_is_there(name: str) -> None:
    """Links into the project and pictures lead somewhere, those to a heading too."""
    targets = [link for link in re.findall(r"\]\(([^)]+)\)", DOCUMENTS[name]) if not link.startswith("https://")]
    folder = (ROOT / name).parent
    for target in targets:
        file, _, anchor = target.partition("#")
        path = (folder / file).resolve() if file else ROOT / name
        assert path.exists(), target
        assert not anchor or anchor in anchors(path.read_text(encoding="utf-8")), target
