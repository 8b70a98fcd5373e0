"""Requests that can't be met, with the exit status and the message of each: a change of any is a change for users."""

import argparse
import shlex
import shutil
from pathlib import Path

import pytest

from bench.cli import main
from bench.commands import options
from tests.refusals import refusal

PUBLISHED = Path(__file__).parents[1] / "results" / "published"

NAMES = {"equal-shares": "quick", "quick": "race", "runtimes": "runtimes", "sawtooth": "sawtooth"}
"""Published runs, with the short names of their copies."""

NOWHERE = "nowhere does not exist; expected a run folder or a results.csv"
NO_MODULE = "implementation 'nomodule:attend': there is no module nomodule; put it in the current folder"
SDPA = "torch.nn.functional:scaled_dot_product_attention"
UNKNOWN = "unknown implementation 'eagre'; expected one of the names in `python -m bench list`; did you mean eager?"

OF_COMMANDS = {
    "foo": (2, "argument command: invalid choice: 'foo' (choose from 'run', 'show', 'compare', 'duel', 'advise', "),
    "show": (2, "the following arguments are required: RUN"),
    "show nowhere": (2, NOWHERE),
    "show race --where x>1": (2, "unknown column 'x'; expected one of the columns in results/README.md"),
    "show race --top 0": (2, "--top 0 must be at least 1"),
    "show foreign.csv": (2, "foreign.csv is not a results file: the column schema_version is missing"),
    "compare quick sawtooth": (3, "BASE and NEW share no case: layer is vit in BASE and core in NEW"),
    "compare race runtimes": (3, "BASE and NEW were measured under different conditions: cpu_flags: "),
    "compare quick race --margin=-0.1": (2, "margin = -0.1 must be a share of at least 0, such as 0.01 for 1%"),
    "compare quick quick --to no/such/file": (2, "no/such/file can't be written: No such file or directory"),
    "compare quick race --margin x": (2, "--margin x must be a share such as 2% or 0.02"),
    "show runtimes --across dtype": (2, "runtimes has no rounds across dtype; measure it with run --across dtype"),
    "show quick --across dtype --top 1": (2, "--across shows all rows, so it takes no --columns, --where or --top"),
    "run --batch 1,2 --across batch --within 9s": (2, "--across measures in equal shares, so it takes no --within"),
    "run --check --run new": (2, "--check keeps nothing, so it takes no --run"),
    "compare quick quick quick": (2, "compare takes BASE and NEW, got 3 runs"),
    "advise timm": (2, "MODEL 'timm' must be timm:NAME, torchvision:NAME, transformers:CONFIG, module:attribute or "),
    "advise nolib:thing": (2, "layer 'nolib:thing': there is no module nolib; put it in the current folder ("),
    "advise timm:vit[depth": (2, "a name with options must read name[option=value,option=value], got 'timm:vit[depth'"),
    "advise timm:vit_small_patch16_224 --mode backward": (2, "--mode backward must be inference, forward or train, "),
    "duel": (2, "a duel takes two sides that differ in their implementation, --layer, --checkout or --python; "),
    "duel eager --checkout nowhere@main --checkout .": (2, "--checkout nowhere@main must be a folder, or FOLDER@REV"),
    "duel eager sdpa --allow 2": (2, "--allow 2 must be a share from 0 to below 1, such as 2% or 0.02"),
    "duel eager sdpa --layer nomodule:A --layer nomodule:B": (
        2,
        "before (--layer nomodule:A): layer 'nomodule:A': ",
    ),
    "duel eager sdpa --token x.md": (2, "unrecognized arguments: --token x.md"),
    "profile race --case implementation=foo": (
        2,
        "--case implementation=foo: no case that is ok matches implementation=foo; expected implementation = ",
    ),
    "profile race --case foo=1": (2, "unknown column 'foo'; expected one of layer, implementation, device, "),
    "profile race/results.csv": (2, "race/results.csv is a file, but profile needs the run folder to write traces/"),
    "call race --case device=cpu": (2, "--case device=cpu must match one case, but it matches "),
    "call race --case implementation=sdpa --calls 0": (2, "--calls 0 must be at least 1"),
    "watch eager": (2, "implementation 'eager' is named twice"),
    "watch sdpa": (2, "watch takes your kernel as module:attribute, alone or after a baseline; got sdpa"),
    "watch mykernel": (2, "implementation 'mykernel' must be module:attribute, the module by its import name; did "),
    "watch mykernel:adapt --num-tokens 5,7": (2, "watch measures one shape, but the options give 2"),
    "summarise nowhere": (2, "nowhere has no journal.jsonl to write results.csv from"),
}
"""Commands, each with its exit status and the beginning of its message."""

