"""The installed package: its contents, module names unlike a checkout's, and work without a checkout."""

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import impls
from bench.store.table import load
from impls import contract

ROOT = Path(__file__).parents[1]

hatch_build = pytest.importorskip("hatch_build", reason="hatchling is not installed")

HERS = "raise SystemExit('a module of the user was imported')\n"

PROGRAM = "#!{}\nimport sys\nfrom attention_bench.bench.cli import installed\nsys.exit(installed())\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of packages with ours in it, as the wheel has it, and its program."""
    folder = tmp_path_factory.mktemp("site")
    hatch_build.write_package(ROOT, folder / "attention_bench")
    program = folder / "attention-bench"
    program.write_text(PROGRAM.format(sys.executable))
    program.chmod(0o755)
    return folder


def test_in_a_checkout_the_name_of_the_package_is_the_same_module() -> None:
    """A class is the same by both names, and `except Unsupported` catches it."""
    assert import_module("attention_bench.impls") is impls
    assert import_module("attention_bench.impls.contract") is contract
    assert contract.__spec__ is not None
    assert contract.__spec__.name == "impls.contract"


def test_no_module_of_the_package_names_one_of_a_checkout(site: Path) -> None:
    """Neither an import nor a text: names in texts follow from the name of the module that has them."""
    files = [*(site / "attention_bench").rglob("*.py")]
    assert len(files) > 200
    assert [(file.name, name) for file in files for name in _ours(ast.parse(file.read_text("utf-8")))] == []


def _ours(tree: ast.Module) -> Iterator[str]:
    """Yield the names of modules of a checkout in imports and in texts."""
    for node in ast.walk(tree):
        names = [""]
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "" if not node.level else ""]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            names = [node.value] if "." in node.value else [""]
        yield from (name for name in names if name.partition(".")[0] in ("bench", "impls"))


def test_the_package_needs_what_the_group_of_the_sessions_has() -> None:
    """Torch is among them, and an extra has only its additions."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    metadata: dict[str, object] = {}
    hatch_build.Dependencies(str(ROOT), {}).update(metadata)
    assert {"torch>=2.11", "rich>=13", "pytest>=8"} <= {*metadata["dependencies"]}  # type: ignore[misc]
    assert metadata["optional-dependencies"] == {
        **{
            extra: [each for each in groups[extra] if isinstance(each, str)]
            for extra in ("gpu-kernels", "models", "profile")
        },
        "runtimes": [each for name in ("openvino", "onnxruntime") for each in groups[name]],
    }


@pytest.mark.slow
def test_a_repository_with_folders_of_our_names_is_measured(site: Path, tmp_path: Path) -> None:
    """Her modules are hers, ours are found; results are in her folder, and messages name the program."""
    for name in ("bench", "tests", "attention_bench"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(HERS)
    (tmp_path / "conftest.py").write_text(HERS)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (tmp_path / "impls").mkdir()
    (tmp_path / "impls" / "fast.py").write_text(
        "from torch.nn.functional import scaled_dot_product_attention\n"
        "from attention_bench.impls import Unsupported\n"
        "def attend(q, k, v, scale):\n    return scaled_dot_product_attention(q, k, v, scale=scale)\n"
    )
    small = ("--num-tokens", "64", "--batch", "1", "--channels", "16", "--num-heads", "1")
    effort = ("--no-race", "--no-control", "--processes", "1", "--budget-s", "0.1")
    command = ("attention-bench", "run", "--impl", "eager,impls.fast:attend", *small, *effort)
    variables = {**os.environ, "PYTHONPATH": str(site), "PATH": f"{site}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (tmp_path / "results").glob("*-custom")
    assert f"all rows: attention-bench show results/{run.name}" in done.stdout
    rows = load(run).set_index("implementation")
    assert rows["status"].to_dict() == {"eager": "ok", "impls.fast:attend": "ok"}