OF_SWEEPS = {
    "--impl eagre": UNKNOWN,
    "--impl nomodule:attend": NO_MODULE,
    f"--impl {SDPA}": f"implementation '{SDPA}' is called sdpa here; write sdpa",
    "--sweep quik": "unknown sweep 'quik'; expected one of allocator, article, ",
    "--sweep missing.toml": "sweep file missing.toml does not exist",
    "--num-tokens 0": "num_tokens = 0 must be a whole number from 1 to 1,000,000,000",
    "--num-tokens 128:x2": "num_tokens = 128:x2 must be first:last, first:last:step or first:last:xfactor, such as ",
    "--num-heads 5": "channels = 384 must be divisible by num_heads = 5",
    "--dtype flaot32": "dtype = 'flaot32' must be one of float32, bfloat16, float16; did you mean float32?",
    "--model foo": "unknown model 'foo'; expected one of the names in `python -m bench list`; ",
    "--threads 6400": "threads = 6400 is more than the ",
    "--bound 0": "bound = 0.0 must be a share above 0 and below 1, such as 0.02 for 2%",
    "--within soon": "--within soon must be a duration such as 90s, 30m or 1h",
    "--no-race --within 3m": "within_s needs a race; without one budget_s sets the time for each point",
    "--num-heads six": "--num-heads six must be whole numbers or ranges such as 128:2048:128 or 128:2048:x2",
    "--qkv-bias yes": "--qkv-bias yes must be true or false",
    "--qk-scale 1,small": "--qk-scale 1,small must be numbers",
    "--processes few": "--processes few must be a whole number from 1 to 1,000,000,000",
    "--fail-on incorect": "unknown --fail-on value 'incorect'; expected one of unsupported, incorrect, ",
    "--extend": "--extend needs a run to add to; name it with --run DIR",
    "--run .": "--run . must be a run folder, an empty folder or a new one; it has ",
    "--run empty --within 3m": "empty has no run to resume; say what to measure, such as --sweep quick",
    "--shard 5/4": "--shard 5/4 must be I/N with whole numbers and 1 <= I <= N, such as 1/4",
}
"""Options of `run`, each with the beginning of its message; the status is 2."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with copies of published runs under short names, a table of others and a kernel."""
    folder = tmp_path_factory.mktemp("runs")
    for name, called in NAMES.items():
        shutil.copytree(PUBLISHED / f"{name}-xeon-2core", folder / called)
    (folder / "empty").mkdir()
    (folder / "foreign.csv").write_text("a,b\n1,2\n")
    (folder / "mykernel.py").write_text("def attend(q, k, v, scale): ...\n")
    return folder


def status_of(command: str) -> object:
    """Return the exit status of a command."""
    try:
        return main(shlex.split(command))
    except SystemExit as ended:  # as argparse ends
        return ended.code


@pytest.mark.parametrize("command", OF_COMMANDS)
def test_a_command_that_cannot_be_carried_out(
    command: str, runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such a command ends with its status, and its last line is the program's name and the message."""
    monkeypatch.chdir(runs)
    status, message = OF_COMMANDS[command]
    assert status_of(command) == status
    line = capsys.readouterr().err.splitlines()[-1]
    name, _, text = line.partition(": error: " if ": error: " in line else ": ")
    assert name.startswith(("attention-bench", "python -m bench"))
    assert text.startswith(message)


@pytest.mark.parametrize("line", OF_SWEEPS)
def test_a_sweep_that_cannot_be_measured(line: str, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a sweep is refused before anything starts."""
    monkeypatch.chdir(runs)
    parser = argparse.ArgumentParser()
    options.add(lambda _title: parser.add_argument)
    assert refusal(options.sweep, parser.parse_args(shlex.split(line))).startswith(OF_SWEEPS[line])
